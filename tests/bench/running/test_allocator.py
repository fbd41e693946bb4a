"""Memory that is free again: kept by workers, handed back by glibc's own rule."""

import subprocess
import sys

import pytest

COUNT_FAULTS = """
import resource
from bench.running.allocator import keep_freed_memory
if {keep}:
    assert keep_freed_memory()
def touch():
    return [bytearray(2**23) for _ in range(4)]
touch()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    touch()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(*, keep: bool) -> int:
    code = COUNT_FAULTS.format(keep=keep)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="only glibc can be asked")
def test_a_process_that_keeps_freed_memory_faults_it_in_once():
    assert faults(keep=True) < 100
    assert faults(keep=False) > 1000, "otherwise there was nothing to keep"
