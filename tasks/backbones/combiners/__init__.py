"""Combiners: how a decoder reads several sources, one file each."""
