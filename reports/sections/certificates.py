"""What each variant was proved to satisfy before it was measured."""

from collections import Counter
from typing import Literal

from bench.api.checks import MEANING
from bench.api.impl import IMPLS
from reports.blocks import NO_VALUE, Column, Paragraph, Section, TableBlock, TableCell, clean
from reports.catalog import certificate_of, red_reasons
from reports.folder import RunFolder
from reports.sections.studies import measured_variants
from results.certificate import CertificateEntry


def certificates_section(folder: RunFolder) -> Section:
    """What each variant was proved to satisfy before it was measured.

    Settings that a study tried and did not choose are not certified, and not listed.
    """
    variants = measured_variants(folder.outcomes)
    lines, dimmed = [], []
    for variant in variants:
        line = _certificate_line(folder, variant)
        lines.append(line)
        dimmed.append(line[1].text != "green")
    columns = ("variant", "certificate", "passed", "skipped, with the reason", "failed")
    table = TableBlock(
        key="certificates-table",
        title="Conformance checks of every variant",
        columns=tuple(Column(title=name, numeric=name == "passed") for name in columns),
        rows=tuple(lines),
        dimmed=tuple(dimmed),
    )
    text = Paragraph(
        "A variant with a red certificate is shown and not ranked. Red means that a check failed, "
        "or that a check which the variant is expected to pass did not run. “none” means that "
        "nothing was checked. What a check holds is said as the code that wrote this page does it; "
        "the code of the run may have asked less."
    )
    blocks = (text, _checks(folder, variants), table)
    return Section(key="certificates", title="Certificates", blocks=blocks)


def _checks(folder: RunFolder, variants: list[str]) -> TableBlock:
    """What each check holds, and for how many variants it was run."""
    held = [certificate_of(folder.certificates, variant) for variant in variants]
    counts = Counter(found for one in held if one is not None for found in _endings(one))
    names = {check for check, _ in counts}
    # a check on one device ends in its name: answers_on_cuda_bfloat16
    ordered = [check for check in MEANING if check in names] + sorted(names - {*MEANING})
    lines = tuple(
        (
            TableCell(text=clean(check)),
            TableCell(text=clean(_meaning(check))),
            *(
                TableCell(text=str(counts[check, ending]), sort=counts[check, ending])
                for ending in ("passed", "skipped", "failed")
            ),
        )
        for check in ordered
    )
    columns = ("check", "what it holds", "passed", "skipped", "failed")
    return TableBlock(
        key="checks-table",
        title="What was checked, with numbers of variants",
        columns=tuple(Column(title=name, numeric=name not in columns[:2]) for name in columns),
        rows=lines,
    )


def _endings(certificate: CertificateEntry) -> set[tuple[str, str]]:
    """What became of each check; one at a shape ends in it, and counts as one for all shapes."""
    endings: tuple[Literal["passed", "skipped", "failed"], ...] = ("passed", "skipped", "failed")
    return {
        (check.partition("_at_")[0], ending) for ending in endings for check in certificate[ending]
    }


def _meaning(check: str) -> str:
    kind, _, place = check.partition("_on_")
    if place in IMPLS:
        return f"{MEANING.get(kind, NO_VALUE)}, with the code {place}"
    if place:
        what = "answers at timed shapes" if kind == "timed_shape" else kind.replace("_", " ")
        return f"{what} equal those in float64, on {place.replace('_', ' ')}"
    return MEANING.get(kind, NO_VALUE)


def _certificate_line(folder: RunFolder, variant: str) -> tuple[TableCell, ...]:
    certificate = certificate_of(folder.certificates, variant)
    name = TableCell(text=folder.catalog.label(variant))
    if certificate is None:
        return (
            name,
            TableCell(text="none"),
            TableCell(text="0", sort=0),
            TableCell(text=NO_VALUE),
            TableCell(text=NO_VALUE),
        )
    red = red_reasons(folder.certificates, variant)
    passed = list(certificate.get("passed") or ())
    skipped = [f"{check}: {why}" for check, why in (certificate.get("skipped") or {}).items()]
    return (
        name,
        TableCell(text="red", marks=("not ranked",)) if red else TableCell(text="green"),
        TableCell(text=str(len(passed)), sort=len(passed)),
        TableCell(text=clean("; ".join(skipped)) or NO_VALUE),
        TableCell(text=clean("; ".join(red)) or NO_VALUE),
    )
