"""The encoder that selects: what is not selected does not exist for the rest of the network."""

import pytest
import torch

from bench.api import registry
from bench.api.batch import Batch
from bench.api.encoder import Encoded
from bench.api.errors import InvalidConfig, Refused
from bench.api.noise import Noise
from bench.api.options import canonical
from bench.api.resolve import resolve
from bench.api.selector import parse
from bench.api.trace import Mode
from bench.training.refusals import cell_refusal

INNER = ("embed", "birnn", "uni_rnn")
NOTHING = torch.zeros(1, 1, dtype=torch.int64)
BATCH = Batch((), NOTHING, NOTHING, NOTHING.bool())
"""Encoders inside take nothing but words."""
TRAIN = Mode(read="train", noise=Noise(3))


@pytest.fixture
def encoder():
    """`encoder(inside)` -> a rationale encoder in float64 whose generator is undecided."""

    def make(inside="birnn"):
        with torch.random.fork_rng():
            torch.manual_seed(0)
            made = registry.make("encoder", parse(f"rationale[encoder={inside}]"), 6, 8)
        return made.double()

    return make


def draw(*shape, seed=0):
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=rng, dtype=torch.float64)


def decide(encoder, selected):
    """Make the generator choose what a table says, whatever it reads."""
    logits = torch.where(selected, 1.0, -1.0).double()
    states = logits.unsqueeze(-1).expand(-1, -1, encoder.choose.in_features)
    encoder.generator.forward = lambda x, mask: Encoded(states, mask, states[:, 0])
    with torch.no_grad():
        encoder.choose.weight.fill_(1.0)
        encoder.choose.bias.zero_()


@pytest.mark.parametrize("inside", INNER)
def test_unselected_tokens_have_exactly_no_influence(encoder, inside):
    made = encoder(inside)
    selected = torch.arange(21).view(3, 7) % 3 == 1
    decide(made, selected)
    x = draw(3, 7, 6).requires_grad_()
    found = made.read(x, None, BATCH, Mode())
    assert torch.equal(found.mask, selected)
    other = torch.where(selected[..., None], x, draw(3, 7, 6, seed=2) * 1e6)
    other = torch.where(selected[..., None], other, float("nan"))
    again = made.read(other, None, BATCH, Mode())
    assert torch.equal(again.states, found.states)
    assert torch.equal(again.summary, found.summary)
    (found.states.square().sum() + found.summary.square().sum()).backward()
    assert not x.grad[~selected].any()
    assert (x.grad[selected].abs().sum(-1) > 0).all()


@pytest.mark.parametrize("inside", INNER)
def test_selecting_everything_is_the_encoder_inside(encoder, inside):
    made = encoder(inside)
    mask = torch.arange(6) < torch.tensor([6, 3])[:, None]
    decide(made, torch.ones(2, 6, dtype=torch.bool))
    x = draw(2, 6, 6)
    found, plain = made.read(x, mask, BATCH, Mode()), made.inner(x, mask)
    assert torch.equal(found.states[mask], plain.states[mask])
    assert torch.equal(found.summary, plain.summary)
    assert torch.equal(found.mask, mask)


def test_training_draws_from_the_probabilities_and_reading_takes_the_likelier(encoder):
    made = encoder("embed")
    x = draw(1, 5, 6).expand(20_000, -1, -1)
    logits = made.choose(made.generator(x[:1], None).states).squeeze(-1)[0]
    drawn = made.read(x, None, BATCH, TRAIN)
    p = torch.sigmoid(logits)
    sigma = (p * (1 - p) / 20_000).sqrt()
    assert ((drawn.terms["selected"].mean(0) - p).abs() < 3 * sigma).all()
    wanted = torch.where(drawn.terms["selected"] > 0, p, 1 - p).log()
    torch.testing.assert_close(drawn.terms["log_prob"], wanted)
    assert torch.equal(made.read(x[:1], None, BATCH, Mode()).mask[0], logits > 0)
    assert torch.equal(made(x[:1], None).mask[0], logits > 0)


def test_padding_is_never_selected_and_draws_do_not_depend_on_it(encoder):
    made = encoder()
    x = draw(2, 4, 6)
    alone = made.read(x, None, BATCH, TRAIN)
    wide = torch.cat((x, draw(2, 3, 6, seed=1)), 1)
    padded = made.read(wide, (torch.arange(7) < 4).expand(2, 7), BATCH, TRAIN)
    assert torch.equal(padded.mask[:, :4], alone.mask)
    assert not padded.mask[:, 4:].any()
    for name, term in alone.terms.items():
        torch.testing.assert_close(padded.terms[name][:, :4], term)
        assert not padded.terms[name][:, 4:].any()


