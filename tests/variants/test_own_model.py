"""Variants in a user's own model: nothing that is asked for is ignored, and nothing is dropped."""

import subprocess
import sys
from functools import partial

import pytest
import torch
from torch import nn

import variants
from bench.api.errors import BenchError, InvalidConfig, Refused, UnknownName
from bench.api.registry import listed_variants, registrations

variants.load_all()
NAMES = sorted(listed_variants())
REGIMES = ("cross", "causal", "self", "pool")
MORE = {
    "none_state": "decoder none_state",
    "pointer_generator": "output pointer_generator",
    "coverage_loss": "loss coverage_loss",
    "unk_replacement": "search greedy",
    "las": "encoder pyramid",
    "agreement_l2": "direction both",
    "additive[decoder=luong]": "decoder",
}


def built(name, regime="self", **options):
    return variants.build(name, dim=8, regime=regime, attention_only=True, **options)


def built_or_skip(name, regime="self", **options):
    """For tests of all names, some of which have no such form."""
    try:
        return built(name, regime, **options)
    except BenchError as reason:
        pytest.skip(str(reason))


def drawn(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def call(attention, x, source=None, **options):
    own = attention.heads.dims.regime in ("causal", "self")
    return (
        attention(x, **options) if own else attention(x, x if source is None else source, **options)
    )


@pytest.mark.parametrize(("selector", "lost"), MORE.items())
def test_what_is_more_than_attention_is_refused_or_asked_for(selector, lost):
    with pytest.raises(Refused, match=f"build would leave out its .*{lost}"):
        variants.build(selector, dim=8, regime="cross")
    assert variants.build(selector, dim=8, regime="cross", attention_only=True) is not None


def moved(attention, x, **options):
    """How much the answer to the last token changes where all earlier ones are reversed."""
    turned = torch.cat((x[:, :-1].flip(1), x[:, -1:]), 1)
    before, after = (attention.eval()(one, **options)[:, -1] for one in (x, turned))
    return float((before - after).detach().abs().max())


@pytest.mark.parametrize("name", sorted(registrations("position")))
def test_every_position_tells_the_order_or_is_refused(name):
    labels = torch.arange(72).view(2, 6, 6) % 5  # of places, whatever stands there
    refused = []
    for regime in ("self", "causal"):
        selector = f"additive[position={name}]"
        try:
            attention = variants.build(selector, dim=8, heads=2, relations=5, regime=regime)
        except Refused as reason:
            refused.append(str(reason))
            continue
        with torch.no_grad():  # many start as zeros
            for one in attention.variant.positions[0].parameters():
                one.copy_(drawn(1, *one.shape)[0])
        assert moved(attention, drawn(2, 6, 8), extras={"relation": labels}) > 1e-3
    assert len(refused) < 2 or all("would leave them out" in one for one in refused)


@pytest.mark.parametrize(
    "selector",
    [
        "sinusoid",
        "learned[max_length=4]",
        "shaw_rpr[position=shaw_rpr+sinusoid]",
        "linear_attention[position=sinusoid]",
    ],
)
def test_positions_of_the_input_are_asked_for_and_added_by_a_call(selector):
    with pytest.raises(Refused, match=r"attention_only=True, .* attention\.variant\.embed\(x, off"):
        variants.build(selector, dim=8, heads=2)
    with pytest.raises(Refused, match="adds positions to the input of a network"):
        variants.as_multihead(selector, 8, 2)
    attention = variants.build(selector, dim=8, heads=2, attention_only=True)
    x = drawn(2, 4, 8)
    turned = torch.cat((x[:, :-1].flip(1), x[:, -1:]), 1)
    before, after = (attention(attention.variant.embed(one, 0))[:, -1] for one in (x, turned))
    assert (before - after).abs().max() > 1e-3


def test_what_is_called_adds_learned_places_which_learn_and_end():
    options = {"dim": 8, "regime": "causal", "attention_only": True}
    attention = variants.build("learned[max_length=4]", **options)
    embed = attention.variant.embed
    attention(embed(drawn(2, 3, 8), 1)).sum().backward()
    learned = attention.variant.positions[0].table.grad.abs().sum(1) > 0
    assert learned.tolist() == [False, True, True, True]
    with pytest.raises(Refused, match="the sequence has 9 tokens"):
        embed(drawn(2, 9, 8), 0)


@pytest.mark.parametrize("impl", ["SDPA", "foo", ""])
def test_an_implementation_is_one_of_four(impl):
    with pytest.raises(UnknownName, match="no impl named"):
        variants.build("additive", dim=8, impl=impl)


@pytest.mark.parametrize("regime", ["Causal", "", "encoder"])
def test_a_regime_is_one_of_the_four(regime):
    with pytest.raises(UnknownName, match="no regime named"):
        variants.build("scaled_dot", dim=8, regime=regime)


@pytest.mark.parametrize(
    "wrong", [{"dim": 0}, {"dim": 8, "heads": 0}, {"dim": 8, "source_dim": -1}]
)
def test_widths_and_heads_are_whole_numbers(wrong):
    with pytest.raises(InvalidConfig, match="must be a whole number of at least 1"):
        variants.build("scaled_dot", **{"regime": "cross", **wrong})


@pytest.mark.usefixtures("unchecked_annotations")  # users have none
@pytest.mark.parametrize(
    ("wrong", "least"),
    [
        ({"dim": True}, 1),
        ({"source_vocab": -5}, 0),
        ({"source_vocab": 2.5}, 0),
        ({"word_dim": -4}, 0),
        ({"relations": -1}, 0),
        ({"layers_below": True}, 0),
    ],
)
def test_other_sizes_are_whole_numbers_too(wrong, least):
    name = next(iter(wrong))
    sizes = {"dim": 8, "source_vocab": 5, "word_dim": 4, "relations": 3, **wrong}
    with pytest.raises(InvalidConfig, match=f"^{name} must be a whole number of at least {least}"):
        variants.build("mi_coverage", regime="cross", attention_only=True, **sizes)


@pytest.mark.usefixtures("unchecked_annotations")
@pytest.mark.parametrize(
    ("wrong", "least"),
    [
        ({"vocab": None}, 1),
        ({"context_dim": 0}, 1),
        ({"word_dim": -2}, 0),
        ({"word_dim": "x"}, 0),
        ({"source_dim": -1}, 0),
        ({"unk": True}, 0),
    ],
)
def test_sizes_of_an_output_are_whole_numbers(wrong, least):
    name = next(iter(wrong))
    sizes = {"vocab": 50, "state_dim": 8, "context_dim": 8, "word_dim": 4, "unk": 3, **wrong}
    with pytest.raises(InvalidConfig, match=f"^{name} must be a whole number of at least {least}"):
        variants.build_output("pointer_generator", **sizes)


@pytest.mark.usefixtures("unchecked_annotations")
@pytest.mark.parametrize("wrong", [{"source_dim": -1}, {"state_dim": "x"}, {"word_dim": 2.5}])
def test_widths_of_a_loss_are_whole_numbers(wrong):
    name = next(iter(wrong))
    with pytest.raises(InvalidConfig, match=f"^{name} must be a whole number of at least 0"):
        variants.build_loss("coverage_loss", **wrong)


@pytest.mark.parametrize(
    ("name", "regime", "missing"),
    [("mi_coverage", "cross", "word"), ("relation_aware[head=multi]", "self", "relation")],
)
def test_a_declared_input_that_is_missing_is_named(name, regime, missing):
    sizes = {"source_vocab": 5, "word_dim": 4, "relations": 3}
    attention = built(name, regime, **sizes)
    x, tokens = drawn(2, 3, 8), torch.zeros(2, 3, dtype=torch.long)
    for extras in (None, {"other": drawn(2, 3, 4)}):
        with pytest.raises(InvalidConfig, match=f'this attention reads "{missing}" of each query'):
            call(attention, x, tokens=tokens, extras=extras)


def test_heads_are_honored_by_names_with_heads_of_their_own():
    assert variants.build("mha", dim=16, heads=8).heads.dims.heads == 8
    assert variants.build("mha[heads=8]", dim=16, heads=8).heads.dims.heads == 8
    assert variants.build("mha", dim=16).heads.dims.heads == 4
    with pytest.raises(InvalidConfig, match="name two numbers of heads"):
        variants.build("mha[heads=4]", dim=16, heads=8)
    with pytest.raises(InvalidConfig, match="whose number is not an option"):
        variants.build("snail", dim=16, heads=8, regime="causal")


@pytest.mark.parametrize("selector", ["mha", "gqa", "scaled_dot[head=multi[heads=2]]"])
def test_biases_are_honored_by_names_with_heads_of_their_own(selector):
    for wanted in (False, True):
        heads = variants.build(selector, dim=16, projection_bias=wanted).heads
        assert (heads.to_query.bias is not None) == wanted


@pytest.mark.parametrize("selector", ["mha[bias=false]", "scaled_dot[head=multi[bias=false]]"])
def test_a_selector_that_writes_biases_decides(selector):
    plain = variants.build(selector, dim=8, heads=2, projection_bias=True)
    for heads in (plain.heads, variants.as_multihead(selector, 8, 2).attention.heads):
        assert heads.to_query.bias is None
        assert heads.dims.heads == 2


def test_an_option_of_a_mask_that_is_called_heads_counts_no_heads():
    attention = variants.build("strided[head=multi,heads=merged]", dim=8, heads=2, regime="causal")
    assert attention.heads.dims.heads == 2


@pytest.mark.parametrize("dtype", [torch.float32, torch.long, torch.uint8])
@pytest.mark.parametrize("name", NAMES)
def test_a_mask_of_zeros_and_ones_is_a_mask(name, dtype):
    attention = built_or_skip(name, "cross", source_dim=8).eval()
    x, source = drawn(2, 3, 8), drawn(2, 5, 8, seed=1)
    mask = torch.arange(5) < torch.tensor([5, 2])[:, None]
    try:
        wanted = attention(x, source, mask=mask)
    except BenchError as reason:
        pytest.skip(str(reason))
    torch.testing.assert_close(attention(x, source, mask=mask.to(dtype)), wanted)
    moved = torch.where(mask.unsqueeze(-1), source, 9.0)
    torch.testing.assert_close(attention(x, moved, mask=mask.to(dtype)), wanted)


@pytest.mark.parametrize("regime", REGIMES)
def test_masks_that_are_none_are_refused(regime):
    attention = variants.build("scaled_dot", dim=8, regime=regime)
    x = drawn(2, 4, 8)
    with pytest.raises(InvalidConfig, match="has padding before real vectors"):
        call(attention, x, mask=torch.tensor([[False, True, True, True]] * 2))
    with pytest.raises(InvalidConfig, match="this one has other values"):
        call(attention, x, mask=torch.full((2, 4), 0.5))
    with pytest.raises(InvalidConfig, match="must have shape"):
        call(attention, x, mask=torch.ones(4, 2, dtype=torch.bool))


@pytest.mark.parametrize("regime", REGIMES)
def test_empty_sequences_have_an_answer_or_a_sentence(regime):
    attention = variants.build("scaled_dot", dim=8, heads=2, regime=regime)
    empty, some = torch.zeros(2, 0, 8), torch.zeros(2, 3, 8)
    assert call(attention, empty, some).shape == (2, 0, 8)
    if regime in ("cross", "pool"):
        with pytest.raises(InvalidConfig, match="nothing to attend to"):
            attention(some, empty)


def test_a_source_is_given_exactly_where_it_is_needed():
    x = drawn(1, 3, 8)
    with pytest.raises(InvalidConfig, match="leave the source out"):
        variants.build("scaled_dot", dim=8)(x, drawn(1, 3, 8, seed=1))
    with pytest.raises(InvalidConfig, match="needs a source"):
        variants.build("scaled_dot", dim=8, regime="cross")(x)


def test_pooling_answers_one_query():
    attention, source = variants.build("scaled_dot", dim=8, regime="pool"), drawn(2, 4, 8)
    assert attention(drawn(2, 1, 8), source).shape == (2, 1, 8)
    sentence = 'answers one query, got {}; build it with regime="cross" to ask several'
    with pytest.raises(InvalidConfig, match=sentence.format(3)):
        attention(drawn(2, 3, 8), source)
    x, memory = drawn(2, 1, 8), attention.prepare(source)
    _, answer = attention.attend(x, memory, attention.start(memory, x))
    with pytest.raises(InvalidConfig, match=sentence.format(2)):
        attention.attend(x, memory, answer.state)


DRAWING = [
    "hard_gumbel_st",
    "hard_reinforce",
    "raffel_monotonic",
    "mocha",
    "milk",
    "dropped_sum",
]


@pytest.mark.parametrize("name", DRAWING)
def test_train_and_eval_decide_how_it_reads(name):
    attention = built(name, "cross", source_dim=8)
    x, source = drawn(2, 3, 8), drawn(2, 9, 8, seed=1)
    torch.manual_seed(1)
    first = attention.train()(x, source)
    again = attention(x, source)
    torch.manual_seed(1)
    repeated = attention(x, source)
    assert torch.equal(first, repeated)
    calm = attention.eval()(x, source)
    assert torch.equal(calm, attention(x, source))
    assert not torch.equal(first, again) or not torch.equal(first, calm)


def test_in_evaluation_it_draws_where_that_is_how_it_is_scored():
    attention = built("hard_reinforce[inference=sample]", "cross", source_dim=8).eval()
    x, source = drawn(2, 3, 8), drawn(2, 9, 8, seed=1)
    torch.manual_seed(1)
    first = attention(x, source)
    again = attention(x, source)
    torch.manual_seed(1)
    assert torch.equal(attention(x, source), first)
    assert not torch.equal(again, first)


def test_a_call_says_how_much_of_training_is_done():
    name = "hard_gumbel_st[tau_start=5.0,tau_end=0.1]"
    attention = built(name, "cross", source_dim=8).train()
    x, source, found = drawn(2, 3, 8).requires_grad_(), drawn(2, 9, 8, seed=1), []
    for progress in (0.0, 1.0):
        torch.manual_seed(1)
        attention(x, source, progress=progress).sum().backward()
        found.append(x.grad)
        x.grad = None
    assert not torch.allclose(*found)


def test_every_call_in_training_draws_anew():
    attention = built("dropped_sum", "cross", source_dim=8).train()
    x, source = drawn(2, 7, 8), drawn(2, 9, 8, seed=1)
    assert not torch.equal(attention(x, source), attention(x, source))


def test_tokens_of_the_source_are_passed_on():
    sizes = {"source_dim": 8, "source_vocab": 11, "word_dim": 4}
    attention = built("mi_coverage", "cross", **sizes)
    x, source, words = drawn(2, 3, 8), drawn(2, 5, 8, seed=1), drawn(2, 3, 4, seed=2)
    tokens = torch.arange(10).view(2, 5)
    found = [attention(x, source, tokens=t, extras={"word": words}) for t in (tokens, tokens + 1)]
    assert not torch.equal(*found)


@pytest.mark.parametrize("name", ["hard_gumbel_st", "raffel_monotonic", "mocha", "milk"])
def test_in_training_scores_have_gradients(name):
    attention = built(name, "cross", source_dim=8).train()
    attention(drawn(2, 3, 8), drawn(2, 9, 8, seed=1)).square().sum().backward()
    found = [p.grad for n, p in attention.named_parameters() if "score" in n or "query" in n]
    assert found
    assert any(grad is not None and bool(grad.abs().sum() > 0) for grad in found)


@pytest.mark.parametrize("name", NAMES)
def test_it_stands_in_a_sequential(name):
    heads = None if name in ("sagan", "snail", "mha_roles") else 2
    attention = built_or_skip(name, "self", heads=heads)
    model = nn.Sequential(nn.Linear(4, 8), attention)
    try:
        found = model(drawn(2, 5, 4))
    except BenchError as reason:
        pytest.skip(str(reason))
    assert found.shape == (2, 5, attention.output_width)
    found.sum().backward()


COMPILE = """
import sys, torch, variants
for name in sys.argv[1:]:
    attention = variants.build(name, dim=8, heads=2, regime="causal").eval()
    x = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(0))
    compiled = torch.compile(attention, backend="aot_eager", fullgraph=True)(x)
    exported = torch.export.export(attention, (x,)).module()(x)
    torch.testing.assert_close(compiled, attention(x))
    torch.testing.assert_close(exported, attention(x))
    torch._dynamo.reset()
told = {"relation": torch.randint(3, (2, 5, 5))}
for regime in ("self", "causal"):
    attention = variants.build("relation_aware", dim=8, heads=2, relations=3, regime=regime).eval()
    compiled = torch.compile(attention, backend="aot_eager", fullgraph=True)(x, extras=told)
    exported = torch.export.export(attention, (x,), {"extras": told}).module()(x, extras=told)
    torch.testing.assert_close(compiled, attention(x, extras=told))
    torch.testing.assert_close(exported, attention(x, extras=told))
    torch._dynamo.reset()
"""
COMPILED = ["scaled_dot", "additive", "shaw_rpr", "linear_attention", "entmax15", "lstmn", "cosine"]


@pytest.mark.slow
def test_it_compiles_and_exports():
    # in a process of its own, without the hook that checks types
    subprocess.run([sys.executable, "-c", COMPILE, *COMPILED], check=True)


def test_losses_are_callables():
    attention = variants.build("additive", dim=8, source_dim=8, regime="cross")
    loss = variants.build_loss("coverage_loss[start=0,weight=2.0]")
    memory = attention.prepare(drawn(2, 5, 8, seed=1))
    x = drawn(2, 3, 8)
    _, attended = attention.attend(x, memory, attention.start(memory, x))
    weights = attended.weights[:, 0]
    mask = torch.tensor([[True, True, True], [True, False, False]])
    found = loss(attended, memory, mask=mask)
    scored = torch.where(mask[..., None], weights, 0.0)
    by_hand = torch.minimum(scored, scored.cumsum(1) - scored).sum() / 4
    torch.testing.assert_close(found, 2 * by_hand)


def test_the_moving_average_of_a_reward_is_carried_in_training_alone():
    attention = variants.build("hard_reinforce", dim=8, regime="cross", attention_only=True).train()
    loss = variants.build_loss("reinforce").train()
    memory, x = attention.prepare(drawn(2, 5, 8)), drawn(2, 3, 8, seed=1)
    _, attended = attention.attend(x, memory, attention.start(memory, x))
    mask = torch.ones(2, 3, dtype=torch.bool)
    loss(attended, memory, mask=mask, nll=torch.ones(2, 3))
    assert loss.carry["baseline"].item() == pytest.approx(-0.3)
    loss.eval()(attended, memory, mask=mask, nll=torch.ones(2, 3))
    assert loss.carry["baseline"].item() == pytest.approx(-0.3)


@pytest.mark.usefixtures("unchecked_annotations")  # users have none
@pytest.mark.parametrize(
    ("x", "source", "sentence"),
    [
        ((2, 5, 8), (2, 7, 8), r"the source must have shape \(batch, length, 6\), got \(2, 7, 8\)"),
        ((5, 8), (2, 7, 6), r"the queries must have shape \(batch, length, 8\), got \(5, 8\)"),
        ((2, 5, 8), (7, 6), r"the source must have shape \(batch, length, 6\), got \(7, 6\)"),
        ((2, 5, 8), (1, 7, 6), "queries have 2 rows and their source has 1"),
    ],
)
def test_tensors_of_another_shape_are_refused_with_the_shape_that_is_wanted(x, source, sentence):
    attention = variants.build("additive", dim=8, source_dim=6, regime="cross")
    with pytest.raises(InvalidConfig, match=sentence):
        attention(drawn(*x), drawn(*source))


@pytest.mark.usefixtures("unchecked_annotations")
def test_a_decoder_step_with_rows_of_another_batch_is_refused():
    attention = variants.build("additive", dim=8, source_dim=6, regime="cross")
    memory = attention.prepare(drawn(1, 7, 6))
    with pytest.raises(InvalidConfig, match="queries have 2 rows and their source has 1"):
        attention.attend(drawn(2, 1, 8), memory, attention.start(memory, drawn(2, 1, 8)))


def test_a_source_of_another_width_is_refused_where_queries_are_the_source():
    with pytest.raises(InvalidConfig, match="leave source_dim=6 out"):
        variants.build("additive", dim=8, source_dim=6, regime="causal")


@pytest.mark.parametrize("wrong", [{"vocab": 0}, {"unk": 50}, {"unk": -1}])
def test_an_output_needs_a_vocabulary_that_holds_the_unknown_word(wrong):
    sizes = {"vocab": 50, "state_dim": 8, "context_dim": 8, "word_dim": 4, "unk": 3}
    with pytest.raises(InvalidConfig, match=next(iter(wrong))):
        variants.build_output("pointer_generator", **(sizes | wrong))


def test_an_output_is_a_layer():
    attention = variants.build("additive", dim=6, source_dim=8, regime="cross")
    layer = variants.build_output(
        "pointer_generator", vocab=10, state_dim=6, context_dim=8, word_dim=4, unk=3
    )
    memory, states = attention.prepare(drawn(2, 5, 8)), drawn(2, 3, 6, seed=1)
    context, attended = attention.attend(states, memory, attention.start(memory, states))
    extended = torch.tensor([[4, 5, 10, 6, 2], [7, 11, 12, 5, 2]])
    given = (states, context, drawn(2, 3, 4, seed=2), attended, memory)
    found = layer(*given, extended=extended, num_extra=3)
    assert found.shape == (2, 3, 13)
    torch.testing.assert_close(found.exp().sum(-1), torch.ones(2, 3))
    targets = torch.tensor([[4, 10, 2], [11, 5, 2]])
    mask = torch.tensor([[True, True, True], [True, True, False]])
    nll = layer.nll(*given, targets=targets, mask=mask, extended=extended, num_extra=3)
    chosen = found.gather(-1, targets[..., None])[..., 0]
    torch.testing.assert_close(nll, torch.where(mask, -chosen, 0.0))


FEEDING = {"copynet": "copynet[selective_read=false]"}
"""Outputs that feed the decoder, and the form of each that does not."""
OUTPUTS = [FEEDING.get(name, name) for name in sorted(registrations("output"))]
COUNTING = ["lexicon_bias", "lexicon_linear"]
RECALLING = ["neural_cache", "pointer_sentinel"]
WHOLE = ["ssnt"]
"""Outputs without a factor for each word."""
PAIRS = [([4, 5, 6], [5, 6, 4]), ([5, 4, 11], [6, 5, 12]), ([6, 2], [4, 2])] * 5
"""Words 4 to 6 and their translations; 11 and 12 are words that the vocabulary lacks."""


def output_layer(selector, dtype=torch.float32, size=1.0):
    """A layer, and what a decoder hands it: three steps, five source words, one of them unknown."""
    torch.manual_seed(0)
    attention = variants.build("additive", dim=6, source_dim=8, regime="cross").to(dtype)
    sizes = {"vocab": 10, "state_dim": 6, "context_dim": 8, "word_dim": 4, "unk": 3}
    layer = variants.build_output(selector, **sizes).to(dtype)
    memory = attention.prepare(drawn(2, 5, 8).to(dtype))
    states = size * drawn(2, 3, 6, seed=1).to(dtype)
    context, attended = attention.attend(states, memory, attention.start(memory, states))
    extended = torch.tensor([[4, 5, 10, 6, 2], [7, 10, 4, 5, 2]])
    given = (states, context, drawn(2, 3, 4, seed=2).to(dtype), attended, memory)
    words = torch.tensor([[1, 4, 10], [1, 5, 7]])
    return layer, partial(layer, *given, extended=extended, num_extra=1, words=words), given


@pytest.mark.parametrize("selector", OUTPUTS)
def test_every_output_takes_words_beyond_the_vocabulary(selector):
    layer, ask, given = output_layer(selector)
    layer.fit(PAIRS)
    found = ask()
    assert found.shape == (2, 3, 11)
    torch.testing.assert_close(found.exp().sum(-1), torch.ones(2, 3))
    targets = torch.tensor([[4, 10, 2], [5, 7, 2]])
    mask = torch.tensor([[True, True, True], [True, True, False]])
    nll = layer.nll(*given, targets=targets, mask=mask, **ask.keywords)
    assert nll.isfinite().all()
    assert (nll.flatten()[:2] > 0).all()


@pytest.mark.parametrize("selector", [name for name in OUTPUTS if name not in WHOLE])
def test_the_likelihood_is_that_of_the_distribution(selector):
    layer, ask, given = output_layer(selector, torch.double)
    layer.eval().fit(PAIRS)
    targets = torch.tensor([[4, 5, 2], [5, 7, 2]])
    mask = torch.tensor([[True, True, True], [True, True, False]])
    nll = layer.nll(*given, targets=targets, mask=mask, **ask.keywords)
    chosen = ask().gather(-1, targets[..., None])[..., 0]
    torch.testing.assert_close(nll, torch.where(mask, -chosen, 0.0))


@pytest.mark.parametrize("selector", RECALLING)
def test_words_are_said_again_from_the_inputs_of_all_steps_so_far(selector):
    _, ask, _ = output_layer(selector, torch.double)
    heard = ask.keywords["words"]
    assert heard[0, 1] == 4
    other = heard.clone()
    other[0, 1] = 6
    moved = ask(words=other).exp() - ask().exp()
    assert (moved[0, 1:, 6] > 1e-3).all()
    torch.testing.assert_close(moved[0, 1:, 6], -moved[0, 1:, 4])
    moved[0, 1:, [4, 6]] = 0
    assert not moved.any()
    unknown = torch.where(heard < 10, heard, 3)
    assert torch.equal(ask(words=unknown), ask())


@pytest.mark.parametrize("selector", RECALLING)
def test_an_output_that_says_words_again_asks_for_them(selector):
    layer, ask, given = output_layer(selector)
    wanted = {"targets": torch.ones(2, 3).long(), "mask": torch.ones(2, 3).bool()}
    calls = (layer.nll, layer.own_losses)
    for call in (ask, *(partial(one, *given, **wanted, **ask.keywords) for one in calls)):
        with pytest.raises(Refused, match="pass words=, the ids of the decoder inputs"):
            call(words=None)
        call()


@pytest.mark.usefixtures("unchecked_annotations")
def test_words_of_another_number_of_steps_are_refused():
    _, ask, _ = output_layer("pointer_sentinel")
    with pytest.raises(InvalidConfig, match=r"one id for each state, shape \(2, 3\), got \(2, 2\)"):
        ask(words=ask.keywords["words"][:, 1:])


def test_other_outputs_read_no_words_that_were_said():
    for selector in OUTPUTS:
        if selector not in RECALLING:
            layer, ask, _ = output_layer(selector)
            layer.fit(PAIRS)
            assert torch.equal(ask(words=None), ask()), selector


def test_what_an_output_adds_to_its_likelihood_is_told():
    targets = torch.tensor([[4, 10, 2], [5, 7, 2]])
    mask = torch.tensor([[True, True, True], [True, True, False]])
    found = {}
    for selector in OUTPUTS:
        layer, ask, given = output_layer(selector, torch.double)
        layer.fit(PAIRS)
        own = layer.own_losses(*given, targets=targets, mask=mask, **ask.keywords)
        found |= {selector: own} if own else {}
    assert found.keys() == {"pointer_sentinel"}
    assert found["pointer_sentinel"].keys() == {"gate"}
    layer, ask, given = output_layer("pointer_sentinel", torch.double)
    states, (query, sentinel) = given[0], (layer.output.query, layer.output.sentinel)
    total = 0.0
    for row, t in mask.nonzero().tolist():
        asked = torch.tanh(query(states[row, t]))
        shares = torch.softmax(torch.stack([*states[row, : t + 1], sentinel]) @ asked, 0)
        words = ask.keywords["words"][row, : t + 1].tolist()
        right = int(targets[row, t])
        said = [s for s, word in zip(shares[:-1], words, strict=True) if word == right]
        total -= sum(said, shares[-1]).log()
    torch.testing.assert_close(found["pointer_sentinel"]["gate"], total / 5)


def test_an_output_that_feeds_the_decoder_is_no_layer():
    sizes = {"vocab": 10, "state_dim": 6, "context_dim": 8, "word_dim": 4, "unk": 3}
    for name, form in FEEDING.items():
        with pytest.raises(Refused, match=rf"{name} feeds the decoder.*selective_read=false"):
            variants.build_output(name, **sizes)
        assert variants.build_output(form, **sizes) is not None


def test_a_lexicon_has_padding_at_zero_and_then_the_beginning_and_the_end():
    layer, _, _ = output_layer("lexicon_bias")
    layer.fit(PAIRS)
    lexicon = layer.output.lexicon
    assert not lexicon.chances[0].any()
    for word in (1, 2, 3):
        assert lexicon.ids[word, 0] == word
        assert lexicon.chances[word].tolist() == [1, *[0] * 16]


@pytest.mark.parametrize("size", [0.0, 1e-4])
@pytest.mark.parametrize("selector", OUTPUTS)
def test_half_precision_has_an_answer_to_states_of_zeros_or_of_small_numbers(selector, size):
    wide, half = (output_layer(selector, dtype, size)[:2] for dtype in (torch.float32, torch.half))
    for layer, _ in (wide, half):
        layer.fit(PAIRS)
    found, wanted = (ask().float().exp() for _, ask in (half, wide))
    torch.testing.assert_close(found, wanted, rtol=0.02, atol=0.02)


@pytest.mark.parametrize("selector", COUNTING)
def test_an_output_that_counts_pairs_says_so_where_it_has_none(selector):
    layer, ask, given = output_layer(selector)
    wanted = {"targets": torch.ones(2, 3).long(), "mask": torch.ones(2, 3).bool()}
    for call in (ask, partial(layer.nll, *given, **wanted, **ask.keywords)):
        with pytest.raises(Refused, match=r"estimates its table .*; call fit\(pairs\)"):
            call()
    layer.fit(PAIRS)
    assert layer.output.lexicon.ids[4, 0] == 5
    assert layer.output.lexicon.chances[4, 0] > 0.3
    again, ask_again, _ = output_layer(selector)
    again.load_state_dict(layer.state_dict())
    torch.testing.assert_close(ask_again(), ask())


def test_other_outputs_count_nothing_and_need_no_pairs():
    counted = []
    for selector in OUTPUTS:
        layer, ask, _ = output_layer(selector)
        if layer.output.fit_pairs:
            counted.append(selector)
        else:
            assert ask().isfinite().any()
    assert counted == COUNTING


@pytest.mark.parametrize("name", ["scaled_dot[normalizer=hardmax]", "max_readout"])
def test_what_learns_by_a_straight_gradient_learns_in_a_model_of_ones_own(name):
    attention = built(name, "cross", heads=2).train()
    attention(drawn(2, 3, 8), drawn(2, 5, 8, seed=1)).sum().backward()
    grad = attention.heads.to_query.weight.grad
    assert grad is not None
    assert bool(grad.any())


@pytest.mark.parametrize("mask", ["moba[block=4]", "bigbird[block=4]", "last_key", "lsh"])
def test_a_cache_keeps_what_a_mask_may_need_though_a_span_is_short(mask):
    """Such masks go by the number of cached keys, or by far ones."""
    torch.manual_seed(0)
    attention = built(f"adaptive_span[largest=4,ramp=2,mask={mask}]", "causal").double().eval()
    x = drawn(1, 40, 8).double()
    with torch.no_grad():
        state, words = attention.start(None, x[:, :1]), []
        for t in range(x.shape[1]):
            word = x[:, t : t + 1]
            output, attended = attention.attend(word, None, state, own=(word, None, None))
            state = attended.state
            words.append(output)
        torch.testing.assert_close(torch.cat(words, 1), attention(x))


@pytest.mark.parametrize("mask", ["strided[stride=3]", "moba[block=2]", "bigbird[block=2]"])
def test_an_index_of_keys_stands_beside_a_mask_that_differs_by_head(mask):
    torch.manual_seed(0)
    name, x = f"scaled_dot[mask={mask},normalizer=dsa[chosen=3]]", drawn(1, 24, 8)
    attention, plain = (
        built(name, "causal", heads=2, impl=impl).eval() for impl in ("auto", "eager")
    )
    attention.variant.gather_from = 2
    plain.load_state_dict(attention.state_dict())
    with torch.no_grad():
        torch.testing.assert_close(attention(x), plain(x), rtol=1e-4, atol=1e-5)
