"""From a selector to components: written out, round trips, and refusals in words."""

from dataclasses import replace

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench.api import registry
from bench.api.axes import ABSENT, BACKBONE_AXES, CHAIN_AXES, STACKED, VARIANT_AXES
from bench.api.build import SlotPlace, build_slot, build_variant
from bench.api.call import Dims
from bench.api.errors import BenchError, InvalidConfig, Refused, UnknownName
from bench.api.loading import load_package
from bench.api.options import complete
from bench.api.resolve import canonical_backbone, find, resolve
from bench.api.selector import Selector, parse
from bench.api.variant import Variant

load_package("variants")
load_package("tasks")
LISTED = tuple(registry.listed_variants())
NAMED = tuple({*LISTED, *registry.registrations("recipe"), *registry.registrations("mechanism")})
DIMS = Dims(
    heads=2,
    kv_heads=2,
    query_width=8,
    key_width=8,
    value_width=8,
    model_width=16,
    regime="cross",
    source_vocab=11,
)


@pytest.mark.parametrize("name", sorted(NAMED))
def test_a_written_out_variant_means_itself(name):
    spec = resolve(name)
    again = resolve(spec.canonical)
    assert again.canonical == spec.canonical
    assert again.revision == spec.revision
    assert again.fixes == spec.fixes
    assert resolve(parse(spec.canonical.show())).canonical.show() == spec.canonical.show()


def choices(axis):
    names = sorted(registry.registrations(axis))
    if axis in ABSENT:
        names.append(ABSENT[axis])
    one = st.sampled_from(names).map(lambda name: (Selector(name),))
    if axis not in STACKED:
        return one
    several = st.lists(
        st.sampled_from(sorted(registry.registrations(axis))), min_size=2, max_size=3
    )
    return one | several.map(lambda found: tuple(Selector(name) for name in found))


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(LISTED),
    st.fixed_dictionaries(
        {}, optional={axis: choices(axis) for axis in (*VARIANT_AXES, *BACKBONE_AXES)}
    ),
)
def test_any_combination_of_axes_means_itself_once_written_out(name, chosen):
    asked = Selector(name, chosen)
    mechanism = registry.listed_variants()[name].axis == "mechanism"
    turned = getattr(registry.listed_variants()[name].target, "takes_positions", False)
    free = {"position"} if turned else set()
    if mechanism and (set(CHAIN_AXES) - free) & set(chosen):
        with pytest.raises(InvalidConfig, match="replaces the whole chain"):
            resolve(asked)
        return
    spec = resolve(asked)
    assert resolve(spec.canonical).canonical == spec.canonical
    assert resolve(asked.show()).canonical == spec.canonical
    for axis, value in chosen.items():
        shown = spec.complete.options[axis]
        assert [s.name for s in shown] == [s.name for s in value]
    for regime in ("cross", "causal", "pool"):
        reason = spec.refusal(frozenset({regime, "padding", "stepwise"}))
        assert reason is None or (reason.endswith(".") or ":" in reason)


def test_options_without_an_axis_go_to_what_the_name_is_about():
    for asked, axis, option, value in (
        ("additive[width=8]", "score", "width", 8),
        ("bahdanau[width=8]", "score", "width", 8),
        ("luong_global[input_feeding=true]", "decoder", "input_feeding", True),
        ("mha[heads=2]", "head", "heads", 2),
    ):
        (owner,) = resolve(asked).complete.options[axis]
        assert owner.options[option] == value


