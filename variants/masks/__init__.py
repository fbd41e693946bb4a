"""Which keys a query may see, one file each."""
