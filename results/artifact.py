"""What an artifact holds, as far as it has the form in which it was written (ADR 2).

A run folder may come from another program. An entry without usable weights is left out, and a part
of another form counts as missing.
"""

from collections.abc import Sequence

from results.json_values import Json, JsonObject, as_list, as_number, as_object

TOKENS = ("query", "source", "said", "sentences")


def whole_artifact(data: JsonObject) -> JsonObject:
    """The usable entries of an artifact, and the rest as it is."""
    kept: dict[str, Json] = dict(data)
    for key in ("attention", "examples"):
        if key in kept:
            entries = (_entry(as_object(one)) for one in as_list(kept[key]))
            kept[key] = [one for one in entries if one]
    if "samples" in kept:
        kept["samples"] = [one for one in as_list(kept["samples"]) if isinstance(one, dict)]
    return kept


def _entry(data: JsonObject) -> dict[str, Json]:
    """One attention map; empty where there are no weights."""
    if not _is_matrix(data.get("weights")):
        return {}
    kept: dict[str, Json] = dict(data)
    for key in TOKENS:
        if key in kept and not _are_tokens(kept[key]):
            kept[key] = []
    if not _is_matrix(kept.get("gold")):
        kept["gold"] = None
    picture = as_object(kept.get("picture"))
    if not (_is_matrix(picture.get("gray")) and _is_grid(as_list(picture.get("grid")))):
        kept["picture"] = None
    return kept


def _is_matrix(value: Json) -> bool:
    """Whether it is rows of numbers, all of one length, which is not 0."""
    rows = [as_list(row) for row in as_list(value)]
    numbers = all(as_number(one) is not None for row in rows for one in row)
    return numbers and len({len(row) for row in rows}) == 1 and len(rows[0]) > 0


def _are_tokens(value: Json) -> bool:
    return isinstance(value, list) and not any(isinstance(one, list | dict) for one in value)


def _is_grid(value: Sequence[Json]) -> bool:
    return len(value) == 2 and all(type(one) is int and one > 0 for one in value)
