"""Data of the view that a reader steps through, and the still figures beside it."""

import base64
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from synthetic_families import DIGITS, TRANSLATION, families_catalog, families_records
from synthetic_run import markdown_of, write_json, write_run

from reports.blocks import Figure
from reports.curves import legend_of
from reports.example_figures import _lines, example_figure, two_kinds
from reports.folder import RunFolder, read_folder
from reports.render import RenderedReport
from reports.sections.examples import attention_section
from reports.steps import _picture, steps_data, steps_section
from reports.task_examples import (
    MOST_EXAMPLES,
    MOST_VARIANTS,
    MapPicture,
    Shown,
    slug,
    task_examples,
)

PICTURE = MapPicture(gray=((0.0, 1.0), (0.5, 0.25)), grid=(2, 2))


@pytest.fixture(scope="module")
def folder(families: Path) -> RunFolder:
    return read_folder(families)


def shown(**changes: Any) -> Shown:
    one = Shown(
        variant="v",
        title="t",
        query=("a", "b"),
        said=("a", "b"),
        source=("x", "y", "z", "w"),
        weights=((0.1, 0.2, 0.3, 0.4), (1.0, 0.0, 0.0, 0.0)),
        gold=None,
        reference="",
        output="",
        picture=None,
    )
    return replace(one, **changes)


def test_weights_have_three_digits_and_sources_are_stored_once(folder: RunFolder) -> None:
    data = steps_data(task_examples(folder)[TRANSLATION])
    assert data["sources"] == [["die", "Katze", "sitzt", "."], ["ein", "Hund"]]
    for example in data["examples"]:
        for run in example["runs"]:
            for row in run["weights"]:
                assert all(isinstance(weight, int) for weight in row)
                assert sum(row) == pytest.approx(1000, abs=3)
    assert data["examples"][0]["runs"][0]["gold"] == [[0], [1], [2], [3]]


def test_the_best_variant_comes_first_and_the_uniform_baseline_is_there(folder: RunFolder) -> None:
    names = steps_data(task_examples(folder)[TRANSLATION])["variants"]
    assert names[0].startswith("shaw_rpr, BLEU ")
    assert names[-1].startswith("no_attention, BLEU ")
    assert len(names) <= MOST_VARIANTS


def test_the_lowest_seed_is_shown(families_report: RenderedReport) -> None:
    assert "of the second seed" not in families_report.html.read_text(encoding="utf-8")


def test_a_picture_is_one_byte_a_pixel(folder: RunFolder) -> None:
    data = steps_data(task_examples(folder)[DIGITS])
    picture = data["examples"][0]["picture"]
    pixels = base64.b64decode(picture["gray"])
    assert len(pixels) == picture["rows"] * picture["columns"] == 144
    assert max(pixels) == 255
    assert data["examples"][0]["runs"][0]["grid"] == [3, 3]


def test_a_picture_is_read_row_by_row() -> None:
    picture = MapPicture(gray=((0.0, 1.0, 0.5), (0.5, 0.25, 0.0)), grid=(2, 3))
    found = _picture(picture)
    assert (found["rows"], found["columns"]) == (2, 3)
    assert [*base64.b64decode(found["gray"])] == [0, 255, 128, 128, 64, 0]


