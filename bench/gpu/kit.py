"""What is measured on a GPU, and how much of it: the real thing, and a rehearsal on a processor."""

import os
from dataclasses import dataclass

from bench.timing.ceilings import CeilingSizes


@dataclass(frozen=True, kw_only=True)
class Kit:
    """Sizes of every piece."""

    device: str
    dtype: str
    """Format of attention that is timed and certified."""
    preset: str
    """Sizes of tasks."""
    rounds: str
    """Timing protocol at model sizes."""
    prefill_rounds: str
    """Timing protocol of long sequences, of which one call may take seconds."""
    shape: str
    """Model sizes, as `--shape` takes them."""
    compiled_shape: str
    """One of them, for what is compiled."""
    prefill_shape: str
    """Long sequences, for prefill and decode."""
    slot_shapes: tuple[str, ...]
    """Layers with their heads, as `--shape` takes them."""
    slot_codes: tuple[tuple[str, str], ...]
    """Formats and codes of layers, the most useful ones first. The code `auto` is PyTorch's fused
    attention wherever a mechanism has it."""
    largest_shape: str
    """Where the search for the longest sequence begins."""
    largest_limit: int
    """Longest length that is tried."""
    ceilings: CeilingSizes
    backend: str
    """Of `torch.compile`."""
    training: str
    """Options of a few training cells."""
    training_cells: int
    chunk: int
    """Variants of one piece."""
    most_jobs: int
    """Certificates at once, where there are as many cores; each holds a context of the device."""
    pace: float = 1.0
    """Expected seconds of a piece, as a multiple of those on a GPU."""

    @property
    def jobs(self) -> int:
        """Certificates at once on this machine."""
        return min(self.most_jobs, os.cpu_count() or 1)


GPU = Kit(
    device="cuda",
    dtype="bfloat16",
    preset="quick",
    rounds="rounds[count=10,visit_ms=10,samples=2,budget_ms=400,least=3]",
    prefill_rounds="rounds[count=6,visit_ms=10,samples=1,budget_ms=200,least=2,"
    "workloads=forward+decode_step]",
    shape="model",
    compiled_shape="B=4,H=16,L=2048,E=64",
    prefill_shape="B=1,H=16,L=8192+32768,E=64",
    slot_shapes=("slot,B=1+8+64,H=8,L=1024+8192,E=64", "slot,B=1,H=8,L=32768+131072,E=64"),
    slot_codes=(
        ("bfloat16", "auto"),
        ("bfloat16", "compiled"),
        ("float32", "auto"),
        ("bfloat16", "eager"),
        ("float32", "compiled"),
        ("float32", "eager"),
    ),
    largest_shape="B=1,H=16,L=4096,E=64",
    largest_limit=2**20,
    ceilings=CeilingSizes(),
    backend="inductor",
    training="adam[steps=200]",
    training_cells=4,
    chunk=8,
    most_jobs=12,
)
REHEARSAL = Kit(
    device="cpu",
    dtype="bfloat16",
    preset="smoke",
    rounds="rounds[count=3,visit_ms=2,budget_ms=30,least=2]",
    prefill_rounds="rounds[count=2,visit_ms=2,budget_ms=30,least=2,workloads=forward+decode_step]",
    shape="B=1,H=2,L=16+32,E=8",
    compiled_shape="B=1,H=2,L=16,E=8",
    prefill_shape="B=1,H=2,L=48,E=8",
    slot_shapes=("slot,B=1,H=2,L=16+32,E=8",),
    slot_codes=(("bfloat16", "auto"), ("float32", "eager")),
    largest_shape="B=1,H=2,L=16,E=8",
    largest_limit=64,
    ceilings=CeilingSizes(matrix=64, elements=2**12, samples=3),
    backend="eager",
    training="adam[steps=2,evaluate_every=2]",
    training_cells=2,
    chunk=3,
    most_jobs=1,
    pace=0.3,
)
