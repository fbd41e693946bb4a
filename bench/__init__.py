"""The attention bench: prove attention mechanisms correct, then measure them honestly."""

__version__ = "0.1.0"
