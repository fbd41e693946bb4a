"""Claims of the source documents, a file a group; nothing here names a result."""
