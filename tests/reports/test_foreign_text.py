"""Text of users and plug-ins is printed, and never obeyed."""

import csv
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from synthetic import BASE, VARIANTS, catalog, quality_cell, quality_rows, record
from synthetic_run import markdown_of, write_json, write_run

from bench.api.cell import Cell
from reports import html
from reports.blocks import (
    AnsweredExample,
    Column,
    Document,
    Paragraph,
    SampleBlock,
    Section,
    TableBlock,
    TableCell,
    clean,
    safe_url,
)
from reports.export import escape_latex, export_tables
from reports.markdown import code_span, escape, whole, with_code
from reports.render import RenderedReport, render

TASK = "reversal[length=24]"
EVIL = '<script>alert("x")</script>'
TRICKS = (
    f"{EVIL} </svg><img src=x onerror=alert(1)> $x^2$ $ | `a` [b](c) **d** \x00\x1b[31m \u202e _e"
)


def hostile_records() -> list[Any]:
    plugin = f"plugin{EVIL}"
    records = [
        record(quality_cell(TASK, name, seed), "ok", quality_rows(TASK, VARIANTS[BASE], seed))
        for name in (BASE, plugin)
        for seed in range(2)
    ]
    failed = quality_cell(TASK, "_broken", 0)
    return [*records, record(failed, "failed", detail=f"ValueError: {TRICKS}")]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> RenderedReport:
    return write_hostile(tmp_path_factory.mktemp("runs") / "hostile")


def write_hostile(folder: Path) -> RenderedReport:
    """The report of a run in which every text is an attack."""
    names: dict[str, Any] = catalog()
    names["variants"][f"plugin{EVIL}"] = {"short": TRICKS, "url": "javascript:alert(1)"}
    names["tasks"][TASK] |= {"short": TRICKS, "title": TRICKS, "paper": TRICKS}
    names["metrics"]["token_accuracy"] |= {"title": TRICKS, "unit": TRICKS}
    names["preset"] = TRICKS
    records = hostile_records()
    write_run(folder, records=records, catalog_data=names, tasks=[TASK])
    entry = {"title": TRICKS, "query": [TRICKS, "_b"], "source": [EVIL, "漢字"]}
    entry |= {"weights": [[0.5, 0.5], [1.0, 0.0]], "gold": [[1, 0], [0, 1]]}
    sample = {"source": TRICKS, "reference": TRICKS, "output": TRICKS}
    shown = {**entry, "title": f"</script>{TRICKS}", "reference": TRICKS, "output": TRICKS}
    shown |= {"said": [f"</script><!--{TRICKS}", "_b"], "picture": None}
    data = {"attention": [entry], "samples": [sample], "examples": [shown]}
    for finished in records:
        write_json(folder / "artifacts" / f"{finished.id}.json", data)
    certificate = {"passed": [], "skipped": {EVIL: EVIL}, "failed": {}, "expected": []}
    write_json(folder / "certificates.json", {f"plugin{EVIL}": certificate})
    write_json(folder / "environments" / "x.json", {EVIL: TRICKS})
    export_tables(folder, folder / "tables")
    return render(folder)


def test_the_page_runs_no_script_but_its_own(hostile: RenderedReport) -> None:
    page = hostile.html.read_text(encoding="utf-8")
    assert page.count("<script>") == 2
    assert page.count("<script") == page.count("</script>") == 3
    assert page.count('<script type="application/json"') == 1
    assert "<!--" not in page
    assert "<img" not in page
    assert "javascript:" not in page
    assert "&lt;script&gt;" in page
    assert "\x00" not in page
    assert "\u202e" not in page


def test_data_for_the_script_hold_no_markup_and_keep_every_letter(hostile: RenderedReport) -> None:
    page = hostile.html.read_text(encoding="utf-8")
    (text,) = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.DOTALL)
    assert not set("<>&") & set(text)
    said = json.loads(text)["examples"][0]["runs"][0]["said"]
    assert said == [clean(f"</script><!--{TRICKS}"), "_b"]


def test_drawings_stay_well_formed(hostile: RenderedReport) -> None:
    from xml.etree import ElementTree

    drawings = sorted((hostile.html.parent / "figures").glob("*.svg"))
    assert drawings
    for path in drawings:
        ElementTree.fromstring(path.read_text(encoding="utf-8"))


def test_markdown_keeps_its_shape(hostile: RenderedReport) -> None:
    text = markdown_of(hostile)
    outside = re.sub(r"``.*?``|`[^`\n]*`", "", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    assert not re.search(r"<(?!/?(details|summary|br|sup)\b)", outside)
    assert "\x1b" not in text
    for block in re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}) == 1


