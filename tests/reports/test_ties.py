"""Ties and significant differences are the same in table, marks, sentences and overview."""

from dataclasses import replace
from pathlib import Path

import pytest
from synthetic import BASE, TASKS, catalog, quality_cell, record
from synthetic_families import families_catalog
from synthetic_run import write_run

from reports.folder import RunFolder, read_folder
from reports.ranked_table.comparison import Comparison
from reports.ranked_table.marks import legend_of_marks, marks
from reports.ranked_table.rows import interval_text
from reports.sections.findings import _overall, _task
from reports.sections.ranking import use_sections
from reports.sections.uses_of_attention import best_contender, uses_section, verdict
from results.row import Row

TASK = next(iter(TASKS))
UNIFORM = "no_attention"

NOISY = {
    # baseline and uniform baseline differ from the best; the noisy one is last by its
    # mean
    "shaw_rpr[clip=16]": (0.900, 0.902, 0.901),
    BASE: (0.700, 0.701, 0.703),
    UNIFORM: (0.400, 0.403, 0.401),
    "luong_general": (0.05, 0.60, 0.30),
}
WIDE_UNIFORM = {
    BASE: (0.90, 0.91, 0.93),
    "scaled_dot": (0.92, 0.90, 0.91),
    UNIFORM: (0.2, 0.6, 0.5),
}


def written(
    path: Path, levels: dict[str, tuple[float, ...]], *, lost: tuple[str, ...] = (), **changes: bool
) -> RunFolder:
    """A run of one task; validation is the test but for what is lost there."""
    known = families_catalog()
    known["ranks"] = changes.get("ranks", True)
    metric = TASKS[TASK][1]
    records = [
        record(
            quality_cell(TASK, name, seed),
            "ok",
            [
                Row(metric=metric, value=0.0 if name in lost else value, split="validation"),
                Row(metric=metric, value=value, split="test"),
            ],
        )
        for name, values in levels.items()
        for seed, value in enumerate(values)
    ]
    folder = write_run(path, records=records, catalog_data=known, tasks=[TASK])
    return read_folder(folder)


def ranks(comparison: Comparison) -> dict[str, int]:
    return {comparison.catalog.label(line.variant): line.rank for line in comparison.ranking}


def test_a_lost_and_noisy_line_is_neither_first_nor_set_off_nor_called_equal(tmp_path: Path):
    folder = written(tmp_path / "run", NOISY, lost=("luong_general",))
    (comparison,) = folder.comparisons
    assert ranks(comparison) == {
        "shaw_rpr": 1,
        "bahdanau": 2,
        "no_attention": 3,
        "luong_general": 3,
    }
    assert not comparison.compared["luong_general"].differs_from_best
    assert "n.s. against the best" in marks(comparison, "luong_general", {})
    assert [line.variant for line in comparison.leading] == ["shaw_rpr[clip=16]"]
    (table,) = [b for s in use_sections(folder) for b in s.blocks if getattr(b, "rows", None)]
    assert [row[2].best for row in table.rows] == [True, False, False, False]
    told = _task(comparison)
    assert told.startswith(
        "Choose shaw_rpr. Its mean is 0.9010 ± 0.0025 fraction, significantly better than all 2 "
        "others that learned."
    )
    assert "Did not train (no seed above no_attention on validation), which is no" in told
    known = comparison.catalog
    check = replace(known.task(comparison.task), pipeline_check="Counts win.")
    known.tasks = {**known.tasks, comparison.task: check}
    assert _task(comparison).startswith(
        "shaw_rpr has the best mean, 0.9010 ± 0.0025 fraction, significantly better than all 2 "
        "others that learned. This is a pipeline check, and no reason to choose a variant."
    )


