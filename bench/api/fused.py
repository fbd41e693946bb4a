"""Softmax attention by PyTorch's fused kernels, for grouped keys and values of any width."""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from bench.api.call import Call
from bench.api.heads import expand_heads
from bench.api.shapes import Key, Mixed, Query, Value

WIDEST = 256
"""Widest vectors for which a kernel of a GPU divides the keys of one query among its cores."""
ALIGNED = 8
"""Numbers by which a width may grow, so that kernels of a GPU still take it."""
HALVES = (torch.bfloat16, torch.float16)
"""Formats that this kernel takes."""


def fused_softmax(
    query: Query,
    key: Key,
    value: Value,
    *,
    mask: Tensor | None,
    causal: bool,
    scale: float,
    sink: Float[Tensor, " #Hq"] | None = None,
) -> Mixed:
    """Read the values by a softmax over scaled dot products.

    Args:
        query: The queries.
        key: As many heads of keys as of queries, or a divisor of that; each key head then serves
            neighboring query heads.
        value: Values of the keys.
        mask: True where a key is seen, or what is added to the energies, `#B #Hq L S`; None where
            every key is seen and nothing added.
        causal: Whether query i sees keys up to i; only without a mask.
        scale: Factor of the dot products.
        sink: Energy of a key without a value beside the others, for each head; None for no such
            key.
    """
    if sink is not None:
        return _beside_a_sink(query, key, value, mask=mask, causal=causal, scale=scale, sink=sink)
    heads, length = query.shape[1:3]
    paired = key.shape[1] == value.shape[1]
    if length == 1 and paired and (heads > key.shape[1] or query.device.type != "cpu"):
        return _one_query(query, key, value, mask=mask, scale=scale)
    wanted = value.shape[3]
    if length > 1:
        # the kernels take equal widths; for others PyTorch holds a matrix of all energies
        width = max(key.shape[3], wanted)
        query, key, value = (_widened(x, width) for x in (query, key, value))
    read = functional.scaled_dot_product_attention(
        query,
        expand_heads(key, heads),
        expand_heads(value, heads),
        attn_mask=mask,
        is_causal=causal,
        scale=scale,
    )
    return read[..., :wanted]


def needs_no_mask(call: Call) -> bool:
    """Whether every key is seen, or every one that is not in the future."""
    if call.memory.source.mask is not None:
        return False
    # is_causal aligns top-left, which is right only where the queries are all of the keys
    square = call.offset == 0 and call.query.shape[2] == call.memory.num_keys
    return not call.causal or square


def read_softmax(call: Call, query: Query, key: Key, value: Value, scale: float) -> Mixed:
    """Read by the softmax over the keys that a call may see, with vectors of its own.

    Args:
        call: Says where queries and keys stand, and which keys are real.
        query: As many as the call has.
        key: The same.
        value: What is read of each key.
        scale: Factor of the dot products.
    """
    plain = needs_no_mask(call)
    mask = None if plain else call.allowed
    causal = plain and call.causal
    return fused_softmax(query, key, value, mask=mask, causal=causal, scale=scale)


def _beside_a_sink(
    query: Query,
    key: Key,
    value: Value,
    *,
    mask: Tensor | None,
    causal: bool,
    scale: float,
    sink: Float[Tensor, " #Hq"],
) -> Mixed:
    """`fused_softmax` with one more key, the sink, in front of the others.

    Vectors get one more dimension. In it the sink is 1 and other keys are 0, and each query has the
    energy of the sink. Under causality a dummy query is put in front as well, so that each real
    query sees the sink besides its own keys.
    """
    energy = (sink.to(query.dtype) / scale).view(1, -1, 1, 1).expand(*query.shape[:3], 1)
    first = functional.pad(key.new_ones(1), (key.shape[3], ALIGNED - 1))
    first = first.expand(*key.shape[:2], 1, -1)
    query = functional.pad(torch.cat((query, energy), 3), (0, ALIGNED - 1, int(causal), 0))
    key = torch.cat((first, functional.pad(key, (0, ALIGNED))), 2)
    value = functional.pad(value, (0, 0, 1, 0))
    if mask is not None:
        mask = functional.pad(mask, (1, 0), value=True if mask.dtype == torch.bool else 0.0)
    read = fused_softmax(query, key, value, mask=mask, causal=causal, scale=scale)
    return read[:, :, int(causal) :]


