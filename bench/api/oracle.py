"""The chain by plain loops: one query, one head, one unpadded example at a time."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor

from bench.api.call import Read
from bench.api.chain_parts import ChainParts
from bench.api.inputs import Inputs
from bench.api.noise import Noise
from bench.api.one_query import OneQuery, OracleState
from bench.api.source import Source, leaf


def chain_oracle(
    chain: ChainParts,
    query: Float[Tensor, "Hq L Eq"],
    source: Source,
    read: Read,
    *,
    row: int = 0,
    noise: Noise | None = None,
    progress: float = 1.0,
    extras: Mapping[str, Float[Tensor, "L ..."]] | None = None,
    terms: dict[str, Tensor] | None = None,
    places: Sequence[int] | None = None,
) -> tuple[Float[Tensor, "Hq P Ev"], Float[Tensor, "Hq P S"]]:
    """Answer every query by loops; the oracle of every combination of components.

    Args:
        chain: The components.
        query: Queries of one example.
        source: Its keys, one row, no padding.
        read: How to read.
        row: Index of the example in the batch, which addresses the noise.
        noise: Needed by `read="train"` where the mechanism samples.
        progress: Share of training done.
        extras: Declared inputs of each query, by name.
        terms: Filled with the terms, by name; None where nobody wants them.
        places: Queries to answer, where none depends on earlier ones; None for all.
    """
    heads, length, _ = query.shape
    outputs, weights, said = [], [], []
    for head in range(heads):
        of_head = _questions(chain, source, head, heads)
        asked = partial(of_head, read=read, row=row, noise=noise, progress=progress)
        state: dict[str, OracleState] = {"normalizer": {}}
        state |= {history.branch: {} for history in chain.histories}
        rows, noted = [], []
        for place in range(length) if places is None else places:
            inputs = _of_query(extras or {}, place, head, chain.query_inputs)
            one = asked(query=query[head, place], position=place, extras=inputs)
            rows.append(_one(chain, one, state))
            noted.append(one.said)
        said.append(noted)
        outputs.append(torch.stack([output for output, _ in rows]))
        weights.append(torch.stack([weight for _, weight in rows]))
    if terms is not None:
        found = [_terms(chain, heads_of_query) for heads_of_query in zip(*said, strict=True)]
        names = found[0] if found else {}
        terms.update({name: torch.stack([term[name] for term in found]) for name in names})
    return torch.stack(outputs), torch.stack(weights)


def _questions(chain: ChainParts, source: Source, head: int, heads: int) -> Callable[..., OneQuery]:
    """Makes the queries of one of so many heads, which all see the same of the source."""
    group, value_group = heads // source.key.shape[1], heads // source.value.shape[1]
    return partial(
        OneQuery,
        key=source.key[0, head // group],
        value=source.value[0, head // value_group],
        head=head,
        causal=chain.dims.regime == "causal",
        tokens=None if source.tokens is None else source.tokens[0].tolist(),
        key_extras={
            name: leaf(source.extras, name)[0, wanted.head(head // group)]
            for name, wanted in chain.key_inputs.items()
        },
    )


def _of_query(
    extras: Mapping[str, Tensor], place: int, head: int, by_head: Inputs
) -> dict[str, Tensor]:
    """Declared inputs of one query; those that are projected for each head, of its head."""
    found = {name: given[place] for name, given in extras.items()}
    return {
        name: one[by_head[name].head(head)] if name in by_head else one
        for name, one in found.items()
    }


def _terms(chain: ChainParts, said: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """Terms of one query, from what was written down for each of its heads."""
    found: dict[str, Tensor] = {}
    for part in (chain.normalizer, *chain.histories):
        found |= part.oracle_terms(said)
    return found


def _one(
    chain: ChainParts, one: OneQuery, state: dict[str, OracleState]
) -> tuple[Float[Tensor, " Ev"], Float[Tensor, " S"]]:
    for history in chain.histories:
        history.oracle_advance(one, state[history.branch])
    energy = chain.score.oracle(one, _features(chain, one, state))
    for position in chain.positions:
        if position.changes_energy:
            energy = energy + position.oracle_energy(one)
    allowed, post_weight = chain.mask.oracle(one)
    scored = chain.score.oracle_scored(one)
    allowed = [allowed[s] and scored[s] for s in range(one.num_keys)]
    weights = chain.normalizer.oracle(energy, allowed, state["normalizer"], one)
    weights = weights * torch.as_tensor(post_weight, dtype=weights.dtype)
    for history in chain.histories:
        history.oracle_update(one, weights, state[history.branch])
    return _read(chain, one, weights, allowed), weights


def _read(
    chain: ChainParts, one: OneQuery, weights: Float[Tensor, " S"], allowed: list[bool]
) -> Float[Tensor, " Ev"]:
    output = chain.readout.oracle(one, weights, allowed)
    for position in chain.positions:
        if position.changes_output:
            output = output + position.oracle_output(one, weights)
    return output


def _features(
    chain: ChainParts, one: OneQuery, state: dict[str, OracleState]
) -> Float[Tensor, "S F"] | None:
    parts = [history.oracle_features(one, state[history.branch]) for history in chain.histories]
    parts += [
        position.oracle_features(one) for position in chain.positions if position.gives_features
    ]
    return torch.cat(parts, -1) if parts else None
