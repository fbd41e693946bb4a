"""Variants that replace the whole chain, one file each."""
