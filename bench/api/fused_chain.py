"""A chain whose energies go into a softmax and nowhere else, by fused code."""

from torch import Tensor

from bench.api.blocks import blocks_pay, read_in_blocks
from bench.api.call import Call
from bench.api.chain_parts import ChainParts
from bench.api.fused import fused_softmax, needs_no_mask
from bench.api.shapes import Mixed


def can_be_fused(chain: ChainParts) -> bool:
    """Whether fused code computes the same; nothing may look at single weights."""
    softmax = chain.normalizer.softmax_temperature is not None or chain.normalizer.has_sink
    return (
        softmax
        and not chain.has_features
        and "weighted_sum" in chain.readout.gives
        and not chain.mask.weighs
        and not any(position.changes_output for position in chain.positions)
        and "dot_form" in chain.score.gives
    )


def holds_a_matrix(chain: ChainParts, call: Call) -> bool:
    """Whether fused code is given a number for each query and key."""
    return not _in_blocks(chain, call) and not _without_a_mask(chain, call)


def read_fused(chain: ChainParts, call: Call) -> Mixed:
    """What the chain reads, without its weights."""
    form = chain.score.dot_form(call)
    assert form is not None, "a score that gives dot_form must have one"
    query, key, scale = form
    source, normalizer = call.memory.source, chain.normalizer
    temperature = normalizer.softmax_temperature or 1.0
    scale = scale / temperature
    plain = _without_a_mask(chain, call)
    if source.packing is not None:
        mask = None if plain else _mask(chain, call, temperature)
        return source.packing.read(query, key, mask=mask, scale=scale)
    sink = normalizer.sink_energy(query) if normalizer.has_sink else None
    # values that are the front of the keys are read with them, which copies neither
    whole = source.shared > 0 and key is source.key
    value = key if whole else source.value
    if _in_blocks(chain, call):
        read = read_in_blocks(query, key, value, call=call, mask=chain.mask, scale=scale, sink=sink)
    else:
        mask, causal = None if plain else _mask(chain, call, temperature), plain and call.causal
        read = fused_softmax(query, key, value, mask=mask, causal=causal, scale=scale, sink=sink)
    return read[..., : source.shared] if whole else read


def _in_blocks(chain: ChainParts, call: Call) -> bool:
    """Whether windows are read block by block."""
    reach = chain.mask.reach
    return reach is not None and not chain.adds_to_energies and blocks_pay(call, reach)


def _without_a_mask(chain: ChainParts, call: Call) -> bool:
    """Whether every key is seen, or every one that is not in the future."""
    return not chain.adds_to_energies and chain.mask.kind == "full" and needs_no_mask(call)


def _mask(chain: ChainParts, call: Call, temperature: float) -> Tensor | None:
    """True where a key is seen, or what is added to its energy."""
    allowed, _ = chain.window(call)
    added: Tensor | None = None
    for position in chain.positions:
        if position.changes_energy:
            energy = position.energy(call)
            added = energy if added is None else added + energy
    if added is None:
        return allowed
    if temperature != 1:
        added = added / temperature
    return added if allowed is None else added.masked_fill(~allowed, float("-inf"))
