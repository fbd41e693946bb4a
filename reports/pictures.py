"""Figures for documents: examples of a run, and kernels against their bandwidth."""

from collections.abc import Sequence
from pathlib import Path

from reports.blocks import PROGRAM, Document, Section
from reports.example_figures import example_figures
from reports.folder import RunFolder, read_folder
from reports.html import page
from reports.kernels import kernel_figures
from reports.steps import step_blocks
from reports.task_examples import slug, task_examples
from reports.written_files import write_file

HOW_TO_STEP = (
    "The shade of a word or place is the square root of its weight. Gold links have a dashed "
    "frame. Step with the buttons, the slider or the arrow keys."
)


def write_figures(
    path: Path, out: Path, tasks: Sequence[str] = (), *, publish: bool = False
) -> list[Path]:
    """Draw the examples of a run, and its kernels against their bandwidth.

    Args:
        path: A run folder.
        out: Folder to write to; made if missing.
        tasks: Names of the tasks to draw; none for all.
        publish: Name no folder of this machine.

    Returns:
        The files written: `example-<task>-<number>.svg` for each example, of the lowest seed, and
        `band-<task>.svg` and `kernels-<task>.svg` where a kernel ran with several bandwidths, and
        `steps-<task>.html`, the view that steps through a task's weights, as a page of its own.

    Raises:
        NotARunFolder: The folder has no ledger.
        UnknownName: The run has no such task.
    """
    folder = read_folder(path, tasks)
    folder = folder.as_published() if publish else folder
    figures = [one for found in example_figures(folder).values() for one in found]
    figures += kernel_figures(folder)
    out.mkdir(parents=True, exist_ok=True)
    written = []
    for figure in figures:
        written.append(write_file(out / f"{figure.key}.svg", figure.svg))
    for name, document in step_pages(folder).items():
        written.append(write_file(out / f"{name}.html", page(document)))
    return written


def step_pages(folder: RunFolder) -> dict[str, Document]:
    """A page for each task with examples; `#step=steps-1:2:1:4` opens one of its outputs."""
    pages = {}
    for task, examples in task_examples(folder).items():
        title = folder.catalog.task_label(task)
        section = Section(
            key="steps", title="Step through the weights", blocks=step_blocks(1, title, examples)
        )
        pages[f"steps-{slug(title)}"] = Document(
            title=f"{PROGRAM}: {title}",
            lead=HOW_TO_STEP,
            facts=(),
            commands=folder.commands,
            sections=(section,),
        )
    return pages
