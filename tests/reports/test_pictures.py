"""Figures for documents, under names that documents can rely on."""

import json
import math
import re
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from synthetic_families import BETAS, write_families

from bench.cli.report import report
from reports.folder import read_folder
from reports.kernels import _line, _means, kernel_figures
from reports.pictures import write_figures
from reports.ranked_table.comparison import Comparison
from results.run_path import NotARunFolder
from results.statistics import t_interval

SENTENCES = ("reversal", "recall", "translation")


def test_every_example_of_every_examples_is_drawn(families: Path, tmp_path: Path) -> None:
    written = {path.name for path in write_figures(families, tmp_path / "new")}
    assert written == {
        "example-digits-1.svg",
        "example-kernel_line-1.svg",
        "band-kernel_line.svg",
        "kernels-kernel_line.svg",
        *(f"example-{task}-{at}.svg" for task in SENTENCES for at in (1, 2)),
        *(f"steps-{task}.html" for task in ("digits", "kernel_line", *SENTENCES)),
    }
    assert {path.name for path in (tmp_path / "new").iterdir()} == written


def test_width_and_errors_are_drawn_against_the_bandwidth(families: Path) -> None:
    curves, _ = kernel_figures(read_folder(families))
    assert "kernel_line" in curves.title
    for beta in BETAS:
        assert f">{beta**-0.5:g}<" in curves.svg
    assert ">nadaraya_watson<" in curves.svg
    assert "Means over 3 seeds" in curves.caption
    assert "or go from the lowest to the highest seed where an interval" in curves.caption


def test_kernels_stand_in_the_order_of_their_bandwidths(families: Path) -> None:
    _, maps = kernel_figures(read_folder(families))
    assert re.findall(r">bandwidth ([\d.]+)<", maps.svg) == ["1", "0.5", "0.25"]
    assert "a whole curve" in maps.title


def test_a_fixed_kernel_whose_seeds_are_copies_has_no_band() -> None:
    means = {"narrow": t_interval([2.5, 2.5, 2.5]), "wide": t_interval([1.0, 2.0, 3.0])}
    line = _line("gaussian", [(0.5, "narrow"), (1.0, "wide")], means)
    assert line.low[0] == line.y[0] == line.high[0] == 2.5
    assert line.low[1] < line.y[1] < line.high[1] < 10


def test_a_band_of_a_kernel_keeps_to_the_range_as_other_figures_do() -> None:
    widths = {"narrow": {0: 0.1, 1: 0.2, 2: 1.2}, "wide": {0: 1.0, 1: 1.1, 2: 1.2}}
    comparison = SimpleNamespace(
        stored=SimpleNamespace(final=lambda metric: widths),
        catalog=SimpleNamespace(metric=lambda name: SimpleNamespace(limits=(0.0, math.inf))),
    )
    means = _means(cast(Comparison, comparison), "band_width")
    line = _line("gaussian", [(0.5, "narrow"), (1.0, "wide")], means)
    # the t interval of the narrow one goes down to -1.0
    assert (line.low[0], line.high[0]) == (0.1, 1.2)
    assert (line.low[1], line.high[1]) == pytest.approx((0.852, 1.348), abs=0.001)


def test_kernels_of_a_red_certificate_are_not_drawn(tmp_path: Path) -> None:
    run = write_families(tmp_path / "run")
    name = f"nadaraya_watson[beta={BETAS[0]}]"
    path = run / "certificates.json"
    found = json.loads(path.read_text(encoding="utf-8"))
    found[name] = {"passed": [], "skipped": {}, "failed": {"oracle": "off"}, "expected": []}
    path.write_text(json.dumps(found), encoding="utf-8")
    assert kernel_figures(read_folder(run)) == []


def test_runs_without_examples_have_no_figures(demo: Path, tmp_path: Path) -> None:
    assert write_figures(demo, tmp_path / "none") == []


def test_a_folder_without_rows_is_refused_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(NotARunFolder, match="ledger"):
        write_figures(tmp_path, tmp_path / "out")


def test_the_command_says_what_it_drew(families: Path, tmp_path: Path) -> None:
    told = report(
        families,
        tmp_path / "out",
        publish=True,
        export=False,
        figures=tmp_path / "figures",
        merge=(),
        tasks="",
    )
    assert f"figure: {tmp_path / 'figures' / 'example-digits-1.svg'}" in told
