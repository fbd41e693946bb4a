"""Backbones: networks in which only the attention changes between variants."""
