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


HELD = """
from pathlib import Path
from bench.running.allocator import keep_freed_memory, return_freed_memory
keep_freed_memory()
def held():
    return int(Path("/proc/self/statm").read_text().split()[1])
before = held()
del (touched := [bytearray(2**23) for _ in range(4)])[:]
kept = held() - before
assert return_freed_memory()
print(kept, held() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only glibc can be asked")
def test_what_is_kept_can_be_handed_back():
    done = subprocess.run([sys.executable, "-c", HELD], capture_output=True, text=True, check=True)
    kept, left = map(int, done.stdout.split())
    assert kept > 8000, "32 MiB are 8192 pages"
    assert left < 800


ASKED = """
import torch
from bench.running.allocator import refuse_more_memory_than_there_is
from bench.running.runner import reason_of
assert refuse_more_memory_than_there_is() > 2**29, "of the machine"
assert refuse_more_memory_than_there_is(2**31) == 2**31
kept = []
for take in (lambda: torch.ones(2**25), lambda: bytearray(2**27)):
    try:
        while True:
            kept.append(take())
    except (RuntimeError, MemoryError) as error:
        print(reason_of(error).status)
        kept.clear()
print(len(torch.ones(2**20)))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other systems count other memory")
def test_a_worker_that_asks_for_more_than_there_is_is_refused_and_goes_on():
    done = subprocess.run([sys.executable, "-c", ASKED], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["out_of_memory", "out_of_memory", str(2**20)]
