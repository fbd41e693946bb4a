"""What places do to queries, energies and outputs, one file each."""
