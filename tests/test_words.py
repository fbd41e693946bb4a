"""Words that must not come back: docs/glossary.md has the terms that stand in their place."""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from bench.api.axes import AXES
from bench.running.presets import PRESETS
from results.frame import COLUMNS
from results.row import STATUSES

ROOT = Path(__file__).parents[1]
GLOSSARY = ROOT / "docs" / "glossary.md"
READ = (".py", ".md", ".j2", ".js", ".toml")
LEFT_OUT = ("CHANGELOG.md", "tests/test_words.py", "reports/published/")
"""The changelog names what was renamed; published reports are made by a run."""

FORBIDDEN = {
    "contests?": "comparison",
    "entrants?": "entry",
    "told[ _](apart|from)": "significantly different",
    "(cannot|can not) tell": "tied, not significantly different",
    "tells? (them|two|it) apart": "differ significantly",
    "home[ _]tasks?": "default task",
    "wirings?": "decoder",
    "instruments?": "probe",
    "shams?": "A/A control",
    "floors?": "uniform baseline",
    "anchors?": "published result",
    "showcases?": "examples",
    "with(held|holds?)": "input ablation",
    "whereabouts": "path",
    "mirror(s|ed)?": "data directory",
    "without[ _]a[ _]network": "non-neural baseline",
    "needs?[ _]no[ _]network": "non-neural baseline",
    "(to|or) [^ ]+ (of|in) ([0-9]|\\{)[^ ]{0,30} seeds\\)": "min–max",
    "aggregat(e|es|ion|ions)": "readout",
    '(variants[./]|axis=")patterns?': "mask",
    '(variants[./]|axis=")alignments?': "normalizer",
    '(variants[./]|axis=")feedbacks?': "attention history",
    '(variants[./]|axis=")gains?': "post-softmax weight",
    "(takes|cannot)(: classvar| = (frozenset|\\{))": "removes, unsupported",
    "handbooks?": "page of variants",
}
"""A pattern over lower-case lines, and the term that says it."""


@dataclass(frozen=True)
class Allowed:
    """A place where a word of the list means something else."""

    path: str
    phrase: str
    reason: str


ALLOWED = (
    Allowed(r".*", r"(math|np|torch)\.floor\b", "the function that rounds down"),
    Allowed(r".*", r"\.aggregate\(", "the method of pandas"),
    Allowed(r"(tasks|tests/tasks)/images/.*", r"mirror(ed| image)", "read from right to left"),
    Allowed(r"tasks/text_pairs/nli_syn\.py", r"instruments?", "a word of the generated sentences"),
    Allowed(r"tasks/reading/.*|tests/tasks/.*", r"floor", "a place in a story, and in a task"),
    Allowed(r"tasks/speech/.*|tasks/data/sound\.py", r"floor", "the lowest energy of a sound"),
    Allowed(r"(tests/)?variants/.*", r"floor", "the least probability that a logarithm gets"),
    Allowed(r"results/statistics/.*", r"FLOOR", "the least relative difference that is claimed"),
    Allowed(r"(tests/)?tasks/backbones/(test_)?pair\.py", r"aggregate", "a step of the paper"),
    Allowed(r"tasks/(data/scenes|text_pairs/stsb)\.py", r"instrument", "a word of the sentences"),
    Allowed(r"tests/.*", r"retold from", "told again"),
    Allowed(
        r"reports/(accounts|folder|ranked|speed|blocks|tables|html|markdown|details|page)\.py"
        r"|reports/(sections|figures|templates)/.*|tests/reports/.*",
        r"#?anchors?\b",
        "the target of a link inside an HTML page",
    ),
)


def tracked():
    done = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"],  # new files too, before they are added
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.skip("there is no git here to say which files are ours")
    return [
        name
        for name in done.stdout.splitlines()
        if name.endswith(READ) and not name.startswith(LEFT_OUT) and (ROOT / name).is_file()
    ]


def allowed(path, line, start, end):
    return any(
        match.start() <= start and end <= match.end()
        for place in ALLOWED
        if re.fullmatch(place.path, path)
        for match in re.finditer(place.phrase.lower(), line)
    )


ANY = re.compile(rf"(?<![a-z])(?:{'|'.join(FORBIDDEN)})(?![a-z])")


def found_in(path, text):
    """Lines that hold a forbidden word, each with what to say instead."""
    for number, line in enumerate(text.lower().splitlines(), start=1):
        for match in ANY.finditer(line):
            if not allowed(path, line, *match.span()):
                yield f"{path}:{number}: {match.group()!r}, say {instead_of(match.group())!r}"


def instead_of(word):
    return next(term for pattern, term in FORBIDDEN.items() if re.fullmatch(pattern, word))


def test_no_file_holds_the_marks_of_a_merge():
    marks = re.compile(r"^(<{7}|>{7}) ", re.MULTILINE)
    names = [*tracked(), "CHANGELOG.md"]
    assert [name for name in names if marks.search((ROOT / name).read_text("utf-8"))] == []


def test_no_forbidden_word_is_in_code_pages_or_templates():
    wrong = [one for name in tracked() for one in found_in(name, (ROOT / name).read_text("utf-8"))]
    assert not wrong, "\n" + "\n".join(wrong)


@pytest.mark.parametrize(
    "line",
    [
        "the contest of a task has 8 entrants",
        "additive is not told apart from dot",
        "def showcase_maps(batch):",
        "0.31 (0.10 to 0.70 of 3 seeds)",
        'f"({low} to {high} of {count} seeds)"',
        "best value without a network",
        'axis="pattern"',
        "    takes: ClassVar[frozenset[str]]",
    ],
)
def test_a_planted_word_is_found(line):
    assert list(found_in("reports/summary.py", line))


@pytest.mark.parametrize(
    "line", ["math.floor(3.2)", "no alignment of words", "a regular pattern", "Wellington said so"]
)
def test_ordinary_lines_are_left_alone(line):
    assert not list(found_in("results/frame.py", line))


def terms():
    found = re.findall(r"^- \*\*(.+?)\*\*: .+\.$", GLOSSARY.read_text("utf-8"), flags=re.MULTILINE)
    return [term.lower() for term in found]


def test_every_line_of_the_glossary_is_a_term_with_its_meaning_and_no_term_is_twice():
    lines = [line for line in GLOSSARY.read_text("utf-8").splitlines() if line.startswith("- ")]
    assert len(lines) == len(terms()) > 100
    assert len(set(terms())) == len(terms())


@pytest.mark.parametrize("name", [*AXES, "quality", "speed", "trial", "analysis", "kind", "cell"])
def test_axes_and_kinds_of_cells_are_in_the_glossary(name):
    assert name.replace("_", " ") in [*terms(), "history"]


def test_every_preset_is_in_the_glossary():
    (line,) = re.findall(r"^- \*\*preset\*\*: (.+)$", GLOSSARY.read_text("utf-8"), re.MULTILINE)
    assert re.findall(r"`(\w+)`", line) == list(PRESETS)


def test_statuses_and_columns_use_terms_of_the_glossary():
    text = GLOSSARY.read_text("utf-8")
    assert not [status for status in STATUSES if f"`{status}`" not in text]
    plain = {"dtype", "device", "value", "seconds", "finished", "processor", "variant_name"}
    plain |= {"task_name", "revisions", "impl"}
    known = set(terms())
    assert not [name for name in COLUMNS if name not in known | plain]
