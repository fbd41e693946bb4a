"""Answering questions about a short story."""
