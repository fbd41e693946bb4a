import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.api.errors import InvalidSelector
from bench.api.selector import Selector, parse, parse_list, parse_names, show_value, walk

words = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.\-]{0,8}", fullmatch=True)
names = words.filter(lambda word: word not in ("true", "false"))
scalars = st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)


def with_options(inner):
    values = scalars | st.lists(inner, min_size=1, max_size=3).map(tuple)
    return st.builds(Selector, names, st.dictionaries(words, values, max_size=3))


selectors = st.recursive(st.builds(Selector, names), with_options, max_leaves=6)


@settings(deadline=None, max_examples=200)
@given(selectors)
def test_what_is_shown_reads_back_as_the_same_selector(selector):
    again = parse(selector.show())
    assert again == selector
    assert again.show() == selector.show()
    assert {key: type(value) for key, value in again.options.items()} == {
        key: type(value) for key, value in selector.options.items()
    }


@settings(deadline=None, max_examples=50)
@given(st.lists(selectors, min_size=1, max_size=4))
def test_a_list_of_selectors_reads_back(several):
    assert parse_list(",".join(selector.show() for selector in several)) == several


@settings(deadline=None, max_examples=200)
@given(st.text(max_size=20))
def test_any_text_is_read_or_refused_and_never_crashes(text):
    try:
        selector = parse(text)
    except InvalidSelector:
        return
    assert parse(selector.show()) == selector


@settings(deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_keep_full_precision(value):
    again = parse(f"a[b={show_value(value)}]").options["b"]
    assert again == value
    assert math.copysign(1, again) == math.copysign(1, value)


def test_spaces_and_order_of_options_do_not_matter():
    assert parse(" a [ c = 1 , b = true ] ").show() == "a[b=true,c=1]"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "expected a name, found the end"),
        ("a[", "expected a name"),
        ("a[b]", "expected '='"),
        ("a[b=1", "expected ',' or ']'"),
        ("a[b=1,b=2]", "given twice"),
        ("a]", "expected the end"),
        ("a[b=1x]", "position"),
    ],
)
def test_an_unreadable_selector_names_the_place(text, complaint):
    with pytest.raises(InvalidSelector, match="(?s)" + complaint.replace("[", r"\[")):
        parse(text)


def test_an_unreadable_end_says_what_may_follow():
    for read, text, expected in (
        (parse, "a,b", "expected the end or '[', because one name stands here, found ',b'"),
        (parse, "a+b", "expected the end or '[', because one name stands here, found '+b'"),
        (parse_list, "a+b", "expected the end, ',' or '[', found '+b'"),
        (parse_names, "a,b", "expected the end, '+' or '[', found ',b'"),
    ):
        with pytest.raises(InvalidSelector) as error:
            read(text)
        assert expected in str(error.value)


def test_walking_visits_nested_selectors():
    found = [inner.name for inner in walk(parse("a[b=c[d=e]+f,g=2]"))]
    assert found == ["a", "c", "e", "f"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a[b=" * 2000, "at most 20 levels of brackets"),
        ("a" * 300_000, "has at most 20000 characters"),
        (f"a[b={'9' * 5000}]", "a number that a float can hold"),
        ("a[b=1e999]", "a number that a float can hold"),
    ],
)
@pytest.mark.parametrize("read", [parse, parse_list, parse_names])
def test_a_deep_or_huge_selector_is_one_short_sentence(read, text, complaint):
    with pytest.raises(InvalidSelector, match=complaint) as error:
        read(text)
    assert len(str(error.value)) < 700


@pytest.mark.parametrize("given", [["dot"], {"dot": 1}, ("dot",), 3, None, b"dot"])
@pytest.mark.parametrize("read", [parse, parse_list, parse_names])
def test_what_is_no_text_is_refused(read, given):
    with pytest.raises(InvalidSelector, match="a name or a selector is a text, got"):
        read(given)


def test_the_deepest_brackets_are_read():
    deep = "a" + "[b=a" * 20 + "]" * 20
    assert parse(deep).show() == deep


def test_a_count_repeats_a_name_and_equal_neighbors_are_printed_with_one():
    stack = parse("decoder[stack=3*own+additive[width=8]]")
    names = [one.name for one in stack.options["stack"]]
    assert names == ["own", "own", "own", "additive"]
    assert stack.show() == "decoder[stack=3*own+additive[width=8]]"
    assert parse("decoder[stack=own+own]") == parse("decoder[stack=2*own]")
    assert parse("decoder[stack=2*own+mha+2*own]").show() == "decoder[stack=2*own+mha+2*own]"


@pytest.mark.parametrize("text", ["a[b=0*c]", "a[b=3*]", "a[b=3*2]", "a[b=9999*c]", "3*a"])
def test_a_count_without_a_name_or_out_of_range_is_an_error(text):
    with pytest.raises(InvalidSelector):
        parse(text)
