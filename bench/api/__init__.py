"""Contracts and registries; a leaf package that imports nothing else of the project."""
