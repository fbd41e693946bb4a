"""The table of published packs: what each holds, by which commits."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import results
from bench.docs.marked import with_part

FOLDER = Path("results", "published")
PAGE = FOLDER / "README.md"
PACKS = {
    "quick": "every variant on its default task and on one shared task, and its speed; five seeds",
    "families": "every task's own comparison, three seeds (two of pipeline checks)",
    "multi30k": "translation of Multi30k with a GRU of width 256 for 240 s of CPU time: uniform "
    "attention, `scaled_dot`, `luong_global`, `bahdanau`; three seeds",
    "erasure": "text classifiers, and what erasing words does to them",
    "modern": "the preset `modern`, five seeds: recall, induction, offset, parity, composition, "
    "copying, needles, three texts",
    "fresh_seeds": "`recall` of `quick` over state bytes, also with positions, and `induction` of "
    "`modern` over positions, on five seeds (700 to 704) by which no size, length or rate was "
    "chosen; figures of README and findings are drawn from it",
    "flagship": "the preset `flagship` on strings (`--tasks transduction`), on German inflection, "
    "on translation of Multi30k with a GRU, and on spoken digits, without a summary of the sound "
    "and, as a second comparison, with a decoder that starts from the last state of its encoder; "
    "five seeds, until validation gets no better or for 12,000 steps",
    "quantity_end": "spoken digits of `flagship` with a loss that leaves the end of the string "
    "out; five seeds",
    "milk_latency": "spoken digits of `flagship`: `milk` without its loss on delay, with soft "
    "pre-training, and with a loss that sets in late; five seeds",
    "serving": "one attention layer of 8 heads of width 64: prefill, decoding and state at 256 and "
    "1,024 keys, 34 variants up to 8,192 and eight up to 32,768, batches of 8 and 64, bfloat16, "
    "plain, fused and compiled code",
    "serving_gpu": "one NVIDIA H200: 256 to 131,072 keys in bfloat16, batches of 1, 8 and 64, "
    "fused, plain and compiled code, float32; torch 2.11",
    "claims": "claims of the source documents, on seeds of their own; eight claims have a second "
    "sample, and 26 were written anew ([ADR 20](../../docs/adr/020-claims.md)); the page names the "
    "commit of each claim",
}
"""What each pack is, in the order of the table."""


def packs_table(root: Path) -> str:
    """The table in Markdown: cells, variants and commits are those of the packs."""
    heads, rule = ("pack", "what", "variants", "cells", "by commits"), "--- --- ---: ---: ---"
    rows = [heads, tuple(rule.split())]
    for name, what in PACKS.items():
        run = results.load(root / FOLDER / f"{name}.parquet")
        known = {key: _commit(one) for key, one in run.environments.items()}
        found = Counter(known[one] for one in run.cells.environment)
        commits = ", ".join(
            commit + (f" ({count})" if len(found) > 1 else "")
            for commit, count in found.most_common()
        )
        variants = run.cells.variant.nunique()
        rows.append((f"`{name}`", what, str(variants), str(len(run.cells)), commits))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _commit(facts: Mapping[str, object]) -> str:
    """A commit in Markdown, and whether files differed from it."""
    changed = " with uncommitted changes" if facts.get("git_dirty") else ""
    return f"`{str(facts['git_revision'])[:8]}`{changed}"


def update_packs(root: Path, *, write: bool = True) -> bool:
    """Bring the table up to date; returns whether it was out of date."""
    path = root / PAGE
    text = path.read_text(encoding="utf-8")
    wanted = with_part(text, "packs", packs_table(root), name_of_page=str(PAGE))
    if write and wanted != text:
        path.write_text(wanted, encoding="utf-8")
    return wanted != text
