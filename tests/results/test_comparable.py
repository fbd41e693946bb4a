"""Which cells are compared: a comparison splits by what one variant has several of, and no more."""

from pathlib import Path

import pandas as pd
import pytest

from results.comparable import SAME, SPLITS, comparable, usual
from results.pack import Pack

PUBLISHED = Path(__file__).parents[2] / "results" / "published"
PLACE = {"task": "recall", "slot": "causal", "dtype": "float32", "device": "cpu"}
RATES = {"dot": 0.003, "scaled_dot": 0.01, "additive": 0.001}
"""Calibrated, one for each variant."""


def cells(variant, seeds=3, steps=500, lr=None, **more):
    """Lines of the cells of a variant."""
    asked = {
        **PLACE,
        "backbone": "transformer_decoder",
        "protocol": f"adam[lr={RATES.get(variant, 0.01) if lr is None else lr},steps={steps}]",
        "impl": "auto",
        "revisions": "",
        **more,
    }
    return [{"variant": variant, "seed": seed, **asked} for seed in range(seeds)]


def frame(*groups):
    lines = [line for group in groups for line in group]
    return pd.DataFrame(lines, columns=["variant", "seed", *SAME, *SPLITS])


def compared(*groups, told=lambda line: line.variant):
    """The variants of each comparison, sorted by name."""
    found = comparable(frame(*groups))
    return sorted(sorted({told(line) for line in group.itertuples()}) for group in found)


def with_revision(line):
    return f"{line.variant} {line.revisions}".strip()


CALIBRATED = [cells(name) for name in RATES]


def test_variants_with_rates_of_their_own_are_one_comparison():
    assert compared(*CALIBRATED) == [["additive", "dot", "scaled_dot"]]


@pytest.mark.parametrize("seeds", [1, 3])
def test_one_variant_in_two_revisions_leaves_the_others_together(seeds):
    """Also where they have revisions of their own, and rates that were chosen for each."""
    found = compared(
        *CALIBRATED,
        cells("general", revisions="general:2"),
        cells("dot", seeds, revisions="dot:2"),
        told=with_revision,
    )
    assert found == [["additive", "dot", "general general:2", "scaled_dot"], ["dot dot:2"]]


def test_a_variant_of_a_later_revision_that_was_raised_again_is_compared_with_the_others():
    twice = [cells("general", revisions=f"general:{number}") for number in (2, 3)]
    assert compared(*CALIBRATED, *twice, told=with_revision) == [
        ["additive", "dot", "general general:2", "scaled_dot"],
        ["general general:3"],
    ]


def test_code_that_one_variant_was_asked_with_leaves_the_others_together():
    found = compared(
        *CALIBRATED,
        cells("dot", impl="reference"),
        cells("flash", impl="compiled"),
        told=lambda line: f"{line.variant} {line.impl}",
    )
    assert found == [
        ["additive auto", "dot auto", "flash compiled", "scaled_dot auto"],
        ["dot reference"],
    ]


def test_a_second_rate_of_one_variant_leaves_the_others_together():
    found = compared(
        *CALIBRATED, cells("dot", lr=0.1), told=lambda line: f"{line.variant} {line.protocol[5:]}"
    )
    others = ["additive lr=0.001,steps=500]", "scaled_dot lr=0.01,steps=500]"]
    assert found == [
        sorted([*others, "dot lr=0.003,steps=500]"]),
        ["dot lr=0.1,steps=500]"],
    ]


def test_a_shared_part_in_two_revisions_makes_two_whole_comparisons():
    """As in two merged packs: parts of single variants are in the same texts."""
    own = {"dot": [], "general": ["general:2"], "additive": []}
    old = [cells(name, revisions=" ".join(parts)) for name, parts in own.items()]
    new = [
        cells(name, revisions=" ".join([*parts, "transformer_decoder:2"]))
        for name, parts in own.items()
    ]
    found = compared(*old, *new, told=lambda line: f"{line.variant} {line.revisions[-1:]}")
    assert found == [
        ["additive ", "dot ", "general 2"],
        ["additive 2", "dot 2", "general 2"],
    ]
    whole = [sorted(group["revisions"].unique()) for group in comparable(frame(*old, *new))]
    assert whole == [
        ["", "general:2"],
        ["general:2 transformer_decoder:2", "transformer_decoder:2"],
    ]


@pytest.mark.parametrize("chosen_again", [{}, {"dot": 0.1}, {"dot": 0.1, "additive": 0.01}])
def test_more_steps_for_all_make_two_comparisons_whatever_the_rates_are(chosen_again):
    longer = [cells(name, steps=900, lr=chosen_again.get(name)) for name in RATES]
    found = [
        (sorted(group["variant"].unique()), group["protocol"].str.contains("steps=900").unique())
        for group in comparable(frame(*CALIBRATED, *longer))
    ]
    assert [names for names, _ in found] == [sorted(RATES)] * 2
    assert sorted(flag.tolist() for _, flag in found) == [[False], [True]]


def test_options_of_a_protocol_inside_another_are_read():
    """A probe names the training of its network."""
    lines = [
        cells(name, protocol=f"analysis[probe=map,trained=adam[lr={rate},steps={steps}]]")
        for name, rate in RATES.items()
        for steps in (500, 900)
    ]
    assert compared(*lines) == [sorted(RATES)] * 2


def test_networks_are_asked_only_where_a_variant_has_several():
    own = cells("bahdanau", backbone="transformer_decoder[layers=2]")
    assert compared(*CALIBRATED, own, cells("dot", impl="reference")) == [
        ["additive", "bahdanau", "dot", "scaled_dot"],
        ["dot"],
    ]
    both = cells("dot", backbone="transformer_decoder[layers=4]")
    assert compared(*CALIBRATED, own, both) == [
        ["additive", "bahdanau", "dot", "scaled_dot"],
        ["dot"],
    ]


def test_seeds_that_are_added_later_change_nothing():
    doubled = cells("dot", 1, revisions="dot:2")
    first = compared(*CALIBRATED, doubled, told=with_revision)
    for seeds in (2, 9):
        more = cells("dot", seeds, revisions="dot:2")
        assert compared(*CALIBRATED, more, told=with_revision) == first
    many = [cells(name, 40) for name in ("dot", "additive")]
    assert compared(cells("scaled_dot"), *many, doubled, told=with_revision) == first


def test_every_cell_is_in_one_comparison_and_cells_that_differ_in_nothing_stay_together():
    twice = [*CALIBRATED, cells("dot")]
    (group,) = comparable(frame(*twice))
    assert len(group) == 12


def test_the_usual_value_counts_every_variant_once():
    lines = frame(cells("a", 9, impl="x"), cells("b", 1, impl="y"), cells("c", 1, impl="y"))
    assert usual(lines, "impl") == "y"


@pytest.mark.parametrize("name", ["quick", "claims", "flagship"])
def test_one_cell_of_another_revision_takes_no_published_comparison_apart(name):
    rows = Pack(PUBLISHED / f"{name}.parquet").frame
    held = rows[(rows["kind"] == "quality") & (rows["baseline"] == "")].drop_duplicates("cell")
    before = [frozenset(group["cell"]) for group in comparable(held)]
    for group in list(comparable(held))[:12]:
        extra = group.iloc[:1].assign(cell="new")
        variant = str(extra["variant"].iloc[0]).partition("[")[0]
        extra["revisions"] = f"{extra['revisions'].iloc[0]} {variant}:99".strip()
        both = pd.concat([held, extra], ignore_index=True)
        after = [frozenset(group["cell"]) for group in comparable(both)]
        assert {*after} == {*before, frozenset({"new"})}
