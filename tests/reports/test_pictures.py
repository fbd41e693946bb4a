"""Figures for documents, under names that documents can rely on."""

from pathlib import Path

import pytest
from synthetic_families import BETAS

from bench.shows import report
from reports.folder import read_folder
from reports.pictures import option_figures, write_figures
from results.store import NotARunFolder


def test_every_example_of_every_showcase_is_drawn(families: Path, tmp_path: Path) -> None:
    written = {path.name for path in write_figures(families, tmp_path / "new")}
    assert written == {
        "showcase-digits-1.svg",
        "option-kernel_line-first_band.svg",
        *(
            f"showcase-{task}-{at}.svg"
            for task in ("reversal", "recall", "translation")
            for at in (1, 2)
        ),
    }
    assert {path.name for path in (tmp_path / "new").iterdir()} == written


def test_a_metric_of_bands_is_drawn_against_the_option(families: Path) -> None:
    (figure,) = option_figures(read_folder(families))
    assert figure.title == "Weight in the first band against beta, kernel_line"
    for beta in BETAS:
        assert f">{beta}<" in figure.svg
    assert "nadaraya_watson" in figure.svg


def test_runs_without_showcases_have_no_figures(demo: Path, tmp_path: Path) -> None:
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
        handbook=None,
        figures=tmp_path / "figures",
        merge=(),
    )
    assert f"figure: {tmp_path / 'figures' / 'showcase-digits-1.svg'}" in told
