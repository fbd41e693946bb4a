"""How the C library of a worker deals with memory that is free again."""

import ctypes
import os

MMAP_THRESHOLD, TRIM_THRESHOLD = -3, -1
"""Numbers of two options of glibc, `mallopt(3)`."""
OPTIONS = {MMAP_THRESHOLD: 2**25, TRIM_THRESHOLD: 2**31 - 1}
"""Bytes. The first is the most that glibc takes; larger blocks are mapped one by one as before."""


def keep_freed_memory() -> bool:
    """Keep what is freed for the next step; whether the C library could be asked.

    Left to itself, glibc returns memory as soon as some is free at the end of its heap, and
    the tensors of every training step fault their pages in anew. No number changes.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    if mallopt is None:
        return False
    return all(mallopt(option, value) == 1 for option, value in OPTIONS.items())


def return_freed_memory() -> bool:
    """Hand memory that is free now back to the system; whether there was any.

    A worker that waits must not hold what its last job needed at its peak.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None
    return trim is not None and trim(0) == 1