def test_no_more_variants_than_a_page_can_carry(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reports.task_examples.MOST_VARIANTS", 3)
    names = steps_data(task_examples(folder)[TRANSLATION])["variants"]
    assert len(names) == 3
    assert names[-1].startswith("no_attention, ")


def test_no_more_examples_than_a_page_can_carry(tmp_path: Path) -> None:
    records = [one for one in families_records(1) if one.cell["task"] == TRANSLATION]
    run = write_run(tmp_path / "run", records=records, catalog_data=families_catalog(), tasks=["t"])
    entry = {"query": ["a"], "source": ["b"], "weights": [[1.0]]}
    data = {"examples": [{**entry, "title": f"{at}"} for at in range(9)]}
    for finished in records:
        write_json(run / "artifacts" / f"{finished.id}.json", data)
    assert (
        len(steps_data(task_examples(read_folder(run))[TRANSLATION])["examples"]) == MOST_EXAMPLES
    )


def test_places_that_are_no_places_of_the_picture_are_shown_as_words(tmp_path: Path) -> None:
    records = [one for one in families_records(1) if one.cell["task"] == DIGITS]
    run = write_run(tmp_path / "run", records=records, catalog_data=families_catalog(), tasks=["t"])
    picture = {"gray": [[0.0, 1.0]], "grid": [2, 2]}
    entry = {"title": "t", "query": ["a"], "source": ["b"], "weights": [[1.0]], "picture": picture}
    for finished in records:
        write_json(run / "artifacts" / f"{finished.id}.json", {"examples": [entry]})
    data = steps_data(task_examples(read_folder(run))[DIGITS])
    assert data["examples"][0]["picture"] is None
    assert data["examples"][0]["runs"][0]["grid"] is None


def test_runs_without_examples_have_no_section(demo: Path, markdown: str) -> None:
    assert steps_section(read_folder(demo)) is None
    assert "Step through" not in markdown


def test_the_markdown_twin_has_the_still_figure(families_report: RenderedReport) -> None:
    text = markdown_of(families_report)
    assert "(figures/example-digits-1.svg)" in text
    assert (families_report.markdown.parent / "figures" / "example-digits-1.svg").is_file()


def test_the_page_has_data_that_a_script_can_read(families_report: RenderedReport) -> None:
    page = families_report.html.read_text(encoding="utf-8")
    text = page.partition('id="steps-1-data">')[2].partition("</script>")[0]
    assert set(json.loads(text)) == {"variants", "examples", "sources"}


@pytest.mark.parametrize(
    ("one", "form"),
    [
        (shown(), "Source across, output down"),
        (shown(weights=((0.1, 0.2, 0.3, 0.4),), said=("good",)), "one sentence a line"),
        (shown(picture=PICTURE), "One column an output"),
        (shown(picture=replace(PICTURE, grid=(1, 4))), "The sound, and below it"),
    ],
)
def test_each_kind_of_source_has_its_figure(one: Shown, form: str) -> None:
    figure = example_figure("example-x-1", "x", [one, replace(one, variant="other")])
    assert form in figure.caption
    assert (
        figure.svg == example_figure("example-x-1", "x", [one, replace(one, variant="other")]).svg
    )
    assert "other" in figure.svg


def test_a_picture_shows_the_best_soft_and_the_best_hard_weights() -> None:
    hard = ((1.0, 0.0, 0.0, 0.0), (0.0, 0.95, 0.05, 0.0))
    soft, other = (shown(variant=name, picture=PICTURE) for name in ("soft", "other"))
    best, failed = (shown(variant=name, picture=PICTURE, weights=hard) for name in ("best", "bad"))
    assert [one.variant for one in two_kinds([soft, other, best, failed])] == ["soft", "best"]
    # what reads one place at a time is of its kind wherever it stands
    assert [one.variant for one in two_kinds([best, soft, failed])] == ["soft", "best"]
    assert [one.variant for one in two_kinds([soft, other])] == ["soft", "other"]


def test_a_score_stands_beside_each_picture() -> None:
    hard = shown(variant="h", picture=PICTURE, weights=((1.0, 0.0, 0.0, 0.0),) * 2)
    runs = [shown(picture=PICTURE, scored="exact match 0.79"), hard]
    figure = example_figure("example-x-1", "x", runs)
    assert ">spread: v, exact match 0.79<" in figure.svg
    assert ">one place: h<" in figure.svg


def test_names_of_files_are_plain() -> None:
    assert slug("../a b[c=<d>]") == "a-b-c-d"


def test_sentences_begin_new_lines() -> None:
    one = shown(begins=(2,), source=("a", "b", "c", "d"))
    assert _lines(one) == [[0, 1], [2, 3]]
    assert _lines(shown(source=("a", ".", "c", "."))) == [[0, 1], [2, 3]]
    assert _lines(shown(source=("a" * 50, "b" * 50))) == [[0], [1]]


def test_sentences_of_an_artifact_are_known(tmp_path: Path) -> None:
    records = [one for one in families_records(1) if one.cell["task"] == TRANSLATION]
    run = write_run(tmp_path / "run", records=records, catalog_data=families_catalog(), tasks=["t"])
    entry = {"title": "t", "query": ["a"], "source": ["b", "c", "d"], "weights": [[1.0, 0, 0]]}
    for finished in records:
        shown_ = {"examples": [{**entry, "sentences": [0, 0, 1]}]}
        write_json(run / "artifacts" / f"{finished.id}.json", shown_)
    data = steps_data(task_examples(read_folder(run))[TRANSLATION])
    assert data["examples"][0]["runs"][0]["begins"] == [2]


def test_a_caption_speaks_of_gold_only_where_some_is_drawn() -> None:
    gold = ((1.0, 0.0, 0.0, 0.0), (0.0, 1.0, 0.0, 0.0))
    bare = example_figure("k", "task", [shown(variant="a"), shown(variant="b")]).caption
    assert bare == "Source across, output down; black is 0, white is 1."
    told = example_figure("k", "task", [shown(variant="a"), shown(variant="b", gold=gold)]).caption
    assert told == f"{bare} Small squares are gold."


def test_maps_have_a_map_of_gold_and_a_caption_of_it_only_where_the_task_has_some(
    tmp_path: Path,
) -> None:
    folder = write_run(tmp_path / "run")
    for path in (folder / "artifacts").glob("*.json"):
        data = json.loads(path.read_text(encoding="utf-8"))
        entries = [
            {**one, "gold": None} if one["title"].startswith("translation") else one
            for one in data["attention"]
        ]
        write_json(path, {**data, "attention": entries})
    run = read_folder(folder)
    section = attention_section(run, legend_of(run), publish=False)
    captions = [block.caption for block in section.blocks if isinstance(block, Figure)]
    assert [text.partition(" Task ")[2].split(",")[0] for text in captions] == [
        "reversal",
        "translation",
    ]
    gold = "Small squares are the gold alignment, which the first map shows alone."
    assert [gold in text for text in captions] == [True, False]


def test_a_figure_of_maps_has_each_variant_once_where_two_examples_have_one_title(
    tmp_path: Path,
) -> None:
    folder = write_run(tmp_path / "run")

    def figures() -> list[str]:
        run = read_folder(folder)
        section = attention_section(run, legend_of(run), publish=False)
        return [block.svg for block in section.blocks if isinstance(block, Figure)]

    before = figures()
    for path in (folder / "artifacts").glob("*.json"):
        data = json.loads(path.read_text(encoding="utf-8"))
        other = [{**one, "source": ["other"] * len(one["source"])} for one in data["attention"]]
        write_json(path, {**data, "attention": [*data["attention"], *other]})
    assert figures() == before != []


SPREAD = shown(picture=PICTURE, weights=((0.25, 0.25, 0.25, 0.25),), variant="even")
SINGLE = shown(picture=PICTURE, weights=((1.0, 0.0, 0.0, 0.0),), variant="hard")


@pytest.mark.parametrize("sound", [False, True])
@pytest.mark.parametrize(
    ("runs", "told"),
    [
        (
            [SPREAD, SINGLE],
            "the best variant that spreads its weights, and the best that puts its weights on one "
            "place (90% or more on average). The shade",
        ),
        (
            [SPREAD, SPREAD],
            "the best two variants, each of which spreads its weights. The shade",
        ),
        (
            [replace(SINGLE, scored="BLEU 3")],
            "the best variant, which puts its weights on one place (90% or more on average). The "
            "score beside a name is that of this network. The shade",
        ),
    ],
)
def test_a_caption_names_the_kinds_of_weights_that_are_drawn(
    runs: list[Shown], told: str, sound: bool
) -> None:
    heard = MapPicture(gray=PICTURE.gray, grid=(1, 4))
    drawn = [replace(one, picture=heard) for one in runs] if sound else runs
    assert told in example_figure("k", "task", drawn).caption
