"""Attention history: what earlier weights add to the next score, one file each."""
