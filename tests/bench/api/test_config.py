"""Options of selectors become typed configs, or an error that names what is legal."""

from dataclasses import dataclass
from typing import Annotated, Literal

import pytest

from bench.api import registry
from bench.api.axes import AXES
from bench.api.config import (
    Choices,
    Config,
    FirstDefault,
    FloatRange,
    IntRange,
    NoOptions,
    build_config,
    changed_options,
    config_options,
    default_of,
    first_defaults,
    search_ranges,
)
from bench.api.errors import InvalidConfig
from bench.api.selector import Selector, parse


@dataclass(frozen=True, kw_only=True)
class Everything(Config):
    whole: Annotated[int, IntRange(1, 9, log=True)] = 3
    real: Annotated[float, FloatRange(0.1, 1.0)] = 0.5
    yes: Annotated[bool, Choices((True, False))] = False
    word: str = "plain"
    rule: Literal["copy", "swap"] = "copy"
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
        ("whole=1.5", "thing: whole must be int, got 1.5"),
        ("whole=true", "thing: whole must be int, got True"),
        ("whole=four", "thing: whole must be int, got 'four'"),
        ("real=big", "thing: real must be float, got 'big'"),
        ("real=true", "thing: real must be float"),
        ("yes=1", "thing: yes must be bool, got 1"),
        ("word=3", "thing: word must be str, got 3"),
        ("word=a+b", "thing: word must be str"),
        ("rule=cpoy", "did you mean 'copy'"),
        ("rule=3", "value of thing: rule"),
        ("part=3", "thing: part must be Selector"),
        ("part=a+b", "thing: part must be Selector"),
        ("parts=3", "thing: parts takes names joined by '+'"),
        ("limit=half", "thing: limit must be int, got 'half'"),
        ("whoel=3", "no option of thing named 'whoel'; did you mean 'whole'"),
    ],
)
def test_a_wrong_value_names_owner_key_and_value(text, complaint):
    with pytest.raises(InvalidConfig) as error:
        build(text)
    assert complaint in str(error.value)


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
