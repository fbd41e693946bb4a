"""Comparing two texts: entailment and similarity."""
