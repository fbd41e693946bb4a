"""Computed claims on draws, hidden keys, order and the future."""

import torch
from torch import Tensor

from bench.api import registry
from bench.api.errors import BenchError
from bench.api.metric import Scored
from bench.api.noise import Noise
from bench.api.slot import Slot
from tasks.claims.places import drawn, slot_of, weights_of

KEYS, WIDTH = 16, 8


def repeated_reads() -> list[Scored]:
    """Largest change of weights between two seeds of the draws, soft and hard."""
    queries, source = drawn(4, 3, WIDTH, seed=1), drawn(4, KEYS, WIDTH, seed=2)

    def change(name: str, read: str) -> float:
        slot = slot_of(name)
        one, other = (
            weights_of(slot, queries, source, read=read, noise=Noise(seed))  # type: ignore[arg-type]
            for seed in (1, 2)
        )
        return float((one - other).abs().max())

    return [
        Scored(metric="soft_change", value=change("scaled_dot", "sample")),
        Scored(metric="additive_change", value=change("additive", "sample")),
        Scored(metric="gumbel_sample_change", value=change("hard_gumbel_st", "sample")),
        Scored(metric="reinforce_sample_change", value=change("hard_reinforce", "sample")),
        Scored(metric="gumbel_best_key_change", value=change("hard_gumbel_st", "hard")),
    ]


def hidden_by_a_million() -> list[Scored]:
    """Weight of hidden keys when their energy is overwritten by -1e6."""
    slot = slot_of("scaled_dot[normalizer=softmax[mask_mode=neg_1e6_fill]]", width=WIDTH)
    shown = torch.arange(KEYS) < KEYS // 2
    some, none = shown.expand(4, KEYS), torch.zeros(4, KEYS, dtype=torch.bool)
    queries, source = drawn(4, 1, WIDTH, seed=1).float(), drawn(4, KEYS, WIDTH, seed=2).float()
    slot = slot.float()

    def hidden(mask: Tensor, slot: Slot, scale: float = 1.0) -> float:
        a = weights_of(slot, scale * queries, source, mask)
        return float(a[:, 0, 0][~mask].view(4, -1).sum(1).max())

    # one key, far on the other side of the query: its energy is as low as what hides the others
    far = torch.zeros(1, 2, WIDTH)
    far[0, 0] = -1.0
    low = weights_of(slot, torch.full((1, 1, WIDTH), 1e6), far, torch.tensor([[True, False]]))
    right = slot_of("scaled_dot", width=WIDTH).float()
    return [
        Scored(metric="hidden_weight", value=hidden(some, slot)),
        Scored(metric="hidden_weight_at_large_energies", value=hidden(some, slot, 1e3)),
        Scored(metric="empty_row_weight", value=hidden(none, slot)),
        Scored(metric="hidden_weight_beside_low_energies", value=float(low[0, 0, 0, 1])),
        Scored(metric="empty_row_weight_minus_infinity", value=hidden(none, right)),
    ]


def order_of_the_source() -> list[Scored]:
    """How far attention to a shuffled sequence is from the shuffled attention to the sequence."""
    order = torch.randperm(KEYS, generator=torch.Generator().manual_seed(3))
    x = drawn(2, KEYS, WIDTH, seed=1)

    def gap(name: str, regime: str) -> float:
        slot = slot_of(name, regime=regime, head="multi[heads=2]")
        return float((_alone(slot, x[:, order]) - _alone(slot, x)[:, order]).abs().max())

    return [
        *(
            Scored(
                metric="order_change",
                value=gap(f"{name}[position=none]", "self"),
                axis="variant",
                x=float(at),
            )
            for at, name in enumerate(("scaled_dot", "dot", "additive", "general", "cosine"))
        ),
        Scored(metric="sinusoid_order_change", value=gap("sinusoid", "self")),
        Scored(metric="causal_order_change", value=gap("scaled_dot[position=none]", "causal")),
    ]


def weight_of_the_future() -> list[Scored]:
    """Largest change of earlier outputs under another future, for every variant that is causal."""
    x = drawn(2, KEYS, WIDTH, seed=1)
    other = x.clone()
    other[:, KEYS // 2 :] = drawn(2, KEYS // 2, WIDTH, seed=2)
    found: list[Scored] = []
    refused = 0
    for name in registry.listed_variants():
        try:
            slot = slot_of(name, regime="causal", head="multi[heads=2]")
            gap = (_alone(slot, x) - _alone(slot, other))[:, : KEYS // 2].abs().max()
        except BenchError:
            refused += 1
            continue
        found.append(
            Scored(metric="future_change", value=float(gap), axis="variant", x=float(len(found)))
        )
    return [
        *found,
        Scored(metric="causal_variants_count", value=float(len(found))),
        Scored(metric="not_causal_variants_count", value=float(refused)),
    ]


def _alone(slot: Slot, x: Tensor) -> Tensor:
    """Self-attention as a layer runs it: positions are added first."""
    x = slot.variant.embed(x, 0)
    if slot.heads.dims.regime == "causal":
        tokens = torch.arange(x.shape[1]).expand(x.shape[:2])
        return slot.attend(x, None, slot.start(None, x), own=(x, None, tokens))[0].detach()
    memory = slot.prepare(x)
    return slot.attend(x, memory, slot.start(memory, x))[0].detach()
