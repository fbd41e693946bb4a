"""The view that a reader steps through: data of the examples, small enough to stand in a page.

`data` of a block: `variants` (names with scores), `sources` (lists of words), and `examples`, each
with `title`, `reference`, `picture` (or null) and `runs`, one a variant (or null): `said`,
`source` (a place in `sources`), `output`, `begins` (places where a sentence begins), `grid`,
`weights` (thousandths, one row a word said) and `gold` (places with a link, one list a row, or
null). A picture is `rows`, `columns` and `gray` (base64 of one byte a pixel); `grid` says how many
rows and columns of places the weights of a run belong to, and is null where they are words.
"""

import base64
from dataclasses import replace
from typing import Any

from reports.blocks import Block, Paragraph, Section, StepsBlock
from reports.example_figures import example_figures
from reports.folder import RunFolder
from reports.task_examples import (
    MapPicture,
    Shown,
    TaskExamples,
    task_examples,
    titles,
)

HOW_TO_READ = (
    "Each task brings examples along. Trained networks of one seed answered them. The score of "
    "each network is beside its name. Choose a variant and an example, and step through the output "
    "with the buttons, the slider, the arrow keys, Home or End. The shade of a word or place is "
    "the square root of its weight. Gold links have a dashed frame. One example shows how a "
    "mechanism works, not how good it is."
)


def steps_section(folder: RunFolder) -> Section | None:
    """One view a task, with a still figure of its first example; None without examples."""
    found = task_examples(folder)
    if not found:
        return None
    figures = example_figures(folder, most=1)
    blocks: list[Block] = [Paragraph(HOW_TO_READ)]
    for at, (task, examples) in enumerate(found.items(), start=1):
        title = folder.catalog.task_label(task)
        blocks += step_blocks(at, title, examples)
        blocks += [replace(figure, still=f"steps-{at}") for figure in figures[task]]
    return Section(key="steps", title="Step through the weights", blocks=tuple(blocks))


def step_blocks(at: int, title: str, examples: TaskExamples) -> tuple[Block, ...]:
    """The view of one task."""
    return (StepsBlock(key=f"steps-{at}", title=title, data=steps_data(examples)),)


def steps_data(examples: TaskExamples) -> dict[str, Any]:
    """What the script reads; words of sources that variants share are there once."""
    sources: dict[tuple[str, ...], int] = {}
    shown_examples = []
    for title in titles(examples):
        runs = [next((r for r in shown if r.title == title), None) for shown in examples.values()]
        known = [run for run in runs if run is not None]
        shown_examples.append(
            {
                "title": title,
                "reference": known[0].reference,
                "picture": _picture(next((r.picture for r in known if r.picture), None)),
                "runs": [None if run is None else _run(run, sources) for run in runs],
            }
        )
    names = [shown[0].name for shown in examples.values()]
    return {
        "variants": names,
        "examples": shown_examples,
        "sources": [list(words) for words in sources],
    }


def _run(run: Shown, sources: dict[tuple[str, ...], int]) -> dict[str, Any]:
    gold = run.gold
    return {
        "said": list(run.said),
        "source": sources.setdefault(run.source, len(sources)),
        "output": run.output,
        "begins": list(run.begins),
        "weights": [[round(1000 * weight) for weight in row] for row in run.weights],
        "gold": None
        if gold is None
        else [[at for at, link in enumerate(row) if link > 0] for row in gold],
        "grid": None if run.picture is None else list(run.picture.grid),
    }


def _picture(picture: MapPicture | None) -> dict[str, Any] | None:
    if picture is None:
        return None
    pixels = bytes(min(255, max(0, round(255 * value))) for line in picture.gray for value in line)
    return {
        "rows": len(picture.gray),
        "columns": len(picture.gray[0]),
        "gray": base64.b64encode(pixels).decode(),
    }
