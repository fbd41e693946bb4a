"""What the preset `modern` compares: rosters by what each group claims, and where they stand."""

from bench.api.comparison import Entry, entries

POSITIONS = (
    "nope",
    "sinusoid",
    "learned",
    "tupe",
    "shaw_rpr",
    "transformer_xl",
    "t5_bias",
    "deberta",
    "alibi",
    "kerple",
    "fire",
    "rope",
    "xpos",
    "cope",
    "fox",
    "fox_pro",
    "path",
    "canon",
)
"""What tells positions apart, in softmax attention; the baseline has none."""
RECURRENCES = (
    "linear_attention",
    "based",
    "retnet",
    "gla",
    "mamba2_ssd",
    "deltanet",
    "gated_deltanet",
    "kda",
)
"""What keeps a state of one size."""
STATE_SIZES = tuple(f"mamba2_ssd[head=multi[key_width={width}]]" for width in (4, 64))
"""One mechanism with a quarter and with four times of the state that it has beside the others."""
LAYERS = tuple(
    f"{name}[head=short_convolution]" for name in ("retnet", "gla", "mamba2_ssd", "gated_deltanet")
)
"""Recurrences with a norm and a gate behind, as in their papers, and convolutions in front, which
the papers of `retnet` and `gla` do not have."""
CACHES = ("mqa", "gqa", "mla", "sliding_window[window=32]", "streaming[window=28]")
"""Softmax attention that keeps less than a key and a value of every head and token."""
WEIGHTS = (
    "softmax_off_by_one",
    "learned_sink",
    "sigmoid_attention",
    "stick_breaking",
    "differential",
)
"""Other weights of the same keys."""
TRACKERS = (
    "linear_attention",
    "mamba2_ssd",
    "deltanet",
    "deltanet[reach=2.0]",
    "gated_deltanet",
    "gated_deltaproduct",
    "kda",
    "rope",
)
"""What can or cannot follow a state: a reach of two lets the delta rule turn a key around."""
COPIERS = ("nope", "alibi", "rope", "fox", "linear_attention", "mamba2_ssd", "gated_deltanet")
NEEDLES = (
    "rope",
    "sliding_window[window=32]",
    "linear_attention",
    "retnet",
    "gla",
    "mamba2_ssd",
    "deltanet",
    "gated_deltanet",
)
TEXTS = ("rope", "alibi", "learned_sink", "mamba2_ssd", "gated_deltanet")
"""Networks whose parameters are within 2% of the baseline's as they are."""
WIDENED = {"gqa": 288, "mla": 283}
"""Hidden widths of feed-forward sublayers (256 elsewhere) that give back the parameters which
smaller projections save, in blocks of width 64."""
WITHOUT_SINKS = ("softmax_off_by_one", "learned_sink", "gated_attention", "softpick")
SINKS = (
    *WITHOUT_SINKS,
    "differential",
    "stick_breaking",
    "rope",
    *(f"{name}[position=rope]" for name in WITHOUT_SINKS),
)
"""What promises that the first key need not take the weight that no other key should have; with
rotary positions, too, because networks that know no order learn little of texts."""


def texts(backbone: str) -> tuple[Entry, ...]:
    """Language models of one number of parameters.

    Args:
        backbone: Options of the decoder in the preset, without brackets.
    """
    widened = (
        Entry(variant=name, backbone=f"transformer_decoder[{backbone},feed_width={width}]")
        for name, width in WIDENED.items()
    )
    return (*entries(*TEXTS), *widened)
