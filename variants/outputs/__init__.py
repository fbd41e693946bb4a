"""How weights and states become the output distribution, one file each."""
