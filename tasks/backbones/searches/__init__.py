"""Searches: how words are chosen from a decoder's predictions, one file each."""
