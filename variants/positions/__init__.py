"""How positions enter inputs, energies and outputs, one file each."""
