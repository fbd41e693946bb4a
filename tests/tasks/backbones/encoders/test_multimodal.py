"""Features beside the words: where they stand, what they change, and what they are aligned with."""

from dataclasses import replace

import pytest
import torch

from bench.api import registry
from bench.api.backbone import BackboneParts
from bench.api.batch import Batch, Sizes, Text
from bench.api.build import build_slot
from bench.api.errors import InvalidConfig, Refused
from bench.api.registry import DefaultTask
from bench.api.resolve import canonical_backbone, resolve
from bench.api.selector import parse
from bench.api.trace import Mode
from bench.running.quality_cells import quality_cell
from bench.running.request import Request
from bench.training.assemble import assemble
from bench.training.evaluate import Answer, attention_maps
from bench.training.refusals import cell_refusal
from tasks.translation.transduction import Transduction, TransductionConfig

WIDTH, REGIONS, VOCAB = 5, 2, 9


@pytest.fixture
def network(draw):
    """`network(encoder)` -> a small decoder over it, drawn, in float64."""

    def make(encoder: str, variant: str = "additive[width=5]"):
        spec = resolve(variant)
        selector = canonical_backbone(f"rnn_seq2seq[hidden=6,embedding=4,encoder={encoder}]", {})
        parts = BackboneParts(
            sizes=Sizes((VOCAB,), VOCAB, 12),
            attach=lambda place: build_slot(spec, place),
            attach_default=lambda place: build_slot(spec, place),
            output=lambda sizes: registry.make("output", spec.axes["output"][0], sizes),
            capabilities=frozenset({"padding", "stepwise"}),
        )
        made = registry.make("backbone", selector, parts).double()
        draw(made, 1)
        return made

    return make


def examples(masked: bool = True, regions: int = REGIONS) -> Batch:
    rng = torch.Generator().manual_seed(2)
    lengths = torch.tensor([5, 2, 3] if masked else [5, 5, 5])
    mask = torch.arange(5) < lengths[:, None]
    tokens = torch.where(mask, torch.randint(4, VOCAB, (3, 5), generator=rng), 0)
    inputs = torch.randint(4, VOCAB, (3, 4), generator=rng)
    gold = torch.zeros(3, 4, 5)
    gold[..., 1] = 1.0
    return Batch(
        (Text(tokens, mask if masked else None),),
        inputs,
        inputs,
        inputs > 0,
        gold=gold,
        features=torch.randn(3, regions, WIDTH, generator=rng, dtype=torch.float64),
    )


def encoder_of(place: str, inner: str = "embed") -> str:
    return f"multimodal[width={WIDTH},place={place},encoder={inner}]"


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("place", ["front", "behind"])
def test_features_stand_beside_the_words_of_every_row(place, masked, network, near):
    backbone, batch = network(encoder_of(place)), examples(masked)
    (found,) = backbone.encode(batch, Mode())
    pictured = batch.features @ backbone.encoders[0].project.weight.T
    for row, tokens in enumerate(batch.sources[0].tokens):
        words = tokens if not masked else tokens[batch.sources[0].mask[row]]
        embedded = backbone.source_embeddings[0].weight[words]
        parts = (pictured[row], embedded) if place == "front" else (embedded, pictured[row])
        expected = torch.cat(parts)
        near(found.states[row, : len(expected)], expected)
        if masked:
            assert found.mask[row].tolist() == [i < len(expected) for i in range(5 + REGIONS)]
            assert not found.states[row, len(expected) :].any()


