"""Options of selectors become typed configs, or an error that names what is legal."""

import re
from dataclasses import dataclass, fields
from typing import Annotated, Literal, get_args, get_origin, get_type_hints

import pytest

from bench.api import registry
from bench.api.axes import AXES
from bench.api.config import (
    Choices,
    Config,
    FirstDefault,
    FloatRange,
    IntRange,
    Legal,
    NoOptions,
    build_config,
    changed_options,
    config_options,
    default_of,
    first_defaults,
    search_ranges,
)
from bench.api.documented_fields import documented_fields
from bench.api.errors import InvalidConfig
from bench.api.selector import Selector, parse


@dataclass(frozen=True, kw_only=True)
class Everything(Config):
    whole: Annotated[int, IntRange(1, 9, log=True)] = 3
    real: Annotated[float, FloatRange(0.1, 1.0)] = 0.5
    yes: Annotated[bool, Choices((True, False))] = False
    word: str = "plain"
    rule: Literal["copy", "swap"] = "copy"
    heads: Annotated[int, Choices((2, 4))] = 4
    extra: Annotated[int, IntRange(0, 9)] = 1
    weight: Annotated[float, FloatRange(0.1, 1.0), Legal(0)] = 0.5
    share: Annotated[float, FloatRange(0.0, 0.5), Legal(0, 1)] = 0.0
    shift: Annotated[float, FloatRange(-1.0, 1.0)] = 0.0
    part: Selector = Selector("inner")
    parts: tuple[Selector, ...] = (Selector("a"),)
    limit: int | None = None


def build(text):
    return build_config(Everything, parse(f"x[{text}]").options, "thing")


def test_every_kind_of_value_is_read():
    found = build("whole=4,real=2,yes=true,word=other,rule=swap,part=b[c=1],parts=d+e[f=2],limit=7")
    assert found == Everything(
        whole=4,
        real=2.0,
        yes=True,
        word="other",
        rule="swap",
        part=Selector("b", {"c": 1}),
        parts=(Selector("d"), Selector("e", {"f": 2})),
        limit=7,
    )
    assert isinstance(found.real, float)


@dataclass(frozen=True, kw_only=True)
class Grown(Config):
    old: int = 1
    wide: Annotated[int, FirstDefault(8), IntRange(1, 99)] = 64
    part: Annotated[Selector, FirstDefault("inner[x=1]")] = Selector("other")


def test_options_with_their_default_are_left_out_unless_it_has_changed():
    assert changed_options(Everything()) == {}
    assert changed_options(Everything(whole=3, word="other")) == {"word": (Selector("other"),)}
    assert first_defaults(Grown) == {"wide": 8, "part": (Selector("inner", {"x": 1}),)}
    always = {"wide": 64, "part": (Selector("other"),)}
    assert changed_options(Grown()) == always
    assert changed_options(Grown(old=2, wide=8)) == {**always, "old": 2, "wide": 8}
    assert search_ranges(Grown)["wide"] == IntRange(1, 99)


def test_nothing_given_is_the_defaults_and_none_is_none():
    assert build_config(Everything, {}, "thing") == Everything()
    assert build("limit=none").limit is None


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("whole=1.5", "thing: whole must be a whole number, got 1.5"),
        ("whole=true", "thing: whole must be a whole number, got true"),
        ("whole=four", "thing: whole must be a whole number, got 'four'"),
        ("real=big", "thing: real must be a number, got 'big'"),
        ("real=true", "thing: real must be a number, got true"),
        ("yes=1", "thing: yes must be true or false, got 1"),
        ("word=3", "thing: word must be a word, got 3"),
        ("word=a+b", "thing: word must be a word, got a+b"),
        ("rule=cpoy", "did you mean 'copy'"),
        ("rule=3", "value of thing: rule"),
        ("part=3", "thing: part must be a name, got 3"),
        ("part=a+b", "thing: part must be a name, got a+b"),
        ("parts=3", "thing: parts takes names joined by '+'"),
        ("limit=half", "thing: limit must be a whole number, got 'half'"),
        ("whoel=3", "no option of thing named 'whoel'; did you mean 'whole'"),
    ],
)
def test_a_wrong_value_names_owner_key_and_value(text, complaint):
    with pytest.raises(InvalidConfig) as error:
        build(text)
    assert complaint in str(error.value)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("whole=0", "thing: whole must be at least 1, got 0."),
        ("whole=-7", "thing: whole must be at least 1, got -7."),
        ("heads=0", "thing: heads must be at least 1, got 0."),
        ("extra=-1", "thing: extra must be at least 0, got -1."),
        ("real=0", "thing: real must be above 0, got 0.0."),
        ("real=-0.5", "thing: real must be above 0, got -0.5."),
        ("weight=-0.1", "thing: weight must be at least 0, got -0.1."),
        ("share=1.5", "thing: share must be at least 0 and at most 1, got 1.5."),
        ("limit=2147483648", "thing: limit must be at most 2147483647, got 2147483648."),
        ("limit=-2147483648", "thing: limit must be at least -2147483647, got -2147483648."),
    ],
)
def test_a_number_that_means_nothing_is_refused_in_one_sentence(text, complaint):
    with pytest.raises(InvalidConfig) as error:
        build(text)
    assert str(error.value) == complaint


