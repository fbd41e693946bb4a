"""One command for a machine with a GPU: everything worth measuring there, in pieces."""
