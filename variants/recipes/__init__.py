"""Named variants: components put together, one small file each."""
