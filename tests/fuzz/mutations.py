"""Damage: bytes that a bad disk or a cut copy leaves, and JSON that another program wrote."""

import copy
import json
import random

ODD_VALUES = (
    None,
    True,
    False,
    0,
    -1,
    2**63,
    10**400,
    0.5,
    -1e308,
    "",
    "x",
    "half a pair \ud800",
    "a\nb\0c",
    "../../etc/passwd",
    "a[b=" * 300,
    "y" * 100_000,
    [],
    [[]],
    [None, {}],
    {},
    {"a": {"b": []}},
)
"""In the place of any value of a JSON file."""


def damaged_bytes(whole: bytes, chance: random.Random) -> bytes:
    """A file with bytes changed, taken out, doubled or put in, or cut."""
    content = bytearray(whole)
    for _ in range(chance.choice((1, 1, 3, 30))):
        place = chance.randrange(len(content) + 1)
        length = chance.choice((1, 1, 8, 200))
        match chance.randrange(5):
            case 0:
                content[place : place + length] = chance.randbytes(length)
            case 1:
                del content[place : place + length]
            case 2:
                content[place:place] = content[place : place + length]
            case 3:
                content[place:place] = chance.randbytes(length)
            case 4:
                content[place : place + 1] = bytes([chance.choice(b'\0\n\r\t"{}[],:0-\xff')])
    if chance.random() < 0.15:
        del content[chance.randrange(len(content) + 1) :]
    return bytes(content)


def other_json(value: object, chance: random.Random) -> object:
    """The same data with one to three values of another kind, missing, or under another name."""
    value = json.loads(json.dumps(value))
    for _ in range(chance.choice((1, 1, 2, 3))):
        value = _changed_once(value, chance)
    return value


def _changed_once(value: object, chance: random.Random) -> object:
    places = list(_places(value))
    if not places or chance.random() < 0.03:
        return _odd_value(chance)
    holder, key = chance.choice(places)
    match chance.randrange(6):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, dict):
            holder[chance.choice(("", "other", "schema", str(key) * 2))] = holder.pop(key)
        case _:
            holder[key] = _odd_value(chance)
    return value


def _places(value: object):
    """Every holder and key below a value; long lists count with their first entries."""
    entries = value.items() if isinstance(value, dict) else ()
    if isinstance(value, list):
        entries = enumerate(value[:5])
    for key, inner in entries:
        yield value, key
        yield from _places(inner)


def _odd_value(chance: random.Random) -> object:
    """A copy, because the next change may be inside it."""
    return copy.deepcopy(chance.choice(ODD_VALUES))