@pytest.mark.parametrize("inner", ["birnn", "transformer[heads=2]", "pyramid[layers=1]", "cnn"])
@pytest.mark.parametrize("place", ["front", "behind"])
def test_a_batch_of_mixed_lengths_equals_its_rows_alone(place, inner, network, near):
    backbone, batch = network(encoder_of(place, inner)), examples()
    trace = backbone(batch, Mode())
    assert trace.weights.shape == backbone.arrange(batch).gold.shape
    for row in range(3):
        real = batch.sources[0].mask[row]
        alone = replace(
            batch,
            sources=(Text(batch.sources[0].tokens[row : row + 1, real], None),),
            inputs=batch.inputs[row : row + 1],
            targets=batch.targets[row : row + 1],
            mask=batch.mask[row : row + 1],
            gold=None,
            features=batch.features[row : row + 1],
        )
        near(backbone(alone, Mode()).context[0], trace.context[row])


@pytest.mark.parametrize("place", ["front", "behind"])
def test_with_a_zero_projection_it_is_the_text_with_dead_tokens(place, network, near, logits):
    """Zero vectors among the words: what a text-only network says of a source padded with zeros."""
    pictured, batch = network(encoder_of(place)), examples()
    with torch.no_grad():
        pictured.encoders[0].project.weight.zero_()
        pictured.source_embeddings[0].weight[0] = 0.0
    text = network("embed")
    text.load_state_dict({n: pictured.state_dict()[n] for n in text.state_dict()})
    dead = torch.zeros(3, 5 + REGIONS, dtype=torch.int64)
    mask = torch.zeros_like(dead).bool()
    for row, tokens in enumerate(batch.sources[0].tokens):
        words = tokens[batch.sources[0].mask[row]].tolist()
        whole = [0] * REGIONS + words if place == "front" else words + [0] * REGIONS
        dead[row, : len(whole)] = torch.tensor(whole)
        mask[row, : len(whole)] = True
    plain = replace(batch, sources=(Text(dead, mask),), features=None, gold=None)
    near(logits(pictured, pictured(batch, Mode())), logits(text, text(plain, Mode())))
    other = replace(batch, features=batch.features.flip(0))
    near(pictured(other, Mode()).context, pictured(batch, Mode()).context)


def test_another_image_changes_what_is_said_and_gradients_reach_the_projection(network, logits):
    backbone, batch = network(encoder_of("front", "birnn")), examples()
    said = logits(backbone, backbone(batch, Mode()))
    shuffled = replace(batch, features=batch.features.roll(1, 0))
    assert (said - logits(backbone, backbone(shuffled, Mode()))).abs().amax((1, 2)).min() > 1e-4
    said.sin().sum().backward()
    assert (backbone.encoders[0].project.weight.grad != 0).all()


@pytest.mark.parametrize(("place", "before"), [("front", REGIONS), ("behind", 0)])
def test_gold_moves_with_the_words_and_gives_features_nothing(place, before, network):
    backbone, batch = network(encoder_of(place)), examples()
    arranged = backbone.arrange(batch)
    assert arranged.beside == ((REGIONS, 0) if place == "front" else (0, REGIONS))
    assert torch.equal(arranged.gold[..., before : before + 5], batch.gold)
    assert arranged.gold.sum() == batch.gold.sum()
    assert backbone.arrange(arranged) is arranged


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("place", ["front", "behind"])
def test_gold_of_features_stands_where_their_states_stand(place, masked, network):
    backbone, batch = network(encoder_of(place)), examples(masked)
    pictured = torch.zeros(3, 4, REGIONS)
    pictured[:, 2, 1] = 1.0
    batch.gold[:, 2] = 0.0
    arranged = backbone.arrange(replace(batch, features_gold=pictured))
    assert torch.equal(arranged.gold.sum(-1), torch.ones(3, 4))
    for row, words in enumerate([5, 2, 3] if masked else [5, 5, 5]):
        last = words + REGIONS - 1
        expected = {0: 1 + REGIONS, 2: 1} if place == "front" else {0: 1, 2: last}
        for step, state in expected.items():
            assert arranged.gold[row, step].nonzero().flatten().tolist() == [state]
    assert backbone.arrange(arranged) is arranged


