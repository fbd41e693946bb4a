"""Pages of the documentation that are made from code and published rows (`make docs`)."""
