"""What goes back from the weights into the next score, one file each."""
