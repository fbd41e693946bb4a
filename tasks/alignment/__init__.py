"""Aligning the words of two languages."""
