"""Computed claims on kernel regression and relative positions."""

import torch
from torch import Tensor

from bench.api.metric import Scored
from tasks.claims.places import drawn, slot_of, weights_of

POINTS, DRAWS, LENGTH, CLIP = 50, 20, 32, 4
POWERS = tuple(range(-2, 11, 2))


def band_and_error() -> list[Scored]:
    """Width of the band and errors of kernel regression on a noisy sine, by the precision."""
    bands, trained, tested = [], [], []
    for power in POWERS:
        slot = slot_of(f"gaussian_kernel[beta={2.0**power},learned=false]", width=1)
        band, error, other = [], [], []
        for seed in range(DRAWS):
            x, y = _sine(seed)
            new, truth = _sine(seed + DRAWS)
            a = weights_of(slot, x[None], x[None])[0, 0]
            b = weights_of(slot, new[None], x[None])[0, 0]
            band.append(torch.special.entr(a).sum(1).exp().mean())
            error.append((a @ y - y).square().mean())
            other.append((b @ y - truth).square().mean())
        bands.append(float(torch.stack(band).mean()))
        trained.append(float(torch.stack(error).mean()))
        tested.append(float(torch.stack(other).mean()))
    steps = range(1, len(POWERS))
    best = min(tested)
    return [
        *(
            Scored(metric=name, value=value, axis="log2_beta", x=float(power))
            for name, values in (
                ("band_width_keys", bands),
                ("train_mse", trained),
                ("test_mse", tested),
            )
            for power, value in zip(POWERS, values, strict=True)
        ),
        *(
            Scored(
                metric="band_change_keys",
                value=bands[at] - bands[at - 1],
                axis="log2_beta",
                x=float(POWERS[at]),
            )
            for at in steps
        ),
        Scored(metric="train_error_share_left", value=trained[-1] / trained[0]),
        Scored(metric="test_error_ratio_narrowest_to_best", value=tested[-1] / best),
        Scored(metric="test_error_ratio_widest_to_best", value=tested[0] / best),
    ]


def window_of_relative_positions() -> list[Scored]:
    """Parameters of relative positions, and the weight on keys further away than the clip."""
    here = torch.arange(LENGTH)
    beyond = (here[:, None] - here[None, :]).abs() > CLIP
    slot = slot_of(f"shaw_rpr[clip={CLIP}]", regime="self", head="multi[heads=2]")
    x = drawn(4, LENGTH, 8, seed=1)
    weights = weights_of(slot, x, x)
    plain = slot_of("scaled_dot[position=none]", regime="self", head="multi[heads=2]")
    more = sum(p.numel() for p in slot.parameters()) - sum(p.numel() for p in plain.parameters())
    heads, width = 2, slot.heads.dims.key_width
    return [
        Scored(metric="weight_beyond_clip_share", value=float(_outside(weights, beyond))),
        Scored(
            metric="parameters_over_formula_ratio",
            value=more / (heads * 2 * (2 * CLIP + 1) * width),
        ),
    ]


def _outside(weights: Tensor, beyond: Tensor) -> Tensor:
    return (weights * beyond).sum(-1).mean()


def _sine(seed: int) -> tuple[Tensor, Tensor]:
    """Points of y = 2 sin(x) + x + noise on [0, 5], the data of the source."""
    x = torch.rand(
        POINTS, 1, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    ).mul(5)
    noise = drawn(POINTS, 1, seed=seed + 1000)
    return x, 2 * torch.sin(x) + x + 0.5 * noise
