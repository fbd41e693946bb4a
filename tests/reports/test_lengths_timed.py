"""Variants that were timed at other lengths: one length for the table, and where times cross."""

from types import SimpleNamespace

import pandas as pd
import pytest

from reports.ranked_table.costs import costs_at_one_length
from reports.sections.speed_findings import speed_sentences

PLACE = {
    "shape": "attend",
    "slot": "cross",
    "dtype": "float32",
    "device": "cpu",
    "impl": "auto",
    "protocol": "rounds",
    "metric": "forward_time_ms",
}


def summary(timed, **more):
    """Lines of a summary: (variant, length) -> ratio and verdict."""
    lines = [
        {
            **PLACE,
            **more,
            "variant": variant,
            "name": variant,
            "length": float(length),
            "ratio": ratio,
            "verdict": verdict,
            **{"median": ratio, "q10": ratio, "q90": ratio, "rounds": 5},
        }
        for (variant, length), (ratio, verdict) in timed.items()
    ]
    return pd.DataFrame(lines)


TIMED = {
    ("base", 256): (1.0, "SAME"),
    ("base", 1024): (1.0, "SAME"),
    ("base", 4096): (1.0, "SAME"),
    ("heavy", 256): (3.0, "SLOW"),
    ("heavy", 1024): (4.0, "SLOW"),
    ("linear", 256): (1.5, "SLOW"),
    ("linear", 1024): (0.9, "AMBIGUOUS"),
    ("linear", 4096): (0.2, "FAST"),
}


def test_the_table_shows_the_longest_length_at_which_most_were_timed():
    costs = costs_at_one_length(summary(TIMED), "base")
    shown = {key[4]: (found[0].estimate, found[1]) for key, found in costs.items()}
    assert shown["heavy"] == (4.0, "attend at length 1024")
    assert shown["linear"] == (0.9, "attend at length 1024")
    without = {key: held for key, held in TIMED.items() if key[0] != "heavy"}
    (_, where) = costs_at_one_length(summary(without), "base").popitem()[1]
    assert where == "attend at length 4096"


def test_a_length_without_the_baseline_is_not_shown():
    timed = {
        ("base", 256): (1.0, "SAME"),
        ("base", 1024): (1.0, "SAME"),
        ("a", 1024): (2.0, "SLOW"),
        ("a", 4096): (2.0, "SLOW"),
        ("b", 4096): (3.0, "SLOW"),
    }
    costs = costs_at_one_length(summary(timed), "base")
    assert {where for _, where in costs.values()} == {"attend at length 1024"}


def test_shapes_are_not_mixed_in_one_column():
    few = {key: held for key, held in TIMED.items() if key == ("base", 256)}
    both = pd.concat([summary(few, shape="attend[batch=8]"), summary(TIMED)])
    costs = costs_at_one_length(both, "base")
    assert {where for _, where in costs.values()} == {"attend at length 1024"}


def test_a_score_stands_beside_the_times_of_its_own_code():
    fused = {key: (ratio / 10, verdict) for key, (ratio, verdict) in TIMED.items()}
    both = pd.concat([summary(fused, impl="sdpa"), summary(TIMED)])
    costs = costs_at_one_length(both, "base")
    here = ("cross", "float32", "cpu")
    shown = [
        costs[*here, impl, "heavy", "forward_time_ms"][0].estimate for impl in ("auto", "sdpa")
    ]
    assert shown == [4.0, 0.4]


def told_of(speed):
    """Heads and sentences of a summary."""
    keys = [*PLACE, "variant"]
    last = speed.sort_values("length").groupby(keys, as_index=False).last()
    catalog = SimpleNamespace(baseline="base", metric=lambda name: SimpleNamespace(title="Forward"))
    return speed_sentences(SimpleNamespace(speed=speed, speed_lines=last, catalog=catalog))


def test_a_sentence_tells_the_length_of_each_ratio_and_where_times_cross():
    ((head, text),) = told_of(summary(TIMED))
    assert head == "Forward, cross slot"
    assert "Faster than the baseline: linear (×0.2)." in text
    assert "Slower: heavy (×4 at 1024)." in text
    assert "linear is slower up to length 256 and faster from 4096 on." in text


@pytest.mark.parametrize(
    ("more", "heads"),
    [
        ({"impl": "sdpa"}, ["impl=auto", "impl=sdpa"]),
        ({"dtype": "bfloat16"}, ["bfloat16 on cpu", "float32 on cpu"]),
        ({"device": "cuda"}, ["float32 on cpu", "float32 on cuda"]),
        ({"shape": "attend[batch=8]"}, ["attend", "attend[batch=8]"]),
        ({"protocol": "rounds[count=9]"}, ["rounds", "rounds[count=9]"]),
    ],
)
def test_a_sentence_is_about_what_was_timed_together(more, heads):
    faster = {key: (ratio, "FAST") for key, (ratio, _) in TIMED.items()}
    told = told_of(pd.concat([summary(TIMED), summary(faster, **more)]))
    assert sorted(head for head, _ in told) == [f"Forward, cross slot, {head}" for head in heads]
    assert ["Slower: heavy" in text for _, text in told].count(True) == 1


@pytest.mark.parametrize(
    ("verdicts", "told"),
    [
        (("SLOW", "FAST"), "new is slower up to length 256 and faster from 1024 on."),
        (("FAST", "FAST", "SLOW"), "new is faster up to length 1024 and slower from 4096 on."),
        (("SLOW", "FAST", "SLOW"), "new is faster at length 1024 and slower from 4096 on."),
        (("FAST", "AMBIGUOUS", "SLOW"), "new is faster up to length 256 and slower from 4096 on."),
        (
            ("SLOW", "FAST", "AMBIGUOUS", "FAST"),
            "new is slower up to length 256 and faster from 16384 on.",
        ),
    ],
)
def test_times_may_cross_in_either_direction(verdicts, told):
    lengths = [256 * 4**at for at in range(len(verdicts))]
    timed = {("base", length): (1.0, "SAME") for length in lengths}
    timed |= {
        ("new", length): (0.5 if verdict == "FAST" else 2.0, verdict)
        for length, verdict in zip(lengths, verdicts, strict=True)
    }
    ((_, text),) = told_of(summary(timed))
    assert text.endswith(told)


def test_variants_whose_times_cross_at_the_same_lengths_share_a_sentence():
    timed = {("base", length): (1.0, "SAME") for length in (256, 1024)}
    for name in ("a", "b", "c"):
        timed |= {(name, 256): (0.5, "FAST"), (name, 1024): (2.0, "SLOW")}
    ((_, text),) = told_of(summary(timed))
    assert text.endswith(". a, b and c are faster up to length 256 and slower from 1024 on.")


def test_times_that_do_not_cross_have_no_such_sentence():
    timed = {("base", 256): (1.0, "SAME"), ("base", 1024): (1.0, "SAME")}
    timed |= {("new", 256): (1.0, "SAME"), ("new", 1024): (2.0, "SLOW")}
    ((_, text),) = told_of(summary(timed))
    assert " on." not in text
