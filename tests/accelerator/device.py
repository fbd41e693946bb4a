"""A device that is not there: tensors that say they live on it, with the numbers kept on the host.

An operation that mixes its tensors with those of the host raises what CUDA raises. Whatever would
make the host wait for the device is written down with the line of the project that asked for it.
"""

import sys
from collections import Counter
from pathlib import Path

import torch
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_leaves, tree_map_only

NAME = "pretended"
ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
aten = torch.ops.aten

WAITS = {
    aten._local_scalar_dense.default: "item",
    aten.is_nonzero.default: "item",
    aten.equal.default: "equal",
    aten.nonzero.default: "nonzero",
    aten.masked_select.default: "boolean index",
    aten._unique2.default: "unique",
    aten.unique_dim.default: "unique",
    aten.bincount.default: "bincount",
    aten.repeat_interleave.Tensor: "repeat_interleave",
}
"""Operations whose result the host must know before it goes on."""
INDEXING = (
    aten.index.Tensor,
    aten._unsafe_index.Tensor,
    aten.index_put.default,
    aten.index_put_.default,
    aten._index_put_impl_.default,
)
LENGTHS_ON_THE_HOST = ("aten._pack_padded_sequence", "aten._pad_packed_sequence")

waits = Counter()
"""Kind and place (file of the project, function) -> how often the host waited there."""


def install():
    """Register the device with torch, so that autograd knows it; once in a process."""
    from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

    _setup_privateuseone_for_python_backend(NAME)
    # `module.to` then makes new parameters and does not write into the old ones
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    return torch.device(NAME, 0)


def note(kind):
    frame = sys._getframe(1)
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        ours = path.is_relative_to(ROOT) and "site-packages" not in path.parts
        # counters of operations hand on what others ask for
        counts = frame.f_code.co_name == "__torch_dispatch__"
        if ours and HERE not in path.parents and not counts:
            waits[kind, f"{path.relative_to(ROOT)}::{frame.f_code.co_name}"] += 1
            return
        frame = frame.f_back


def is_here(device):
    return device is not None and torch.device(device).type == NAME


class OnDevice(torch.Tensor):
    """A wrapper: device `pretended:0`, numbers in `host`."""

    @staticmethod
    def __new__(cls, host, requires_grad=False):
        return torch.Tensor._make_wrapper_subclass(
            cls,
            host.size(),
            strides=host.stride(),
            storage_offset=host.storage_offset(),
            dtype=host.dtype,
            layout=host.layout,
            device=torch.device(NAME, 0),
            requires_grad=requires_grad,
        )

    def __init__(self, host, requires_grad=False):
        self.host = host

    def __repr__(self, *, tensor_contents=None):
        return f"OnDevice({self.host!r})"

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is torch.Tensor.tolist:
            note("tolist")
            return args[0].host.tolist()
        if func is torch.Tensor.untyped_storage:
            return args[0].host.untyped_storage()  # addresses and bytes, as a device has its own
        if func in (torch.Tensor.numpy, torch.Tensor.__array__):
            raise TypeError(f"can't convert {NAME}:0 device type tensor to numpy")
        from recurrent import recurrent

        with torch._C.DisableTorchFunctionSubclass():
            return recurrent(func, args, kwargs or {})

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return dispatch(func, args, kwargs or {})

    def __reduce_ex__(self, protocol):
        raise RuntimeError("a tensor of the device was pickled")


