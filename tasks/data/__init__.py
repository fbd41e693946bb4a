"""Data sets: readers of the data directory and of fetched hub copies, and batching."""