def _one_query(
    query: Float[Tensor, "B Hq 1 E"], key: Key, value: Value, *, mask: Tensor | None, scale: float
) -> Float[Tensor, "B Hq 1 Ev"]:
    """Read for a single query of each head without a copy of the keys that heads share."""
    shared = query.shape[1] // key.shape[1]
    on_processor = query.device.type == "cpu"
    narrow = key.shape[3] == value.shape[3] <= WIDEST
    if not on_processor and mask is None and narrow and key.dtype in HALVES:
        return functional.scaled_dot_product_attention(
            query, key, value, scale=scale, enable_gqa=shared > 1
        )
    # single queries have no order, so those of a key head are asked as one sequence
    mask = mask if mask is None or mask.shape[1] == 1 else _of_key_heads(mask, shared)
    query = _of_key_heads(query, shared)
    if on_processor:
        read = fused_softmax(query, key, value, mask=mask, causal=False, scale=scale)
    else:
        read = read_by_products(query, key, value, mask=mask, scale=scale)
    return read.flatten(1, 2).unsqueeze(2)


def read_by_products(
    query: Float[Tensor, "B H G E"],
    key: Float[Tensor, "B H S E"],
    value: Float[Tensor, "B H S Ev"],
    *,
    mask: Tensor | None,
    scale: float,
) -> Float[Tensor, "B H G Ev"]:
    """The same by two products of matrices, for a few queries and many keys.

    A kernel of a GPU that takes masks, wide vectors or float32 probably gives all keys of a head to
    one of its cores: over 32,768 keys of one head it took 2.4 ms, where two products take a tenth
    of that. Energies are in float32, as in the kernels.
    """
    return softmax_of(_energies(query, key) * scale, mask).to(value.dtype) @ value


def softmax_of(energy: Float[Tensor, "B H G S"], mask: Tensor | None) -> Float[Tensor, "B H G S"]:
    """Weights of keys, as the kernels of PyTorch have them.

    Args:
        energy: Energies of all keys.
        mask: True where a key is seen, or what is added; None where all are seen.
    """
    if mask is None:
        return torch.softmax(energy, -1)
    added = mask if mask.dtype != torch.bool else torch.where(mask, 0.0, float("-inf"))
    energy = energy + added
    # a row that sees no key reads zero and has no gradient, as in the kernels
    blind = energy.isneginf().all(-1, keepdim=True)
    return torch.softmax(energy.masked_fill(blind, 0.0), -1).masked_fill(blind, 0.0)


def _energies(
    query: Float[Tensor, "B H G E"], key: Float[Tensor, "B H S E"]
) -> Float[Tensor, "B H G S"]:
    """Dot products in float32 at least, under autocast as well."""
    kind = query.device.type
    if not query.is_meta and torch.is_autocast_enabled(kind):
        # or else the product of two that are float32 would be taken in half precision
        with torch.autocast(kind, enabled=False):
            return _energies(query, key)
    if (
        query.dtype == key.dtype
        and key.dtype in HALVES
        and key.is_cuda
        and not torch.is_grad_enabled()
    ):
        # CUDA adds up in float32 anyway, and gives that sum, which has no gradient, without a copy
        # of the keys
        found = torch.bmm(query.flatten(0, 1), key.flatten(0, 1).mT, out_dtype=torch.float32)
        return found.unflatten(0, key.shape[:2])
    wide = torch.promote_types(query.dtype, torch.float32)
    return query.to(wide) @ key.to(wide).mT


def _of_key_heads(x: Float[Tensor, "B Hq 1 n"], shared: int) -> Float[Tensor, "B Hk G n"]:
    """What belongs to the query heads of one key head, one behind the other."""
    return x.squeeze(2).unflatten(1, (-1, shared))


def _widened(x: Float[Tensor, "B H n E"], width: int) -> Float[Tensor, "B H n W"]:
    """The same vectors with zeros behind them, which add nothing to a dot product."""
    missing = width - x.shape[3]
    return functional.pad(x, (0, missing)) if missing else x
