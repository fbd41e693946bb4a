"""Attention mechanisms: components on axes, recipes that combine them, and whole mechanisms."""

from variants.multihead import as_multihead
from variants.own_model import build, build_loss, build_output, load_all

__all__ = ["as_multihead", "build", "build_loss", "build_output", "load_all"]