def test_gold_of_features_is_folded_with_the_states(network):
    backbone, batch = network(encoder_of("front", "pyramid[layers=1]")), examples()
    pictured = torch.zeros(3, 4, REGIONS)
    pictured[:, 2, 1] = 1.0
    batch.gold[:, 2] = 0.0
    arranged = backbone.arrange(replace(batch, features_gold=pictured))
    assert (arranged.gold[:, 2].argmax(-1) == 0).all()
    assert arranged.gold.shape == backbone(arranged, Mode()).weights.shape


@pytest.mark.parametrize("place", ["front", "behind"])
@pytest.mark.parametrize(("inner", "states"), [("embed", 4), ("pyramid[layers=1]", 2)])
def test_maps_name_the_states_that_are_not_words(place, inner, states, network):
    backbone, batch = network(encoder_of(place, inner)), examples()
    arranged = backbone.arrange(batch)
    weights = backbone(arranged, Mode()).weights
    task = Transduction(TransductionConfig(evaluate=1), 0)
    maps = attention_maps(task, [Answer(arranged, weights=weights)], 3)
    drawn = maps[1]  # the row of two words
    assert len(drawn["source"]) == states
    assert "".join(drawn["source"]).count("▣") == REGIONS
    assert ("▣" in drawn["source"][0]) == (place == "front")
    for line in drawn["weights"]:
        assert sum(line) == pytest.approx(1, abs=1e-3)


def test_features_are_named_as_the_task_names_them(network):
    class Named(Transduction):
        def feature_names(self, batch, row):
            return [f"{row}:{number}" for number in range(REGIONS)]

    for place in ("front", "behind"):
        backbone, batch = network(encoder_of(place)), examples()
        arranged = backbone.arrange(batch)
        weights = backbone(arranged, Mode()).weights
        task = Named(TransductionConfig(evaluate=1), 0)
        source = attention_maps(task, [Answer(arranged, weights=weights)], 3)[1]["source"]
        assert (source[:2] if place == "front" else source[-2:]) == ["1:0", "1:1"]
        assert len(source) == 2 + REGIONS


def built(variant: str, encoder: str, options: str = ""):
    request = Request(preset="smoke", backbone=f"rnn_seq2seq[hidden=8,embedding=6{encoder}]")
    default_task = DefaultTask(task=f"scene_translation[evaluate=2{options}]")
    return assemble(quality_cell(request, resolve(variant), default_task, 0).cell, None)


@pytest.mark.parametrize(("options", "width"), [("", 64), (",side=4", 16), (",side=64", 4096)])
def test_the_task_says_how_wide_its_features_are(options, width):
    there = built("multimodal_tokens", "", options).system.there
    (encoder,) = there.encoders
    assert encoder.project.in_features == width
    (batch, _) = built("multimodal_tokens", "", options).task.evaluation("test")
    assert there(batch, Mode()).weights.shape[2] == batch.targets.shape[1] + 3


def test_another_width_that_was_asked_for_is_refused_before_training():
    assert built("multimodal_tokens[width=64]", "").system.there.encoders[0].in_front
    with pytest.raises(Refused, match="features have 64 units, and width is 100; make them equal"):
        built("multimodal_tokens[width=100]", "")


def test_features_that_are_missing_or_of_another_width_are_refused(network):
    backbone, batch = network(encoder_of("front")), examples()
    with pytest.raises(Refused, match="this batch has none"):
        backbone(replace(batch, features=None), Mode())
    with pytest.raises(Refused, match="features have 3 units, and width is 5"):
        backbone(replace(batch, features=batch.features[..., :3]), Mode())
    spec = resolve("multimodal_tokens")
    where = canonical_backbone("rnn_seq2seq", spec.fixes)
    reason = cell_refusal(spec, Transduction, where, "cross")
    assert reason == (
        "multimodal needs features beside the words of the source, which nothing here gives."
    )
    for selector in ("multimodal[width=0]", "multimodal[encoder=multimodal]"):
        with pytest.raises(InvalidConfig, match=r"width must be at least 1|put in twice"):
            registry.make("encoder", parse(selector), 4, 6)
