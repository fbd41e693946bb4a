"""What a reader must know before any number."""

from collections.abc import Sequence

from reports.blocks import Paragraph, Section
from reports.catalog import red_reasons
from reports.folder import RunFolder
from reports.prose import join
from reports.sections.data_sources import mixed_data, short_data


def warnings_section(folder: RunFolder) -> Section | None:
    """What a reader must know before any number; None where there is nothing."""
    told = [*mixed_data(folder).values(), *short_data(folder)]
    if not folder.catalog.ranks:
        told.insert(
            0,
            f"Choose nothing from this run. The preset “{folder.catalog.preset}” shows that "
            "everything works, and ranks nothing. A choice needs a preset with more seeds and a "
            "larger budget.",
        )
    told += folder.damages
    variants = {outcome.cell.variant for outcome in folder.outcomes}
    red = sorted(name for name in variants if red_reasons(folder.certificates, name))
    if red:
        told.append(f"Not ranked, because a conformance check is red: {names(folder, red)}.")
    if not told:
        return None
    blocks = tuple(Paragraph(sentence, "warning") for sentence in told)
    return Section(key="warnings", title="Warnings", blocks=blocks, group="summary")


def names(folder: RunFolder, variants: Sequence[str]) -> str:
    """Join short names, no more than a sentence can carry."""
    return join([folder.catalog.label(name) for name in variants])
