"""Decoders: where attention stands in a recurrent decoder, one file each."""
