"""Where examples come from: A data directory, a fetched hub copy, and what batches need."""
