"""Claims of the source documents, a file a group. Verdicts come from rows; a note decides none."""
