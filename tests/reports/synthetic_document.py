"""A document with everything that a first screen can have, as full as it can be."""

from dataclasses import replace

from reports.blocks import Document, QualityCost, QualityPoint, TableBlock, TableCell
from reports.choices import COLUMNS

NEEDS = (
    ("copy unknown words", "pointer_generator", "1.00 against 0.10 ± 0.05", "1.2x training step"),
    ("translate sentences", "additive", "tied with 4 others, 16.7 ± 0.9 BLEU", "1.1x"),
    ("read long documents", "hierarchical_document", "0.81 against 0.74 ± 0.03", "0.6x"),
    ("extrapolate in length", "alibi", "0.97 against 0.31 ± 0.11", "1.0x training step"),
    ("recall pairs", "scaled_dot", "tied with 11 others", "1.0x training step, the baseline"),
    ("recognize speech", "location_sensitive", "error rate 0.12 against 0.35 ± 0.08", "1.4x"),
    ("translate while reading", "monotonic_chunkwise", "9.1 against 7.2 ± 1.1 BLEU", "1.9x"),
    ("regress on few points", "nadaraya_watson", "0.021 against 0.140 ± 0.020", "0.8x"),
)
NAMES = [
    "scaled_dot",
    "additive",
    "multiplicative",
    "location_sensitive",
    "pointer_generator",
    "alibi",
    "rope",
    "relative_shaw",
    "sliding_window",
    "no_attention",
    "sparsemax",
    "entmax",
    "hard_monotonic",
    "mocha",
    "hierarchical_document",
    "memory_network",
    "linear_attention",
    "gaussian_kernel",
    "coverage",
    "self_attention",
]


def choices() -> TableBlock:
    """Eight rows with the columns of a report, each as long as such a row gets."""
    rows = tuple(
        (
            TableCell(text=need),
            TableCell(text="transduction[rule=reverse]", marks=("1 of 7 tests, 28 variants",)),
            TableCell(text=variant, code=True),
            TableCell(text=f"Correct prefix beyond training {evidence}"),
            TableCell(
                text="0.464 ± 0.011 of scaled_dot",
                marks=("no positions", "after training 1.00 against 0.999 (0.996–1.000), n.s."),
            ),
            TableCell(text="< 0.001"),
            TableCell(text="5"),
            TableCell(text="0.0139 (nearest source)"),
            TableCell(text="luong_input_feeding (0.540 ± 0.018, which costs more) and 17 others"),
            TableCell(text=cost),
        )
        for need, variant, evidence, cost in NEEDS
    )
    return TableBlock(key="choices", title="What to choose", columns=COLUMNS, rows=rows)


def overview(count: int = len(NAMES)) -> QualityCost:
    """Points of which many lie close together."""
    places = [
        (0.6 + 0.02 * (at * 7 % 13) + 0.004 * at, 1.0 + 0.13 * (at * 5 % 11) + 0.01 * at)
        for at in range(count)
    ]
    points = [
        QualityPoint(
            name=NAMES[at],
            quality=quality,
            low=quality - 0.05,
            high=quality + 0.05,
            cost=cost,
            on_front=not any(
                (other[0] >= quality and other[1] <= cost) and other != (quality, cost)
                for other in places
            ),
            kind="baseline" if at == 1 else "uniform" if at == 9 else "variant",
        )
        for at, (quality, cost) in enumerate(places)
    ]
    return QualityCost(
        points=tuple(points),
        quality_title="mean rank-free quality (share of the best)",
        cost_title="training step (times the baseline)",
        limits=(0.0, 1.0),
        title="Quality against cost",
        caption="Mean over 12 tasks with 95% intervals. Filled marks with bold names are on the "
        "Pareto front: nothing is better and cheaper.",
    )


def with_first_screen(document: Document) -> Document:
    """The document with a sentence, choices and an overview; its sections are folded."""
    return replace(
        document,
        title="Attention bench: families",
        headline="Copying needs a copy output; elsewhere at this size additive and scaled "
        "dot-product attention are tied, and scaled dot product is the cheaper.",
        choices=choices(),
        overview=overview(),
        overview_figure=None,
        sections=tuple(
            replace(section, folded=True, synopsis="12 variants; 3 better than the baseline")
            for section in document.sections
        ),
    )
