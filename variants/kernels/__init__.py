"""Fused implementations of the same mathematics, chosen by `impl=`."""
