"""What a query reads of weights and values, one file each."""
