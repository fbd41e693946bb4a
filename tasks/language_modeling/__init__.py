"""Predicting the next word or character."""
