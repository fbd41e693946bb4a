"""Memory of a worker: how much it may hold, and what the C library does with what is free again."""

import ctypes
import os
import resource
from contextlib import suppress
from pathlib import Path

MMAP_THRESHOLD, TRIM_THRESHOLD = -3, -1
"""Numbers of two options of glibc, `mallopt(3)`."""
OPTIONS = {MMAP_THRESHOLD: 2**25, TRIM_THRESHOLD: 2**31 - 1}
"""Bytes. The first is the most that glibc takes; larger blocks are mapped one by one as before."""
CONTAINER_LIMIT = Path("/sys/fs/cgroup/memory.max")
"""What a container may use, where there is one: bytes, or `max`."""


def refuse_more_memory_than_there_is(most: int = 0) -> int:
    """Let requests fail that the machine cannot meet; returns the bytes that one process may hold.

    Linux grants more than there is and kills some process when it is used, not always the one
    that asked. A request that fails ends one cell, in a sentence.

    Args:
        most: Bytes; 0 for the memory of the machine, or of the container.
    """
    limit = most or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError):
        limit = min(limit, int(CONTAINER_LIMIT.read_text(encoding="ascii")))
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))
    return limit


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
