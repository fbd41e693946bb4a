"""Tasks: seeded examples, metrics and backbones, one file a task family."""
