"""Networks in which the attention is the only thing that changes."""
