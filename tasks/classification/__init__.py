"""Classification tasks."""
