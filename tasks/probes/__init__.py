"""Probes: what a trained model's attention does, in numbers; one file each."""
