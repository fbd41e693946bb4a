"""The documents whose sentences are tested."""

NOTES = "F0, Attention mechanism for DNNs (notes)"
TEXTBOOK = "F1, Probabilistic machine learning, section 15.4 (textbook)"
EXPLAINED = "F2, Attention for neural networks, clearly explained (course)"
SUMMARY = "F3, Attention mechanism (summary)"