def dispatch(func, args, kwargs):
    """Run an operation on the numbers, and give back tensors of the device they belong to."""
    tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
    ours = [x for x in tensors if isinstance(x, OnDevice)]
    device = kwargs.get("device")
    if func is aten._to_copy.default:
        return _moved(func, args, kwargs, bool(ours))
    if func is aten.copy_.default and 0 < len(ours) < len(tensors):
        return _copied(*args[:2])
    if not ours and not is_here(device):
        return func(*args, **kwargs)
    if ours and device is not None and not is_here(device):
        return func(*tree_map_only(OnDevice, _host, args), **tree_map_only(OnDevice, _host, kwargs))
    _refuse_mixture(func, args, kwargs, tensors)
    _note_waits(func, args)
    host_args, host_kwargs = tree_map_only(OnDevice, _host, (args, kwargs))
    if device is not None:
        host_kwargs["device"] = "cpu"
    found = func(*host_args, **host_kwargs)
    if func is aten._local_scalar_dense.default:
        return found
    if func is aten._pack_padded_sequence.default:
        return OnDevice(found[0]), found[1]
    found = tree_map_only(torch.Tensor, _wrapped, found)
    return _aliased(func, args, kwargs, found) if ours else found


def _aliased(func, args, kwargs, found):
    """Results that share memory with arguments, as autograd wants to know."""
    if func._schema.is_mutable and isinstance(args[0], OnDevice):
        return args[0]
    try:
        return return_and_correct_aliasing(func, args, kwargs, found)
    except (RuntimeError, AssertionError):
        return found  # several views at once; nothing here writes into them


def _copied(target, source):
    """Copy between the device and the host, in place."""
    if isinstance(target, OnDevice):
        target.host.copy_(source)
    else:
        note("copy to host")
        target.copy_(source.host)
    return target


def _wrapped(x):
    return x if isinstance(x, OnDevice) else OnDevice(x)


def _host(x):
    return x.host


def _moved(func, args, kwargs, from_here):
    """A copy to another device or format."""
    goes = is_here(kwargs["device"]) if kwargs.get("device") is not None else from_here
    if from_here and not goes:
        note("copy to host")
    source = args[0].host if from_here else args[0]
    found = func(source, *args[1:], **{**kwargs, "device": "cpu"} if goes else kwargs)
    return OnDevice(found) if goes else found


def _refuse_mixture(func, args, kwargs, tensors):
    """Raise where the host takes part in what CUDA does not take from it."""
    generator = kwargs.get("generator")
    if generator is not None and generator.device.type == "cpu":
        raise RuntimeError(f"Expected a {NAME!r} device type for generator but found 'cpu'")
    if str(func).startswith(LENGTHS_ON_THE_HOST):
        return
    strangers = [x for x in tensors if not isinstance(x, OnDevice) and x.dim() > 0]
    if strangers and func in INDEXING and isinstance(args[0], OnDevice):
        note("index from host")
        indices = [x for x in args[1] if x is not None]
        strangers = [x for x in strangers if not any(x is index for index in indices)]
    if strangers and len(strangers) < len(tensors):
        raise RuntimeError(f"Expected all tensors to be on the same device, in {func}")


def _note_waits(func, args):
    if func in WAITS:
        note(WAITS[func])
    if func in INDEXING:
        indices = [x for x in args[1] if x is not None]
        if any(x.dtype in (torch.bool, torch.uint8) for x in indices):
            note("boolean index")


class _Constants(torch.overrides.TorchFunctionMode):
    """`torch.tensor` and its like copy a list from the host, which waits until it is there."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        beside = func is torch.Tensor.new_tensor and isinstance(args[0], OnDevice)
        if beside and is_here(kwargs.get("device", NAME)):
            note("list to device")
            dtype = kwargs.get("dtype", args[0].dtype)
            return OnDevice(torch.tensor(args[1], dtype=dtype))
        made = func in (torch.tensor, torch.as_tensor, torch.scalar_tensor)
        if made and is_here(kwargs.get("device")) and not isinstance(args[0], OnDevice):
            note("list to device")
            return OnDevice(func(*args, **{**kwargs, "device": "cpu"}))
        return func(*args, **kwargs)


class Pretended(TorchDispatchMode):
    """Within this block the device is there."""

    def __enter__(self):
        self.constants = _Constants()
        self.constants.__enter__()
        return super().__enter__()

    def __exit__(self, *raised):
        found = super().__exit__(*raised)
        self.constants.__exit__(*raised)
        return found

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return dispatch(func, args, kwargs or {})
