"""Rows, the store that never loses one, tidy frames and honest statistics."""
