"""Searches: how words are chosen from what a decoder thinks of them, one file each."""
