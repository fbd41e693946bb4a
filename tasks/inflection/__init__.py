"""Inflection tasks."""
