"""Named combinations of components, one file a family; see ADR 13."""
