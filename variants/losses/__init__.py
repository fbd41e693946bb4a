"""What the weights add to the training loss, one file each."""
