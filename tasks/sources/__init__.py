"""Where examples come from: a local mirror, a fetched hub copy, and what batches need."""
