"""Short labels beside the name of a variant, and what they mean."""

from collections.abc import Iterable, Iterator

from bench.api.headline import is_made
from reports.catalog import Certificates, certificate_of
from reports.ranked_table.comparison import Comparison
from reports.ranked_table.verdicts import against_ranks

RULE_MARK = "the rule of the data, a ceiling"
"""Beside a non-neural baseline that nothing can beat."""
MARKS = {
    "baseline": "the differences are to it",
    "control": "a reference, not a mechanism to choose",
    "red certificate": "a conformance check fails, so it is not ranked",
    "not certified": "this run stored no conformance check of it",
    "decoder differs": "the variant has its own decoder or encoder, as in its paper",
    "search differs": "the variant has its own search for outputs",
    "other backbone": "its network is not that of the baseline",
    "other network options": (
        "its network is that of the baseline with other options, such as the widths that "
        "`run --match` chose"
    ),
    "other protocol": "its training is not that of the baseline",
    "fewer seeds": "2 of 3 seeds: the mean is of those that have a score",
    "not above": (
        "not above {uniform_baseline} in 2 of 3 seeds: these seeds have failed to learn, for their "
        "validation score is no better than its mean (their test scores count in the mean)"
    ),
    "never above": (
        "never above {uniform_baseline}: on validation no seed has a better ranking score, so the "
        "score is no evidence about the mechanism"
    ),
    "not above beyond": (
        "not above {uniform_baseline} beyond training in 2 of 3 seeds: on validation the score of "
        "inputs longer than any of training is no better than its mean, which does not say whether "
        "these seeds learned what they were trained on"
    ),
    "never above beyond": (
        "never above {uniform_baseline} beyond training: on validation no seed has a better score "
        "of inputs longer than any of training, which does not say whether it learned what it was "
        "trained on"
    ),
    "planned test": (
        "worse (or better) than {baseline} by the planned test: the test against the baseline was "
        "fixed before the run, is of the whole test, and is significant; the ranks come from a "
        "stricter correction over all pairs"
    ),
    "n.s. against the best": "on a later rank, but not significantly different from the first line",
    "better on common seeds": (
        "significantly better than the first line on the seeds that both have, though the mean "
        "over all seeds is worse"
    ),
}
"""What each mark beside a name means; where its text has numbers, an example stands for all."""
COUNTED = (
    "fewer seeds",
    "not above",
    "never above",
    "not above beyond",
    "never above beyond",
    "planned test",
)
"""Marks whose text differs from line to line, so that their meaning has an example of it."""


def marks(comparison: Comparison, variant: str, certificates: Certificates) -> list[str]:
    """Short labels that a reader must see beside the name."""
    return [text for text, _ in _marks(comparison, variant, certificates)]


def is_about_longer_inputs(comparison: Comparison) -> bool:
    """Whether variants are held against uniform attention on inputs longer than any of training.

    Who is not above it there may have learned what it was trained on.
    """
    return is_made(comparison.whole.metric, "beyond_training")


def validation_inputs(comparison: Comparison) -> str:
    """On what variants are held against uniform attention, in words."""
    longer = is_about_longer_inputs(comparison)
    return "validation inputs longer than those of training" if longer else "validation"


def legend_of_marks(found: Iterable[Comparison], certificates: Certificates) -> str:
    """What the marks of some tables mean, those alone that stand there; empty without any."""
    used: dict[str, str] = {}
    for comparison in found:
        names = {
            key: comparison.catalog.label(name or "")
            for key, name in (
                ("uniform_baseline", comparison.uniform_baseline),
                ("baseline", comparison.baseline),
            )
        }
        for variant in comparison.variants:
            for text, kind in _marks(comparison, variant, certificates):
                meaning = MARKS[kind].format(**names)
                used[kind] = meaning if kind in COUNTED else f"{text}: {meaning}"
    return f"{'; '.join(used[kind] for kind in MARKS if kind in used)}." if used else ""


def _marks(
    comparison: Comparison, variant: str, certificates: Certificates
) -> list[tuple[str, str]]:
    """Texts beside a name, each with its key in `MARKS`."""
    return [
        *((text, text) for text in _of_the_variant(comparison, variant, certificates)),
        *_of_its_seeds(comparison, variant),
        *_of_its_tests(comparison, variant),
    ]


def _of_the_variant(comparison: Comparison, variant: str, certificates: Certificates) -> list[str]:
    """What it is, and how its cells differ from those of the baseline."""
    catalog, base = comparison.catalog, comparison.catalog.baseline
    unknown = bool(certificates) and certificate_of(certificates, variant) is None
    flags = {
        "baseline": variant == base,
        "control": catalog.variant(variant).is_control,
        "red certificate": variant in comparison.red,
        "not certified": unknown,
        "decoder differs": catalog.variant(variant).decoder_differs,
        "search differs": catalog.variant(variant).search_differs,
    }
    return [
        *(text for text, holds in flags.items() if holds),
        *(_of_its_training(comparison, variant) if base in comparison.variants else ()),
    ]


def _of_its_training(comparison: Comparison, variant: str) -> Iterator[str]:
    """How network and training differ from those of the baseline, beyond its own decoding."""
    catalog, cells = comparison.catalog, comparison.cells
    network, expected = (cells.setting(name, "backbone") for name in (variant, catalog.baseline))
    decodes_alike = not (
        catalog.variant(variant).decoder_differs or catalog.variant(variant).search_differs
    )
    if network != expected and decodes_alike:
        same_kind = network.partition("[")[0] == expected.partition("[")[0]
        yield "other network options" if same_kind else "other backbone"
    if cells.setting(variant, "protocol") != cells.setting(catalog.baseline, "protocol"):
        yield "other protocol"


def _of_its_seeds(comparison: Comparison, variant: str) -> Iterator[tuple[str, str]]:
    """Seeds that have no score, and seeds that are not above uniform attention."""
    catalog = comparison.catalog
    scored, asked = len(comparison.scores.get(variant, ())), comparison.asked_seeds(variant)
    if 0 < scored < asked:
        yield f"{scored} of {asked} seeds", "fewer seeds"
    lost, seeds = comparison.lost_seeds(variant)
    if lost > 0 and not catalog.variant(variant).is_control:
        uniform_baseline = catalog.label(comparison.uniform_baseline or "")
        never = lost == seeds
        every = f"in any of {seeds} seeds" if seeds > 1 else "in its one seed"
        where = every if never else f"in {lost} of {seeds} seeds"
        beyond = " beyond training" if is_about_longer_inputs(comparison) else ""
        kind = ("never above" if never else "not above") + (" beyond" if beyond else "")
        yield f"not above {uniform_baseline}{beyond} {where}", kind


def _of_its_tests(comparison: Comparison, variant: str) -> Iterator[tuple[str, str]]:
    """What the tests say that its rank does not."""
    catalog = comparison.catalog
    told = against_ranks(comparison, variant)
    if told:
        base_label = catalog.label(comparison.baseline or "")
        yield f"{told} than {base_label} by the planned test", "planned test"
    ranks = catalog.ranks and comparison.most_seeds > 1
    line = comparison.compared.get(variant) if ranks else None
    if line is None:
        return
    if variant in comparison.turned(next(iter(comparison.compared))):
        yield "better on common seeds", "better on common seeds"
    elif line.rank > 1 and not line.differs_from_best:
        yield "n.s. against the best", "n.s. against the best"
