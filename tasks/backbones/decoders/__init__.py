"""Recurrent decoders, by where attention enters them, one file each."""