def test_latex_says_what_the_text_says(hostile: RenderedReport) -> None:
    text = (hostile.html.parent / "tables" / "ranked.tex").read_text(encoding="utf-8")
    assert r"\textless{}script\textgreater{}" in text
    assert not re.search(r"(?<!\\)[$#_](?!\\pm|\\uparrow)", text.replace(r"$\pm$", ""))
    assert escape_latex("\\{}^~ 5 % é") == (
        r"\textbackslash{}\{\}\textasciicircum{}\textasciitilde{} 5 \% é"
    )


def test_a_spreadsheet_runs_no_formula(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    bad = record(quality_cell(TASK, BASE, 0), "failed", detail="=cmd|' /C calc'!A0")
    write_run(folder, records=[bad], tasks=[TASK])
    export_tables(folder, tmp_path / "tables")
    with (tmp_path / "tables" / "cells.csv").open(encoding="utf-8", newline="") as file:
        details = [line["detail"] for line in csv.DictReader(file)]
    assert details == ["'=cmd|' /C calc'!A0"]


@pytest.mark.parametrize(
    "address", ["javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", 'http://a"b', ""]
)
def test_only_web_addresses_become_links(address: str) -> None:
    assert safe_url(address) == ""


def test_markdown_text_means_itself() -> None:
    assert escape("a|b\n# c") == r"a\|b \# c"
    assert escape("shaw_rpr _x_") == r"shaw_rpr \_x\_"
    assert code_span("``") == "``` `` ```"


def test_a_label_with_quotes_is_one_shell_word(tmp_path: Path) -> None:
    import shlex

    from bench.api.command import run_command

    cell = Cell(**{**vars(replace(quality_cell(TASK, "it's", 0))), "variant": "it's $(x)"})
    assert shlex.split(run_command("--cell", cell.label))[-1] == cell.label


def test_names_that_the_catalog_does_not_know_are_printed(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", records=hostile_records(), tasks=[TASK])
    for name in ("catalog.json", "plan.json", "certificates.json"):
        (folder / name).unlink()
    page = render(folder).html.read_text(encoding="utf-8")
    assert "bahdanau[width=64]" in page


SPANS = "`head=gqa[kv_heads=1]` and `bench run --match params`"
NO_SPANS = (
    "`<b>`",
    "``a``",
    "`a|b`",
    "` a `",
    "`a\u00a0$b`",
    "`[b](c)`",
    "$`x`$",
    "`a\\`",
)


def test_a_sentence_shows_names_between_backticks_as_code() -> None:
    assert with_code(f"{SPANS}.") == f"{SPANS}."
    assert str(html.with_code(SPANS)) == (
        "<code>head=gqa[kv_heads=1]</code> and <code>bench run --match params</code>"
    )
    assert escape("`a`") == r"\`a\`"


@pytest.mark.parametrize("text", NO_SPANS)
def test_backticks_around_anything_else_stay_text(text: str) -> None:
    assert with_code(text) == escape(text)
    assert "<code>" not in str(html.with_code(text))


def test_what_stands_between_a_span_and_an_odd_backtick_stays_text() -> None:
    assert with_code("`a` <b>` c") == r"`a` &lt;b&gt;\` c"
    assert str(html.with_code("`a` <b>` c")) == "<code>a</code> &lt;b&gt;` c"


def test_examples_mean_themselves_and_sentences_show_code() -> None:
    sample = AnsweredExample(source="`a`", reference="`b`", outputs=(("`c`", "`d`"),))
    cells = (TableCell(text="see `dot`"), TableCell(text="see `dot`", code=True))
    table = TableBlock(
        key="t", title="t", columns=(Column(title="a"), Column(title="b")), rows=(cells,)
    )
    blocks = (Paragraph("`dot`"), table, SampleBlock(title="s", samples=(sample,)))
    document = Document(title="t", lead="", sections=(Section(key="k", title="k", blocks=blocks),))
    text, page = whole(document), html.page(document)
    assert r"| \`c\` | \`d\` |" in text
    assert "<dt>`c`</dt><dd>`d`</dd>" in page
    assert "\n\n`dot`\n\n" in text
    assert "<p><code>dot</code></p>" in page
    assert "| see `dot` | `` see `dot` `` |" in text
    assert "see <code>dot</code></td>" in page
    assert "<code>see `dot`</code>" in page
