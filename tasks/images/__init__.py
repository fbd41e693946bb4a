"""Classifying and describing pictures."""
