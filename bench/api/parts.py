"""Calls that are divided: some queries after the others."""

from collections.abc import Callable

import torch

from bench.api.call import Call, MixResult
from bench.api.source import Tree

Answer = Callable[[Call, Tree], MixResult]
"""What answers a call, from what is carried before it."""
PART = 2**22
"""Numbers that are held at once where neither weights nor gradients are wanted: 17 MB in float32.
With 4,096 keys a processor takes about 0.7 of the time that it takes with all of them."""
ON_A_GPU = 16
"""Parts are so many times as large on a GPU, where starting an operation takes longer than a small
one itself (not timed)."""


def part_length(call: Call, of_one: int, most: int) -> int:
    """Queries that are answered together.

    Args:
        call: All of them.
        of_one: Numbers that a single query holds.
        most: Numbers that a part may hold on a processor.
    """
    length = call.query.shape[2]
    # gradients keep the rows of all parts, and compiled code would hold every part
    if torch.is_grad_enabled() or torch.compiler.is_compiling():
        return length
    most = most if call.query.device.type == "cpu" else ON_A_GPU * most
    # two parts save no time
    return length if of_one * length <= 2 * most else max(1, most // of_one)


def mix_in_parts(
    call: Call,
    carried: Tree,
    size: int,
    answer: Answer,
    *,
    want_weights: bool = False,
    past_alone: bool = False,
) -> MixResult:
    """Answer so many queries at a time, and put the answers together.

    Args:
        call: All queries.
        carried: What is carried before the first one.
        size: Queries of a part.
        answer: What answers a part.
        want_weights: Whether to keep the weights of the parts, where there are any.
        past_alone: Whether a part of a causal call is given its past alone, as if no key had come
            since; else the keys of the whole call.
    """
    keys, length = call.memory.num_keys, call.query.shape[2]
    found: list[MixResult] = []
    for index, query in enumerate(call.query.split(size, 2)):
        part = call.part(index * size, query)
        if past_alone and call.causal:
            later = length - index * size - query.shape[2]
            part.memory = call.memory.first(keys - later)
        one = answer(part, carried)
        carried = one.carried
        # what earlier parts carried would be kept alive
        kept = one._replace(carried={})
        found.append(kept if want_weights else kept._replace(weights=None))
    if len(found) == 1:
        return found[0]._replace(carried=carried)
    weights = [one.weights for one in found if one.weights is not None]
    terms = {name: torch.cat([one.terms[name] for one in found], 1) for name in found[0].terms}
    output = torch.cat([one.output for one in found], 2)
    return MixResult(output, torch.cat(weights, 2) if weights else None, carried, terms)
