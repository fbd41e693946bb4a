import pytest

from bench.api.errors import InvalidConfig, InvalidSelector
from bench.api.selector import Selector, parse
from bench.timing.shape import WORKLOADS, AttendShape, Rounds, parse_rounds, parse_shape


def test_a_shape_prints_what_is_not_the_default_and_reads_back():
    shape = AttendShape(length=512, width=64, regime="cross")
    assert shape.show() == "attend[length=512,regime=cross,width=64]"
    assert parse_shape(shape.show()) == shape


def test_a_protocol_prints_what_is_not_the_default_and_reads_back():
    protocol = parse_rounds("rounds[count=3,workloads=decode_step+forward]")
    assert parse_rounds(protocol.show()) == protocol
    assert "count=3" in protocol.show()
    assert "samples" not in protocol.show()
    assert protocol.asked == ("forward", "decode_step")
    assert Rounds().asked == WORKLOADS


def test_the_usual_baseline_is_not_written_so_that_ids_of_before_stay():
    assert Rounds(beside=Selector("scaled_dot")).show() == Rounds().show() == "rounds"
    text = "rounds[beside=dot[position=alibi],count=3]"
    assert parse_rounds(text).show() == text
    assert parse_rounds(text).beside == parse("dot[position=alibi]")


def test_a_shape_knows_the_sizes_a_variant_is_built_with():
    dims = AttendShape(heads=3, width=5).dims
    assert (dims.heads, dims.kv_heads, dims.key_width, dims.model_width) == (3, 3, 5, 15)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("attend[length=0]", "length must be at least 1"),
        ("attend[lenght=8]", "did you mean 'length'"),
        ("attend[regime=sideways]", "regime"),
        ("assist[length=8]", "needs attend"),
    ],
)
def test_a_wrong_shape_says_what_is_wrong(text, words):
    with pytest.raises(InvalidConfig, match=words):
        parse_shape(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rounds[count=0]", "count must be at least 1"),
        ("rounds[visit_ms=-1]", "visit_ms must be above 0"),
        ("rounds[workloads=forward+backwards]", "no workload 'backwards'"),
        ("attend", "needs rounds"),
    ],
)
def test_a_wrong_protocol_says_what_is_wrong(text, words):
    with pytest.raises(InvalidConfig, match=words):
        parse_rounds(text)


def test_text_that_is_no_selector_is_refused_by_the_grammar():
    with pytest.raises(InvalidSelector):
        parse_shape("attend[")


@pytest.mark.parametrize("cache", ["cold", "warm"])
def test_the_cache_is_no_option_for_only_a_warm_one_is_timed(cache):
    with pytest.raises(InvalidConfig, match="no option of rounds named 'cache'"):
        parse_rounds(f"rounds[cache={cache}]")
