"""The ranked table of a comparison: grouping, statistics, rows, marks and blocks."""
