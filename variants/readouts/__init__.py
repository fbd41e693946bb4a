"""How weights and values become what a query reads, one file each."""
