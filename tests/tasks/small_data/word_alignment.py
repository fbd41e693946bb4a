"""A little invented text with links in the place of four sets of word alignments."""

import gzip
import json
import random
from pathlib import Path


def write(directory: Path, words: random.Random) -> None:
    folder = directory / "word_alignment"
    for name in ("awesome-align", "deen-bicici", "encs-czenali"):
        (folder / name).mkdir(parents=True)
    for stem in ("train", "valid"):
        rows = [_row(words) for _ in range(40)]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        path = folder / "encs-czenali" / f"czenali.{stem}.jsonl.gz"
        path.write_bytes(gzip.compress(text.encode()))
    for stem in ("enfr", "jaen"):
        rows = [_row(words) for _ in range(12)]
        place = folder / "awesome-align"
        pairs = (f"{' '.join(r['src_words'])} ||| {' '.join(r['tgt_words'])}\n" for r in rows)
        (place / f"{stem}.src-tgt").write_text("".join(pairs))
        links = (" ".join(f"{i + 1}-{j + 1}" for i, j in r["alignment"]) + "\n" for r in rows)
        (place / f"{stem}.gold").write_text("".join(links))
    rows = [_row(words) for _ in range(12)]
    place = folder / "deen-bicici"
    (place / "test.de").write_text("".join(" ".join(r["src_words"]) + "\n" for r in rows))
    (place / "test.en").write_text("".join(" ".join(r["tgt_words"]) + "\n" for r in rows))
    links = (" ".join(f"{i}-{j}" for i, j in r["alignment"]) + "\n" for r in rows)
    (place / "de-en.wa").write_text("".join(links))


def _row(words: random.Random) -> dict[str, object]:
    source = words.choices(("moon", "tower", "riddle", "seven", "old", "glass"), k=6)
    return {
        "src_words": source,
        "tgt_words": [word.upper() for word in source],
        "alignment": [[place, place] for place in range(6)],
    }
