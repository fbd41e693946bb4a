"""One hop over a memory, shared by mechanisms that read it several times."""

import torch
from jaxtyping import Float
from torch import Tensor

from bench.api.call import Call, Dims
from bench.api.errors import Refused
from bench.api.shapes import Allowed, Weights
from variants.mechanisms.biased import biased
from variants.normalizers.masked_softmax import masked_softmax


def check_hops(name: str, dims: Dims) -> None:
    """Check that a mechanism of several hops can be built.

    Raises:
        Refused: Values are not as wide as queries.
    """
    if dims.value_width != dims.query_width:
        raise Refused(
            f"{name} adds what it read to the query, so values must be as wide as queries, "
            f"got {dims.value_width} and {dims.query_width}."
        )


def flops_of_hop(batch: int, heads: int, queries: int, keys: int, dims: Dims) -> int:
    """Operations of a dot product and a weighted sum for every query and key."""
    return 4 * batch * heads * queries * keys * dims.key_width


def read_memory(
    call: Call,
    asked: Float[Tensor, "B H L E"],
    key: Float[Tensor, "B H S E"],
    value: Float[Tensor, "B H S E"],
    allowed: Allowed | None,
    more: Float[Tensor, "#B H L S"] | None,
    *,
    linear: bool = False,
) -> tuple[Float[Tensor, "B H L E"], Weights]:
    """Read by softmax of unscaled products, or by the products themselves where `linear`.

    A probe's edit is applied to the weights of every hop, and `more`, which positions give, is
    added to the products.
    """
    energy = biased(asked @ key.transpose(-1, -2), more)
    if not linear:
        weights = masked_softmax(energy, allowed)
    else:
        weights = energy if allowed is None else torch.where(allowed, energy, 0.0)
    if call.edit is not None:
        weights = call.edit(weights, call)
    return weights @ value, weights


def oracle_read(
    asked: Float[Tensor, " E"],
    key: Float[Tensor, "S E"],
    value: Float[Tensor, "S E"],
    more: Float[Tensor, " S"],
    visible: int,
) -> tuple[Float[Tensor, " E"], Float[Tensor, " S"]]:
    """`read_memory` for one query that sees the first keys, by loops."""
    energies = []
    for s in range(visible):
        products = (asked[e] * key[s, e] for e in range(len(asked)))
        energies.append(sum(products, more[s]))
    top = max((float(energy.detach()) for energy in energies), default=0.0)
    exps = [torch.exp(energy - top) for energy in energies]
    total = sum(exps, asked.new_zeros(()))
    found, row = torch.zeros_like(value[0]), []
    for s in range(len(key)):
        weight = exps[s] / total if s < visible else asked.new_zeros(())
        found = found + weight * value[s]
        row.append(weight)
    return found, torch.stack(row)