def test_a_leading_line_that_never_learned_is_not_set_off(tmp_path: Path):
    levels = {BASE: (0.5, 0.7, 0.6), "scaled_dot": (0.6, 0.5, 0.65), UNIFORM: (0.1, 0.102, 0.101)}
    (comparison,) = written(tmp_path / "run", levels, lost=(BASE,)).comparisons
    assert ranks(comparison)["bahdanau"] == 1
    assert [line.variant for line in comparison.leading] == ["scaled_dot"]
    assert "are tied" not in _task(comparison)
    assert "no seed above no_attention on validation" in verdict(comparison)


def test_a_noisy_line_that_learned_is_named_below_the_others(tmp_path: Path):
    (comparison,) = written(tmp_path / "run", NOISY).comparisons
    told = _task(comparison)
    assert (
        "shaw_rpr has the best mean, 0.9010 ± 0.0025 fraction. It is significantly better than 2 "
        "of 3 others."
    ) in told
    assert "Lower, but also n.s. against shaw_rpr: luong_general." in told


def test_a_control_that_each_seed_beats_is_not_called_as_good(tmp_path: Path):
    (comparison,) = written(tmp_path / "run", WIDE_UNIFORM).comparisons
    told = _task(comparison)
    assert (
        "The control no_attention is among the best. Every seed of every variant is better than "
        "every seed of no_attention on the test. With 3 seeds this is not significant after "
        "correction" in told
    )
    assert "do not show what attention is for" not in told
    assert verdict(comparison) == (
        "n.s. against no_attention (though better in every seed) and bahdanau"
        if best_contender(comparison) != BASE
        else "n.s. against no_attention (though better in every seed)"
    )


def test_a_control_as_good_as_the_rest_is(tmp_path: Path):
    (comparison,) = written(
        tmp_path / "run", {**WIDE_UNIFORM, UNIFORM: (0.9, 0.92, 0.91)}
    ).comparisons
    assert "do not show what attention is for here" in _task(comparison)


def test_table_summary_and_glance_agree_on_a_uniform_baseline_that_the_baseline_alone_is_tied_with(
    tmp_path: Path,
):
    levels = {
        "shaw_rpr[clip=16]": (0.60, 0.99, 0.80),
        BASE: (0.700, 0.701, 0.703),
        UNIFORM: (0.400, 0.403, 0.401),
    }
    (comparison,) = written(tmp_path / "run", levels).comparisons
    assert ranks(comparison) == {"shaw_rpr": 1, "bahdanau": 1, "no_attention": 3}
    assert "n.s. against the best" in marks(comparison, UNIFORM, {})
    told = _task(comparison)
    assert "shaw_rpr and bahdanau are tied" in told
    assert "Significantly worse: no_attention." in told
    assert "The control" not in told
    assert verdict(comparison) == (
        "n.s. against no_attention (which is worse than bahdanau) and bahdanau"
    )


def test_widths_are_those_to_the_baseline_and_never_zero(tmp_path: Path):
    levels = {
        BASE: (0.5, 0.55, 0.6),
        "scaled_dot": (0.51, 0.56, 0.61),
        "luong_general": (0.5, 0.6, 0.55),
        "lstmn": (0.4, 0.7, 0.6),
    }
    (comparison,) = written(tmp_path / "run", levels).comparisons
    told = _task(comparison)
    assert (
        "95% intervals of differences to bahdanau are ±0.11 to ±0.25 fraction, before corr" in told
    )
    assert "±0 " not in told
    (alone,) = written(
        tmp_path / "flat", {BASE: (0.5,) * 3, "lstmn": (0.5,) * 3, UNIFORM: (0.5,) * 3}
    ).comparisons
    assert "known to" not in _task(alone)


