"""The attention bench: prove attention mechanisms correct, then measure them honestly."""

__version__ = "0.2.0"
