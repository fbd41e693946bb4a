"""How jobs are spread: by worker processes, or inline for debugging."""
