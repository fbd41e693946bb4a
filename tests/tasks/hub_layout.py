"""What the hub would give for the invented data of `small_data/`, written without our readers."""

import gzip
import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

Splits = Mapping[str, Sequence[Mapping[str, Any]]]
TOPICS = ("World", "Sports", "Business", "Sci/Tech")
RELATIONS = ("entailment", "neutral", "contradiction")
CAT = {"1": 1, "2": 2, "3": 0}
TITLE = "A title"


def lines(path: Path) -> list[str]:
    return gzip.decompress(path.read_bytes()).decode().split("\n")[:-1]


def aeslc(folder: Path) -> Splits:
    stems = {"train": "train", "validation": "dev", "test": "test"}
    found = {}
    for split, stem in stems.items():
        rows = [json.loads(line) for line in lines(folder / f"{stem}.jsonl.gz")]
        found[split] = [{k: row[k] for k in ("email_body", "subject_line")} for row in rows]
    return found


def ag_news(folder: Path) -> Splits:
    found = {}
    for split, stem in (("train", "dev"), ("test", "test")):
        pairs = (line.split("\t") for line in lines(folder / f"{stem}.tsv.gz"))
        found[split] = [{"text": f"{TITLE} {t}", "label": TOPICS.index(n)} for t, n in pairs]
    return found


def babi(folder: Path) -> Splits:
    found: dict[str, list[Mapping[str, Any]]] = {}
    for number in range(1, 21):
        for part in ("train", "test"):
            path = folder / "en-10k" / f"qa{number}_invented_{part}.txt.gz"
            # the hub has the part that the data directory lacks
            path = path if path.exists() else folder / "en-10k" / f"qa2_invented_{part}.txt.gz"
            stories: list[dict[str, list[Any]]] = []
            for line in lines(path):
                place, _, rest = line.partition(" ")
                text, answer, facts = [*rest.split("\t"), "", ""][:3]
                if place == "1":
                    names = ("id", "type", "text", "answer", "supporting_ids")
                    stories.append({name: [] for name in names})
                told = (place, int(bool(answer)), text.strip(), answer, facts.split())
                for column, value in zip(stories[-1].values(), told, strict=True):
                    column.append(value)
            found[f"qa{number}_{part}"] = [{"story": story} for story in stories]
    return found


def django(folder: Path) -> Splits:
    pairs = zip(lines(folder / "all.anno.gz"), lines(folder / "all.code.gz"), strict=True)
    rows = [{"Unnamed: 0": 0, "nl": f" {anno}", "code": code} for anno, code in pairs]
    return {"train": rows[:170], "validation": rows[170:181], "test": rows[181:]}


def fsdd(folder: Path) -> Splits:
    found: dict[str, list[Mapping[str, Any]]] = {"train": [], "test": []}
    with zipfile.ZipFile(folder / "recordings.zip") as archive:
        for name in archive.namelist():
            if name.endswith("/"):
                continue
            stem = Path(name).stem.split("_")
            sound = {"bytes": archive.read(name), "path": Path(name).name}
            split = "test" if int(stem[2]) < 5 else "train"
            found[split].append({"audio": sound, "label": int(stem[0])})
    return found


def imdb(folder: Path) -> Splits:
    found = {}
    for split in ("train", "test"):
        rows = [json.loads(line) for line in lines(folder / f"{split}.jsonl.gz")]
        rows.sort(key=lambda row: row["label"])
        found[split] = [{"text": row["text"], "label": row["label"]} for row in rows]
    return {**found, "unsupervised": [{"text": "Nobody labeled this.", "label": -1}]}


def multi30k(folder: Path) -> Splits:
    stems = {"train": "train", "validation": "val", "test": "test_2016_flickr"}
    found = {}
    for split, stem in stems.items():
        columns = (lines(folder / f"{stem}.{language}.gz") for language in ("de", "en"))
        found[split] = [{"de": de, "en": en} for de, en in zip(*columns, strict=True)]
    return found


def snli(folder: Path) -> Splits:
    def row(premise: str, hypothesis: str, label: int) -> Mapping[str, Any]:
        return {"premise": premise.strip(), "hypothesis": hypothesis.strip(), "label": label}

    cat = (line.split("\t") for line in lines(folder / "cat" / "train.csv.gz"))
    found = {"train": [row(one, two, CAT[number]) for number, _, one, two in cat]}
    for split, stem in (("validation", "dev"), ("test", "test")):
        names = ("s1", "s2", "labels")
        columns = (lines(folder / "esnli" / f"{name}.{stem}.gz") for name in names)
        triples = zip(*columns, strict=True)
        found[split] = [row(a, b, RELATIONS.index(c.strip())) for a, b, c in triples]
    for rows in found.values():
        rows.insert(1, row("Nobody agreed.", "On this pair.", -1))
        rows.append(row("A text without a partner.", "", 0))
    return found


def sst2_sentences(folder: Path) -> Splits:
    stems = {"train": "train", "validation": "dev", "test": "test"}
    found = {}
    for split, stem in stems.items():
        pairs = (line.split("\t") for line in lines(folder / f"{stem}.tsv.gz"))
        found[split] = [{"text": t, "label": int(n), "label_text": ""} for t, n in pairs]
    return found


def stsb(folder: Path) -> Splits:
    parts = ("train", "validation", "test")
    texts = {part: (folder / f"{part}.jsonl").read_text(encoding="utf-8") for part in parts}
    return {part: [json.loads(x) for x in text.splitlines()] for part, text in texts.items()}


def tinyshakespeare(folder: Path) -> Splits:
    text = gzip.decompress((folder / "input.txt.gz").read_bytes()).decode()
    return {"train": [{"text": line} for line in text.removesuffix("\n").split("\n")]}


def wikitext2(folder: Path) -> Splits:
    def rows(stem: str) -> list[Mapping[str, Any]]:
        found = lines(folder / f"{stem}.txt.gz")
        return [{"text": f"{line}\n" if line.strip() else ""} for line in found]

    extra = [{"text": " a word that only the training part has \n"}]
    return {
        "train": [*extra, *rows("test")],
        "validation": rows("valid"),
        "test": rows("test"),
    }


LAYOUTS: Mapping[str, Callable[[Path], Splits]] = {
    "aeslc": aeslc,
    "ag_news": ag_news,
    "babi": babi,
    "django": django,
    "fsdd": fsdd,
    "imdb": imdb,
    "multi30k": multi30k,
    "snli": snli,
    "sst2_sentences": sst2_sentences,
    "stsb": stsb,
    "tinyshakespeare": tinyshakespeare,
    "wikitext2": wikitext2,
}
