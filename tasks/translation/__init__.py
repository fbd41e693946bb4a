"""Translation tasks."""
