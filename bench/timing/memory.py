"""Peak memory of a call, in a pass of its own that is never timed."""

import gc
import weakref
from collections.abc import Sequence

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from bench.timing.timer import Work


class TensorBytes(TorchDispatchMode):
    """Counts bytes of storages that appear, and takes them off when they are freed.

    Works on any device. It sees the results of operations, not the buffers inside them: scratch
    memory of fused attention and of compiled code is missing. The resident set of the process,
    which has all of it, cannot resolve megabytes because freed memory is reused.
    """

    def __init__(self) -> None:
        super().__init__()
        self.current = 0
        self.peak = 0
        self._known: set[int] = set()

    def __torch_dispatch__(
        self,
        func: OpOverload,
        types: Sequence[type],
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        """Run the operation and look at what goes in and what comes out."""
        kwargs = kwargs or {}
        for before in tree_leaves((args, kwargs)):
            if isinstance(before, Tensor):
                self._notice(before, counts=False)
        results = func(*args, **kwargs)
        for after in tree_leaves(results):
            if isinstance(after, Tensor):
                self._notice(after, counts=True)
        return results

    def _notice(self, tensor: Tensor, *, counts: bool) -> None:
        storage = tensor.untyped_storage()
        # the Python object of a storage lives as long as the storage, so its id names it
        name, size = id(storage), storage.nbytes() if counts else 0
        if name in self._known:
            return
        self._known.add(name)
        self.current += size
        self.peak = max(self.peak, self.current)
        weakref.finalize(storage, self._forget, name, size)

    def _forget(self, name: int, size: int) -> None:
        self._known.discard(name)
        self.current -= size


def peak_bytes(work: Work, device: torch.device) -> int:
    """Bytes that a warmed-up call needs beyond what was there before, at its peak.

    Gradients left by an earlier call must be gone (`grad = None`), or freeing them inside the call
    hides as many new bytes. On a GPU the allocator answers, scratch memory included.
    """
    if device.type == "cuda":
        return _cuda_peak(work)
    with TensorBytes() as seen:
        work()
    return seen.peak


def release_memory() -> None:
    """Collect what nothing refers to, and hand the memory that a GPU's allocator keeps back."""
    gc.collect()
    if torch.cuda.is_initialized() and not lost_gpu():
        torch.cuda.empty_cache()


def lost_gpu() -> bool:
    """Whether an error has made the GPU useless to this process; waits for what is queued there.

    After a kernel that reads where it must not, for one, every later call of the process fails.
    """
    if not torch.cuda.is_initialized():
        return False
    try:
        torch.cuda.synchronize()
    except RuntimeError:
        return True
    return False


def _cuda_peak(work: Work) -> int:
    # what a collection inside the call would free must not hide new bytes
    release_memory()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    work()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before