@pytest.mark.parametrize(
    "text",
    [
        *("whole=1", "whole=100", "heads=1", "heads=64", "extra=0", "extra=99", "real=0.001"),
        *("real=9", "weight=0", "weight=5", "share=1", "shift=-3", "limit=-1", "limit=2147483647"),
    ],
)
def test_a_range_is_for_studies_and_a_user_may_leave_it(text):
    name, _, value = text.partition("=")
    assert getattr(build(text), name) == float(value)


def test_a_long_number_is_quoted_in_part():
    with pytest.raises(InvalidConfig, match=r"got 9{40} \.\.\. \(300 characters\)\.$"):
        build(f"limit={'9' * 300}")


def test_what_is_written_out_is_read_back():
    config = build("whole=4,real=0.25,yes=true,word=other,part=b[c=1],parts=d+e[f=2]")
    assert build_config(Everything, config_options(config), "thing") == Everything(
        whole=4,
        real=0.25,
        yes=True,
        word="other",
        part=Selector("b", {"c": 1}),
        parts=(Selector("d"), Selector("e", {"f": 2})),
    )


def test_ranges_are_data_on_the_fields():
    assert search_ranges(Everything) == {
        "whole": IntRange(1, 9, log=True),
        "real": FloatRange(0.1, 1.0),
        "yes": Choices((True, False)),
        "heads": Choices((2, 4)),
        "extra": IntRange(0, 9),
        "weight": FloatRange(0.1, 1.0),
        "share": FloatRange(0.0, 0.5),
        "shift": FloatRange(-1.0, 1.0),
    }
    assert search_ranges(NoOptions) == {}
    assert default_of(Everything, "whole") == 3
    with pytest.raises(KeyError):
        default_of(Everything, "nothing")


@pytest.mark.parametrize("axis", AXES)
def test_every_registered_default_lies_in_its_range_and_is_read_back(axis):
    for name, item in registry.registrations(axis).items():
        if axis == "recipe":
            continue
        config = item.config()
        assert build_config(item.config, config_options(config), name) == config
        for field, found in search_ranges(item.config).items():
            value = getattr(config, field)
            if isinstance(found, Choices):
                assert value in found.options, (name, field)
            else:
                assert found.low <= value <= found.high, (name, field)


MAY_BE_LESS = {
    "bigbird seed": "a seed",
    "lsh seed": "a seed",
    "performer seed": "a seed",
    "milk offset": "an energy, which has either sign",
    "mocha offset": "an energy, which has either sign",
    "raffel_monotonic offset": "an energy, which has either sign",
    "fox start": "an energy, which has either sign",
    "value_residual first": "a factor of a sum that may be subtracted",
    "value_residual own": "a factor of a sum that may be subtracted",
    "stdlib_code common": "0 words are common where all are rare",
    "tinyshakespeare common": "0 words are common where all are rare",
    "wikitext2_mini common": "0 words are common where all are rare",
}
"""Options that take less than their range or default suggests, and why."""


def _impossible(field, hint, bounds, meaning):
    """Numbers that cannot mean anything for an option, as its declaration has it."""
    if get_origin(hint) is Annotated:
        legal = [one for one in hint.__metadata__ if isinstance(one, Legal)]
        hint = get_args(hint)[0]
        if legal:
            return [legal[0].low - 1]
    kinds = get_args(hint) or (hint,)
    if not {int, float} & set(kinds) or not isinstance(field.default, int | float):
        return []
    if isinstance(bounds, Choices):
        low = min(bounds.options)
    else:
        low = field.default if bounds is None else bounds.low
    zero = low > 0 and not (bounds is None and re.search(r"\b0\b", meaning))
    return [0, -1] if zero else [-1]


def _registered_options():
    for axis in AXES:
        for name, item in registry.registrations(axis).items():
            hints = get_type_hints(item.config, include_extras=True)
            ranges, said = search_ranges(item.config), documented_fields(item.config)
            for one in fields(item.config):
                meaning = said[one.name]
                found = _impossible(one, hints[one.name], ranges.get(one.name), meaning)
                yield item.config, name, one.name, found


def test_no_registered_option_takes_a_number_that_means_nothing():
    """A new option that takes 0 or -1 declares it in its annotation, or has its reason above."""
    taken, asked = set(), 0
    for config, name, option, numbers in _registered_options():
        for number in numbers:
            asked += 1
            try:
                build_config(config, {option: number}, name)
            except InvalidConfig:
                continue
            taken.add(f"{name} {option}")
    assert taken == set(MAY_BE_LESS)
    assert asked > 500


def test_an_option_without_a_range_is_asked_for_what_its_default_excludes():
    @dataclass(frozen=True, kw_only=True)
    class New(Config):
        layers: int = 2
        cut: int = 2

    layers, cut = fields(New)
    assert _impossible(layers, int, None, "Layers.") == [0, -1]
    assert _impossible(cut, int, None, "Cut here; 0 for never.") == [-1]
