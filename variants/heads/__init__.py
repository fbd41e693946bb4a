"""Projections between the model and the heads, one file each."""
