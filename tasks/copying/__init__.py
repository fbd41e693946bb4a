"""Copying words into code, names and strings."""
