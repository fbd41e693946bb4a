"""A small grammar of scenes (agent, verb, thing, place), with words that imply others.

Sentences are short English; their relation follows from natural logic over the taxonomy (MacCartney
& Manning, 2009, "An extended model of natural logic", https://aclanthology.org/W09-3714), so that
labels are right by construction.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

Kind = Literal["equal", "narrower", "wider", "apart", "open"]
"""Relation of one meaning to another: the same, implies it, is implied, excludes it, or none."""

NOUNS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "agent": {
        "animal": ("dog hound", "cat", "horse", "monkey", "bear", "goat"),
        "person": ("doctor physician", "sailor seaman", "farmer", "teacher", "king", "nurse"),
    },
    "thing": {
        "tool": ("hammer", "saw", "spade shovel", "ladder", "rake", "drill"),
        "instrument": ("guitar", "violin fiddle", "drum", "flute", "harp", "trumpet"),
        "fruit": ("apple", "pear", "plum", "lemon", "melon", "cherry"),
    },
}
"""Part -> class -> members, which exclude each other; words of one member mean the same."""
VERBS = ("carries", "hides conceals", "sells", "buys purchases", "paints", "lifts raises", "drops")
COLORS = ("red", "blue", "green", "black", "white", "yellow")
PLACES = ("garden", "kitchen", "street road", "forest woods", "harbor port", "station")
QUANTIFIERS = ("a", "every", "no")


@dataclass(frozen=True, kw_only=True)
class Scene:
    """Content of a sentence; an empty word leaves its part out."""

    quantifier: str
    agent: str
    agent_color: str
    verb: str
    thing: str
    thing_color: str
    place: str

    def words(self) -> list[str]:
        """The sentence.

        >>> parts = dict(agent="dog", agent_color="", verb="sells", thing="saw", thing_color="red")
        >>> " ".join(Scene(quantifier="every", place="garden", **parts).words())
        'every dog sells a red saw in the garden .'
        """
        place = ["in", "the", self.place] if self.place else []
        found = [self.quantifier, self.agent_color, self.agent, self.verb, "a", self.thing_color]
        return [word for word in (*found, self.thing, *place, ".") if word]


def _synonyms() -> dict[str, tuple[str, ...]]:
    """Word -> all words of its meaning."""
    members = [m for classes in NOUNS.values() for group in classes.values() for m in group]
    groups = [tuple(m.split()) for m in (*members, *VERBS, *COLORS, *PLACES)]
    return {word: group for group in groups for word in group}


SYNONYMS = _synonyms()
CLASS_OF = {
    word: name
    for classes in NOUNS.values()
    for name, members in classes.items()
    for member in members
    for word in member.split()
}
"""Noun -> its class."""


def vocabulary() -> list[str]:
    """All words, in a fixed order."""
    classes = [name for classes in NOUNS.values() for name in classes]
    return [*QUANTIFIERS, "in", "the", ".", "is", "by", *classes, *SYNONYMS]


def compare(one: str, two: str) -> Kind:
    """Relation of one word, or its absence, to another of the same part.

    >>> compare("dog", "hound"), compare("dog", "animal"), compare("dog", "cat"), compare("", "red")
    ('equal', 'narrower', 'apart', 'wider')
    """
    if one == two or two in SYNONYMS.get(one, ()):
        return "equal"
    if two == "" or CLASS_OF.get(one) == two:
        return "narrower"
    if one == "" or CLASS_OF.get(two) == one:
        return "wider"
    return "apart"


def together(kinds: Sequence[Kind]) -> Kind:
    """Relation of meanings that are made of parts."""
    found = set(kinds) - {"equal"}
    if "apart" in found:
        return "apart"
    if len(found) > 1 or "open" in found:
        return "open"
    return found.pop() if found else "equal"


def relation(premise: Scene, hypothesis: Scene) -> str:
    """Relation of premise and hypothesis.

    Both describe one situation: two sentences with `a` are about the same agent, and `every`
    presupposes that there is one.
    """
    who = together(
        [
            compare(premise.agent, hypothesis.agent),
            compare(premise.agent_color, hypothesis.agent_color),
        ]
    )
    parts = ("verb", "thing", "thing_color", "place")
    what = together([compare(getattr(premise, p), getattr(hypothesis, p)) for p in parts])
    pair = (premise.quantifier, hypothesis.quantifier)
    return "neutral" if pair not in _RULES else _RULES[pair](who, what)


DOWN = frozenset({"equal", "wider"})
"""The hypothesis' part implies the premise's."""
UP = frozenset({"equal", "narrower"})
"""The premise's part implies the hypothesis'."""
SHARED = UP | DOWN
"""Some agent is in both."""


def _decide(entails: bool, contradicts: bool) -> str:
    if entails:
        return "entailment"
    return "contradiction" if contradicts else "neutral"


_RULES = {
    ("a", "a"): lambda who, what: _decide(who in UP and what in UP, "apart" in (who, what)),
    ("a", "every"): lambda who, what: _decide(False, who in UP and what == "apart"),
    ("a", "no"): lambda who, what: _decide(False, who in UP and what in UP),
    ("every", "a"): lambda who, what: _decide(
        who in SHARED and what in UP, who in DOWN and what == "apart"
    ),
    ("every", "every"): lambda who, what: _decide(
        who in DOWN and what in UP, who in SHARED and what == "apart"
    ),
    ("every", "no"): lambda who, what: _decide(
        who in DOWN and what == "apart", who in SHARED and what in UP
    ),
    ("no", "a"): lambda who, what: _decide(False, who in DOWN and what in DOWN),
    ("no", "every"): lambda who, what: _decide(False, who in SHARED and what in DOWN),
    ("no", "no"): lambda who, what: _decide(who in DOWN and what in DOWN, False),
}


def draw(rng: random.Random, *, quantifiers: Sequence[str] = QUANTIFIERS) -> Scene:
    """A scene at random, colors and place there more often than not."""
    return Scene(
        quantifier=rng.choice(quantifiers),
        agent=_noun(rng, "agent"),
        agent_color=_maybe(rng, COLORS),
        verb=_word(rng, VERBS),
        thing=_noun(rng, "thing"),
        thing_color=_maybe(rng, COLORS),
        place=_maybe(rng, PLACES),
    )


PARTS = ("agent", "agent_color", "verb", "thing", "thing_color", "place")


def edit(scene: Scene, rng: random.Random, *, quantifier: float = 0.2) -> Scene:
    """Change one part: to a word of the same meaning, a wider, a narrower or another one.

    Args:
        scene: What to change.
        rng: Source of randomness.
        quantifier: Share of changes of the quantifier.
    """
    if rng.random() < quantifier:
        return replace(scene, quantifier=rng.choice(QUANTIFIERS))
    if scene.agent_color and scene.thing_color and rng.random() < 0.2:
        swapped = {"agent_color": scene.thing_color, "thing_color": scene.agent_color}
        return replace(scene, **swapped)
    part = rng.choice(PARTS)
    return replace(scene, **{part: _other(getattr(scene, part), part, rng)})


def rephrased(scene: Scene, rng: random.Random) -> Scene:
    """The same meaning in other words, where there are any."""
    found = {
        part: rng.choice(SYNONYMS.get(getattr(scene, part), (getattr(scene, part),)))
        for part in PARTS
    }
    return replace(scene, **found)


def _other(word: str, part: str, rng: random.Random) -> str:
    if part in NOUNS:
        return _other_noun(word, part, rng)
    if part == "verb":
        return _word(rng, VERBS)
    words = COLORS if part.endswith("color") else PLACES
    return "" if word and rng.random() < 0.5 else _word(rng, words)


def _other_noun(word: str, part: str, rng: random.Random) -> str:
    """Up to the class, down to a member, or across to another member."""
    name = CLASS_OF.get(word)
    if name is not None and rng.random() < 0.5:
        return name
    return _word(rng, NOUNS[part][name or word])


def _noun(rng: random.Random, part: str) -> str:
    name = rng.choice(tuple(NOUNS[part]))
    return name if rng.random() < 0.25 else _word(rng, NOUNS[part][name])


def _word(rng: random.Random, meanings: Sequence[str]) -> str:
    return rng.choice(rng.choice(meanings).split())


def _maybe(rng: random.Random, meanings: Sequence[str]) -> str:
    return _word(rng, meanings) if rng.random() < 0.7 else ""
