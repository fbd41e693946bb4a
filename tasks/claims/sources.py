"""The documents whose sentences are tested."""

NOTES = "F0, Attention mechanism for DNNs (lecture notes)"
TEXTBOOK = "F1, Probabilistic machine learning, section 15.4 (summary of a textbook chapter)"
COURSE = "F2, Attention for neural networks, clearly explained (online course)"
BLOG_POST = "F3, Attention mechanism (blog post)"
