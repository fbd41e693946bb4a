"""score(query, key) -> energy, one file each."""
