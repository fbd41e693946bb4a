"""Scores that several tasks share."""
