"""What the weights do to the output distribution, one file each."""
