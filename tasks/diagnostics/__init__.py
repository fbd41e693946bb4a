"""Generated tasks, one ability each."""