def test_a_nested_selector_sets_options_two_levels_down():
    inner = "score=additive[width=8],history=tu_coverage,direction=both[joint=agreement_trace]"
    shown = resolve(f"bahdanau[{inner}]").complete.show()
    assert "score=additive[width=8]" in shown
    assert "joint=agreement_trace" in shown
    assert "history=tu_coverage[" in shown or "history=tu_coverage," in shown


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        ("additive[widht=8]", "did you mean 'width'"),
        ("scaled_dot[scor=dot]", "did you mean 'score'"),
        ("linear_attention[hed=multi]", "did you mean 'head'"),
        ("scaled_dot[score=addtive]", "did you mean 'additive'"),
        ("scaled_dto", "did you mean 'scaled_dot'"),
        ("bahdanau[decoder=luonge]", "did you mean 'luong'"),
        ("scaled_dot[score=3]", "score takes a name, got 3"),
        ("bahdanau[decoder=true]", "decoder takes a name, got true"),
        ("additive[width=wide]", "additive: width must be a whole number, got 'wide'"),
        ("additive[width=0]", "width must be at least 1"),
        ("additive[width=2.5]", "must be a whole number, got 2.5"),
        ("scaled_dot[score=dot+general]", "score takes one name"),
        ("bahdanau[decoder=luong+bahdanau]", "decoder takes one name"),
        ("shaw_rpr[position=none+sinusoid]", "'none' stands alone"),
        ("scaled_dot[history=none[x=1]]", "'none' stands alone"),
        ("scaled_dot[head=auto[heads=4]]", "head=auto takes no options"),
        ("none_position[heads=4]", "no option of none_position named 'heads'"),
        ("shaw_rpr[position=none,reach=4]", "no option of shaw_rpr named 'reach'"),
        ("linear_attention[score=dot]", "replaces the whole chain and has no axis 'score'; it has"),
        ("linformer[mask=full]", "'mask'; it has head, position, output and loss."),
        ("reinforce+dot", "expected the end"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_sentence(asked, complaint):
    with pytest.raises(BenchError) as error:
        resolve(asked)
    assert complaint in str(error.value)
    assert "\n" not in str(error.value)


def test_a_mechanism_keeps_a_backbone_axis_that_is_asked_of_it():
    spec = resolve("linear_attention[decoder=luong]")
    assert spec.fixes["decoder"].name == "luong"
    assert resolve(spec.canonical).fixes == spec.fixes


def test_stacked_components_keep_their_order():
    names = [s.name for s in resolve("scaled_dot[position=shaw_rpr+sinusoid]").axes["position"]]
    assert names == ["shaw_rpr", "sinusoid"]


def test_a_component_of_two_axes_must_be_named_with_its_axis():
    with pytest.raises(InvalidConfig, match=r"axes; write scaled_dot\[normalizer=softmax\] or"):
        find("softmax")


def test_the_backbone_axes_of_a_recipe_are_left_out_beneath_a_users_own_model():
    assert resolve("bahdanau").fixes["decoder"].name == "bahdanau"
    assert not resolve("bahdanau", beneath=True).fixes


def test_a_fixed_axis_replaces_the_backbones_own():
    fixes = resolve("bahdanau").fixes
    (decoder,) = canonical_backbone("rnn_seq2seq", fixes).options["decoder"]
    assert complete("decoder", decoder) == fixes["decoder"]
    with pytest.raises(Refused, match=r"fixes decoder=.*pooling has no such axis"):
        canonical_backbone("pooling", fixes)


def test_the_revision_names_every_part_that_is_no_longer_in_its_first(monkeypatch):
    entries = {axis: dict(found) for axis, found in registry._ENTRIES.items()}
    monkeypatch.setattr(registry, "_ENTRIES", entries)
    assert resolve("bahdanau").revision == ""
    for axis, name in (("score", "additive"), ("normalizer", "softmax"), ("recipe", "bahdanau")):
        entries[axis][name] = replace(entries[axis][name], revision=3)
    assert resolve("bahdanau").revision == "additive:3 bahdanau:3 softmax:3"
    assert resolve("linear_attention").revision == ""


@pytest.mark.parametrize("name", sorted(LISTED))
def test_every_listed_variant_is_built_or_refused_with_a_reason(name):
    spec = resolve(name)
    given = frozenset({"padding", "stepwise", "equal_width", "equal_heads", "source_tokens"})
    given |= {"loss:reinforce", "gold_alignment", "open_loop", "reversible_pairs", "weights"}
    for regime in ("cross", "causal", "self", "pool"):
        reason = spec.refusal(given | {regime})
        if reason is None:
            torch.manual_seed(0)
            built = build_variant(spec, DIMS._replace(regime=regime), given=given)
            assert isinstance(built, Variant)
            assert built.dims.regime == regime
        else:
            with pytest.raises(Refused) as error:
                build_variant(spec, DIMS._replace(regime=regime), given=given)
            assert str(error.value) == reason


def test_heads_left_to_the_place_are_those_of_the_place():
    place = SlotPlace(regime="cross", query_width=8, source_width=8, head="multi[heads=2]")
    assert build_slot(resolve("dot"), place).heads.dims.heads == 2
    assert build_slot(resolve("dot[head=raw]"), place).heads.dims.heads == 1


def test_dot_needs_equal_widths_and_says_so():
    place = SlotPlace(regime="cross", query_width=8, source_width=6, head="raw")
    with pytest.raises(Refused, match="dot needs queries and keys of equal width"):
        build_slot(resolve("dot"), place)


def test_a_wrong_name_on_a_chain_axis_is_never_silently_the_default():
    for axis in CHAIN_AXES:
        with pytest.raises(UnknownName):
            resolve(f"scaled_dot[{axis}=nothing_like_this]")


def test_the_word_for_nothing_is_no_variant():
    with pytest.raises(InvalidConfig, match=r"scaled_dot\[normalizer=none\]"):
        resolve("none")
    assert resolve("scaled_dot[normalizer=none]").axes["normalizer"][0].name == "none"


def test_a_mechanism_is_trained_by_the_loss_that_it_names_unless_another_is_asked_for():
    usual, none = resolve("csa"), resolve("csa[loss=none]")
    assert usual.axes["loss"] == (Selector("indexer_kl", {"weight": 1.0}),)
    assert usual.canonical.show() == resolve("csa[loss=indexer_kl]").canonical.show() == "csa"
    assert none.axes["loss"] == ()
    assert none.canonical.show() == "csa[loss=none]"
    assert resolve("nsa").axes["loss"] == ()
