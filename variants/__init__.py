"""Attention mechanisms: components on axes, recipes that combine them, and whole mechanisms."""

from variants._build import build, load_all

__all__ = ["build", "load_all"]