def test_no_interval_leaves_the_range_of_its_metric(tmp_path: Path):
    levels = {BASE: (0.05, 0.7, 0.1), "scaled_dot": (0.99, 0.995, 1.0), UNIFORM: (0.4, 0.42, 0.41)}
    folder = written(tmp_path / "run", levels)
    (comparison,) = folder.comparisons
    assert comparison.score_text(BASE) == "0.283 (0.05–0.70, 3 seeds)"
    assert comparison.score_text("scaled_dot") == "0.995 (0.99–1.00, 3 seeds)"
    assert comparison.score_text(UNIFORM) == "0.410 ± 0.025"
    line = folder.ranked_lines.set_index("selector").loc[BASE].to_dict()
    assert interval_text(line, "score") == comparison.score_text(BASE)
    glance = uses_section(folder)
    assert glance is not None
    for text in ("0.283 (0.05–0.70, 3 seeds)", "0.995 (0.99–1.00, 3 seeds)"):
        assert text in "\n".join(
            entry.text for b in glance.blocks for row in getattr(b, "rows", ()) for entry in row
        )


def test_equal_means_have_the_baseline_first_then_the_smaller_model(tmp_path: Path):
    names = ("lstmn", BASE, "luong_general", "scaled_dot")
    known = dict.fromkeys(names, (1.0, 1.0, 1.0))
    records = [
        record(
            quality_cell(TASK, name, seed),
            "ok",
            [
                Row(metric=TASKS[TASK][1], value=value, split="test"),
                Row(metric="parameters_count", value={"scaled_dot": 5.0}.get(name, 9.0)),
            ],
        )
        for name, values in known.items()
        for seed, value in enumerate(values)
    ]
    run = write_run(
        tmp_path / "run", records=records, catalog_data=families_catalog(), tasks=[TASK]
    )
    folder = read_folder(run)
    (comparison,) = folder.comparisons
    assert [*comparison.compared] == [BASE, "scaled_dot", "lstmn", "luong_general"]
    assert [*folder.ranked_lines["selector"]] == [*comparison.compared]
    assert best_contender(comparison) == BASE


def test_marks_are_explained_once_and_only_those_that_stand_there(tmp_path: Path):
    folder = written(tmp_path / "run", NOISY, lost=("luong_general",))
    legend = legend_of_marks(folder.comparisons, {})
    for said in ("baseline: ", "control: ", "never above no_attention: ", "best: "):
        assert legend.count(said) == 1
    assert "decoder differs" not in legend
    assert "red certificate" not in legend


def test_a_preset_that_ranks_nothing_names_no_best_variant(tmp_path: Path):
    glance = uses_section(written(tmp_path / "run", NOISY, ranks=False))
    assert glance is not None
    table = glance.blocks[1]
    assert table.title == "Best mean of each task, not ranked"
    assert [c.title for c in table.columns if "est" in c.title] == ["Best mean, not ranked"]


def test_contenders_that_never_meet_are_said_so(tmp_path: Path):
    known = catalog()
    pairs = zip(list(TASKS)[:2], ("scaled_dot", "luong_general"), strict=True)
    records = [
        record(
            quality_cell(task, name, seed),
            "ok",
            [Row(metric=TASKS[task][1], value=0.5 + 0.01 * seed * len(name), split="test")],
        )
        for task, other in pairs
        for name in (BASE, other)
        for seed in range(3)
    ]
    folder = read_folder(write_run(tmp_path / "run", records=records, catalog_data=known))
    assert "no two variants took part in all 2 compar" in _overall(folder.comparisons)


@pytest.mark.parametrize("seeds", [1, 2])
def test_few_times_of_training_have_no_interval_and_say_how_many_they_are(
    tmp_path: Path, seeds: int
):
    records = [
        record(
            quality_cell(TASK, name, seed),
            "ok",
            [
                Row(metric=TASKS[TASK][1], value=0.5 + 0.1 * seed, split="test"),
                *([Row(metric="train_step_time_ms", value=12.0 + seed)] if seed < seeds else []),
            ],
        )
        for name in (BASE, "scaled_dot")
        for seed in range(3)
    ]
    folder = read_folder(write_run(tmp_path / "run", records=records, tasks=[TASK]))
    line = folder.ranked_lines.iloc[0].to_dict()
    assert (
        interval_text(line, "train_step_time_ms")
        == {
            1: "12.0 (n = 1)",
            2: "12.5 (n = 2)",
        }[seeds]
    )
