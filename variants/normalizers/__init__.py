"""energy -> weights, one file each."""
