"""What `bench show` says of a claim: the sentence, what decides it, the verdict and the cost."""

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from bench.api.claim import Claim, Contrast
    from bench.api.registry import Registration


class ClaimFacts(TypedDict):
    """What is printed of one claim, in this order; what is empty is not printed."""

    name: str
    axis: str
    what: str
    source: str
    quote: str
    decides: list[str]
    needed: str
    seeds: str
    networks: list[str]
    missing: str
    verdict: str
    cost: str
    note: str
    rewritten: str
    file: str


def claim_facts(registered: "Registration[Claim]", plugins: Sequence[str] = ()) -> ClaimFacts:
    """Everything known about one claim; nothing is computed from rows.

    Args:
        registered: The claim.
        plugins: Plug-in files that were loaded, one of which it may come from.
    """
    from reports.claim_words import bounds_in_words, networks_in_words

    claim = registered.target
    bounds = claim.exact.bounds if claim.exact else ()
    decides = [
        *(f"{one.title}: {_asked(one)}" for one in claim.contrasts),
        *(
            f"{one.title or one.metric.replace('_', ' ')}: {bounds_in_words(one)}, computed"
            for one in bounds
        ),
    ]
    return {
        "name": claim.key,
        "axis": registered.axis,
        "what": claim.title,
        "source": claim.source,
        "quote": f"“{claim.quote}”",
        "decides": decides,
        "needed": f"{claim.needed} of these" if len(decides) > 1 else "",
        "seeds": _seeds(claim) if claim.contrasts else "",
        "networks": networks_in_words(claim),
        "missing": claim.missing,
        "verdict": _verdict(claim),
        "cost": _cost(claim, plugins) if decides else "",
        "note": claim.note,
        "rewritten": claim.rewritten,
        "file": sys.modules[registered.module].__file__ or "",
    }


def claim_lines(facts: ClaimFacts) -> str:
    """For people: one line a fact, and one for each that decides."""
    lines = []
    for key, value in facts.items():
        for one in value if isinstance(value, list) else [value]:
            if one:
                lines.append(f"{key:<9} {one}")
    return "\n".join(lines)


def published_verdict(page: Path, key: str) -> str:
    """The verdict that the published page of claims states; empty where it has none.

    Computing it from the published rows needs packages that a light command does not import. A
    test recomputes all verdicts of the page.

    Args:
        page: `claims.md`.
        key: Of the claim.
    """
    if not page.is_file():
        return ""
    pattern = rf"^{re.escape(key)}: .* Verdict: ([^.]+)\."
    found = re.search(pattern, page.read_text(encoding="utf-8"), re.MULTILINE)
    return found[1] if found else ""


def _asked(contrast: "Contrast") -> str:
    """What is expected of a contrast, and of its networks."""
    from reports.claim_words import expected_in_words

    compared = " (spreads over seeds)" if contrast.of == "spread" else ""
    learned = [
        f"if the mean {one.side.metric.replace('_', ' ')} of {one.side.variant} is at least "
        f"{one.low:g}"
        for one in contrast.learned
    ]
    return ", ".join([expected_in_words(contrast) + compared, *learned])


def _seeds(claim: "Claim") -> str:
    """The seeds that decide."""
    seeds = claim.sample
    second = ", a second sample" if claim.again else ""
    return f"{len(seeds)} paired, {seeds.start} to {seeds.stop - 1}{second}"


def _verdict(claim: "Claim") -> str:
    """The published verdict, and where its numbers stand."""
    import reports

    page = Path(reports.__file__).parent / "published" / "claims" / "claims.md"
    found = published_verdict(page, claim.key)
    return f"{found}, as published; the numbers are in {page}" if found else ""


def _cost(claim: "Claim", plugins: Sequence[str]) -> str:
    """What running it takes."""
    from bench.claims.cells import expected_minutes
    from bench.running.request import Request
    from reports.claims import claims_command
    from reports.numbers import counted

    minutes = expected_minutes(claim, Request())
    took = f"about {counted(round(minutes), 'CPU minute')}"
    took = took if minutes >= 1 else "less than a CPU minute"
    return f"{took}: {claims_command(claim.key, plugins)}"
