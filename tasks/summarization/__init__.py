"""Summarization tasks."""
