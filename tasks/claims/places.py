"""Attention by its selector, for claims that are computed and not trained."""

import torch
from jaxtyping import Float
from torch import Tensor

from bench.api.build import SlotPlace, build_slot
from bench.api.call import Read, regime_of
from bench.api.noise import Noise
from bench.api.places import ANYWHERE
from bench.api.resolve import resolve
from bench.api.selector import parse
from bench.api.slot import Slot


def slot_of(
    selector: str, *, regime: str = "cross", width: int = 8, source: int = 0, head: str = "raw"
) -> Slot:
    """Attention in float64, with parameters drawn from one seed.

    Args:
        selector: The variant.
        regime: Of the place.
        width: Of queries.
        source: Width of what is attended to; 0 for that of queries.
        head: Heads, `raw` for states as they are.

    Raises:
        Refused: The variant cannot stand there.
    """
    torch.manual_seed(0)
    place = SlotPlace(
        regime=regime_of(regime),
        query_width=width,
        source_width=source or width,
        head=head,
        source_vocab=17,
        word_width=width,
        given=frozenset(ANYWHERE),
    )
    return build_slot(resolve(parse(selector)), place).double().eval()


@torch.no_grad()
def weights_of(
    slot: Slot,
    queries: Float[Tensor, "B L D"],
    source: Float[Tensor, "B S Dk"],
    mask: Tensor | None = None,
    *,
    read: Read | None = None,
    noise: Noise | None = None,
) -> Float[Tensor, "B H L S"]:
    """Attention weights of a slot that attends to another sequence."""
    memory = slot.prepare(source, mask)
    start = slot.start(memory, queries)
    _, attended = slot.attend(queries, memory, start, read=read, noise=noise, want_weights=True)
    assert attended.weights is not None, "asked for by want_weights"
    return attended.weights


def drawn(*shape: int, seed: int = 0) -> Tensor:
    """Independent normal numbers of variance one, in float64."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
