"""Encoders: embedded tokens to the states that are attended to, one file each."""
