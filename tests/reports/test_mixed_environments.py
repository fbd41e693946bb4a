"""Cells of several machines, versions or commits in one comparison, and results of other code."""

import json
from dataclasses import replace

import pytest
from synthetic import BASE, TASKS
from synthetic_run import quality_records, write_run

from reports.folder import read_folder
from reports.render import render
from reports.sections.mixed_environments import mixed_environments, places_of, several_commits

TASK = next(iter(TASKS))


@pytest.fixture(scope="module")
def records():
    found = [*quality_records([TASK], 3)]
    assert found
    return found


def folder_of(tmp_path, records, **facts):
    """A run whose baseline ran in another environment, with these facts changed."""
    mine = [
        replace(one, environment="0123456789ab") if one.cell["variant"] == BASE else one
        for one in records
    ]
    folder = write_run(tmp_path / "run", records=mine, tasks=[TASK])
    (usual,) = (folder / "environments").glob("*.json")
    other = {**json.loads(usual.read_text()), **facts, "id": "0123456789ab"}
    (folder / "environments" / "0123456789ab.json").write_text(json.dumps(other))
    return folder


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        ({"packages": {"torch": "1.0.0"}}, "differ in torch:"),
        ({"git_revision": "0000000000"}, "differ in commit:"),
        ({"git_dirty": True}, "with uncommitted changes"),
        ({"cpu": "Abacus"}, "differ in processor:"),
    ],
)
def test_the_comparison_says_which_cells_differ(tmp_path, records, facts, told):
    folder = read_folder(folder_of(tmp_path, records, **facts))
    (sentence,) = mixed_environments(folder, folder.comparisons[0])
    assert told in sentence
    assert folder.catalog.label(BASE) in sentence
    page = render(folder.path).html.read_text(encoding="utf-8")
    assert told in page


def test_seeds_are_named_where_every_variant_has_both(tmp_path, records):
    moved = [
        replace(one, environment="0123456789ab") if one.cell["seed"] == 2 else one
        for one in records
    ]
    folder = write_run(tmp_path / "run", records=moved, tasks=[TASK])
    (usual,) = (folder / "environments").glob("*.json")
    other = {**json.loads(usual.read_text()), "cpu": "Abacus", "id": "0123456789ab"}
    (folder / "environments" / "0123456789ab.json").write_text(json.dumps(other))
    read = read_folder(folder)
    (sentence,) = mixed_environments(read, read.comparisons[0])
    assert "(seeds 0 and 1), Abacus (seed 2)." in sentence


def test_two_processors_stand_beside_the_title_of_a_comparison(tmp_path, records):
    folder = read_folder(folder_of(tmp_path, records, cpu="Abacus"))
    (comparison,) = folder.comparisons
    assert places_of(folder, comparison) == " (two processors)"
    text = render(folder.path).markdown.read_text(encoding="utf-8")
    assert (
        f"| {comparison.title.replace('[', chr(92) + '[').replace(']', chr(92) + ']')} (two" in text
    )


def test_another_commit_with_the_same_code_says_so(tmp_path, records):
    of_one_code = [replace(one, code=f"c0de{one.cell['variant']}") for one in records]
    folder = read_folder(folder_of(tmp_path / "one", of_one_code, git_revision="0000000000"))
    (sentence,) = mixed_environments(folder, folder.comparisons[0])
    assert sentence.endswith("Each variant has the same code in all its seeds.")
    of_two = [replace(one, code=f"c0de{one.cell['seed']}") for one in records]
    folder = read_folder(folder_of(tmp_path / "two", of_two, git_revision="0000000000"))
    (sentence,) = mixed_environments(folder, folder.comparisons[0])
    assert "the same code" not in sentence


def test_a_summary_of_comparisons_of_several_commits_says_so(tmp_path, records):
    folder = read_folder(folder_of(tmp_path / "one", records, git_revision="0000000000"))
    (sentence,) = several_commits(folder, folder.comparisons)
    assert "were made by 2 commits: 0000000000 and " in sentence
    assert "In all but 1 of them all cells are of one commit." in sentence
    assert sentence in render(folder.path).markdown.read_text(encoding="utf-8")
    same = read_folder(folder_of(tmp_path / "same", records, cpu="Abacus"))
    assert several_commits(same, same.comparisons) == []


def test_facts_that_decide_nothing_are_not_told(tmp_path, records):
    folder = read_folder(folder_of(tmp_path, records, memory_bytes=1))
    assert mixed_environments(folder, folder.comparisons[0]) == []


def test_results_of_other_code_are_shown_apart_and_ranked_nowhere(tmp_path, records):
    moved = [
        replace(one, status="other_code", detail="the code has changed.")
        if one.cell["variant"] == "scaled_dot" and one.status == "ok"
        else one
        for one in records
    ]
    folder = read_folder(write_run(tmp_path / "run", records=moved, tasks=[TASK]))
    (comparison,) = folder.comparisons
    assert "scaled_dot" not in comparison.scores
    assert "scaled_dot" not in comparison.compared
    page = render(folder.path)
    text = page.html.read_text(encoding="utf-8") + page.details.read_text(encoding="utf-8")
    assert "Results of other code that were kept, and are not ranked" in text
    assert "of other code: the code has changed." in text
