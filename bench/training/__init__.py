"""One quality cell: data, a backbone with a variant in its slot, an optimizer -> rows."""