def test_the_generator_learns_from_the_log_probability_alone(encoder):
    made = encoder()
    found = made.read(draw(4, 5, 6), None, BATCH, TRAIN)
    found.states.square().sum().backward(retain_graph=True)
    assert all(p.grad is None for p in (*made.generator.parameters(), *made.choose.parameters()))
    found.terms["log_prob"].sum().backward()
    assert all(p.grad.abs().sum() > 0 for p in made.generator.parameters())


@pytest.mark.parametrize("task", ["after_marker", "transduction[rule=reverse,max_length=5]"])
def test_terms_reach_the_trace_and_every_parameter_learns(task, built):
    made = built("additive[loss=rationale]", task=task, backbone=backbone_of(task))
    trace = made.backbone(made.batch, TRAIN)
    (terms,) = trace.source_terms
    assert terms["selected"].shape == made.batch.sources[0].tokens.shape
    hidden = terms["selected"][:, None] == 0
    assert hidden.any()
    assert not trace.weights.masked_select(hidden.expand_as(trace.weights)).any()
    nll = made.backbone.output.nll(trace, made.backbone.emit, made.batch)
    (nll.sum() + terms["log_prob"].sum()).backward()
    for name, parameter in made.backbone.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name


def test_a_source_of_which_nothing_is_selected_is_answered_with_finite_gradients(built):
    made = built(
        "additive[loss=rationale]", task="after_marker", backbone=backbone_of("after_marker")
    )
    with torch.no_grad():
        made.backbone.encoder.choose.bias.fill_(-1e4)
    trace = made.backbone(made.batch, TRAIN)
    assert not trace.context.any()
    nll = made.backbone.output.nll(trace, made.backbone.emit, made.batch)
    nll.sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in made.backbone.parameters())


def backbone_of(task):
    if task == "after_marker":
        return "pooling[embedding=8,encoder=rationale]"
    return "rnn_seq2seq[hidden=8,embedding=8,encoder=rationale[encoder=birnn]]"


def test_the_encoder_needs_its_loss_and_the_recipe_brings_both():
    task = registry.find("task", "after_marker").target
    alone = canonical("backbone", parse("pooling[encoder=rationale]"))
    reason = cell_refusal(resolve("additive"), task, alone, "pool")
    assert reason == "rationale needs the rationale loss, which nothing here gives."
    assert cell_refusal(resolve("additive[loss=rationale]"), task, alone, "pool") is None
    spec = resolve("rationale[sparsity=0.05,encoder=rationale[encoder=birnn]]")
    assert spec.axes["loss"][0].options["sparsity"] == 0.05
    assert spec.fixes["encoder"].options["encoder"][0].name == "birnn"
    plain = canonical("backbone", parse("pooling"))
    refused = cell_refusal(resolve("rationale"), task, plain, "pool")
    assert refused.endswith("and this backbone has encoder=embed[positions=off].")


def test_a_decoder_without_attention_needs_the_loss_too():
    task = registry.find("task", "transduction").target
    chosen = "rnn_seq2seq[encoder=rationale,decoder=none_state]"
    backbone = canonical("backbone", parse(chosen))
    reason = cell_refusal(resolve("additive"), task, backbone, "cross")
    assert reason == "rationale needs the rationale loss, which nothing here gives."


@pytest.mark.parametrize("place", ["encoder", "generator"])
@pytest.mark.parametrize(
    ("inside", "reason"), [("multimodal", "features are no tokens"), ("rationale", "would be lost")]
)
def test_what_adds_or_selects_tokens_cannot_stand_inside(place, inside, reason):
    with pytest.raises(InvalidConfig, match=f"rationale: {place}={inside} cannot .*{reason}"):
        registry.make("encoder", parse(f"rationale[{place}={inside}]"), 6, 8)


@pytest.mark.parametrize("layers", [1, 3])
def test_a_generator_has_a_state_for_each_token(layers, encoder):
    with pytest.raises(Refused, match=f"pyramid has a state for {2**layers} of them"):
        registry.make("encoder", parse(f"rationale[generator=pyramid[layers={layers}]]"), 6, 8)
    assert encoder(f"pyramid[layers={layers}]").stride == 2**layers


def test_the_backward_half_of_the_summary_is_that_of_the_encoder_inside(encoder):
    assert encoder("birnn").backward == range(4, 8)
    assert encoder("uni_rnn").backward == range(0)


def test_reading_by_draws_needs_noise(encoder):
    with pytest.raises((AssertionError, Refused), match="needs noise"):
        encoder().read(draw(1, 3, 6), None, BATCH, Mode(read="train"))
