"""How jobs are spread: a fresh process each, or inline for debugging."""
