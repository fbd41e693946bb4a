import pytest
import torch

from bench.api.errors import Refused
from bench.api.registry import make
from bench.api.selector import parse
from bench.api.trace import Mode
from tasks.probes.hidden_attribution import _norms, _real, _run

TRANSFORMER = "transformer_seq2seq[width=16,heads=2,layers=2{}]"


def measured(seen):
    found = make("probe", parse("hidden_attribution")).measure(seen)
    return {(s.metric, s.x): s.value for s in found}


@pytest.mark.parametrize("backbone", ["rnn_seq2seq[hidden=8,embedding=4]", TRANSFORMER.format("")])
def test_norms_equal_finite_differences(backbone, subject):
    seen = subject(backbone=backbone, batches=3)
    batch, step = seen.batches[-1], 1e-6
    words, layers = _run(seen, batch)
    places = torch.multinomial(_real(batch).double(), 1)[:, 0]
    norms = _norms(layers[-1], places, words)
    rows = torch.arange(len(places))
    table = seen.backbone.source_embeddings[0]
    for word in range(min(3, words.shape[1])):
        squares = torch.zeros(len(places), dtype=torch.float64)
        for unit in range(words.shape[2]):
            ends = []
            for sign in (1, -1):

                def bump(module, given, out, sign=sign, unit=unit, word=word):
                    out = out.clone()
                    out[:, word, unit] += sign * step
                    return out

                hook = table.register_forward_hook(bump)
                ends.append(_run_plain(seen, batch)[rows, places])
                hook.remove()
            squares += ((ends[0] - ends[1]) / (2 * step)).square().sum(-1)
        torch.testing.assert_close(norms[:, word], squares.sqrt(), rtol=1e-4, atol=1e-7)
    assert float(norms.max()) > 1e-3


def _run_plain(seen, batch):
    """States of the last layer without anything that the probe does to the embeddings."""
    network, kept = seen.backbone, []
    encoder = network.encoders[0]
    encoder = encoder[-1] if isinstance(encoder, torch.nn.ModuleList) else encoder
    hook = encoder.register_forward_hook(lambda m, given, out: kept.append(out[0]))
    network(batch, Mode())
    hook.remove()
    return kept[0]


def test_words_without_context_are_their_own_cause(subject):
    found = measured(subject(backbone="rnn_seq2seq[encoder=embed]", batches=2))
    assert found["own_word_share", None] == 1
    assert found["own_word_largest_share", None] == 1
    assert found["own_word_even_share", None] < 0.5


def test_states_that_all_read_the_mean_have_no_word_of_their_own(subject):
    """With uniform attention, no residual and no positions, all words contribute alike."""
    seen = subject(
        "uniform[position=none]",
        backbone=TRANSFORMER.format(",residual=false,norm=off,feed_forward=0"),
        slot="self",
        batches=2,
    )
    found = measured(seen)
    even = found["own_word_even_share", None]
    assert found["own_word_share", None] == pytest.approx(even, abs=1e-9)
    assert found["own_word_at_share", 1.0] == pytest.approx(even, abs=1e-9)


def test_there_is_a_share_for_each_layer_and_context_is_mixed_in_with_depth(subject):
    found = measured(subject(backbone=TRANSFORMER.format(""), batches=2))
    curve = [found["own_word_at_share", float(layer)] for layer in (1, 2)]
    assert ("own_word_at_share", 3.0) not in found
    assert curve[1] == found["own_word_share", None]
    assert 1 > curve[0] > curve[1] > found["own_word_even_share", None]


def test_a_decoder_alone_attributes_to_what_it_has_read(subject):
    seen = subject("scaled_dot", task="recall", backbone="transformer_decoder[width=16,heads=2]")
    batch = seen.batches[0]
    words, layers = _run(seen, batch)
    places = torch.full((len(batch.inputs),), 3)
    norms = _norms(layers[-1], places, words)
    assert (norms[:, :4] > 0).all()
    assert not norms[:, 4:].any()
    assert measured(seen)["own_word_share", None] > 0


def test_padding_gets_nothing(subject):
    seen = subject(backbone="rnn_seq2seq[hidden=8,embedding=4]")
    batch = next(seen.task.training(4, torch.Generator().manual_seed(0)))
    words, layers = _run(seen, batch)
    norms = _norms(layers[-1], torch.zeros(len(words), dtype=torch.int64), words)
    assert not _real(batch).all()
    assert not norms[~_real(batch)].any()


def test_the_network_is_left_as_it_was(subject):
    seen = subject()
    measured(seen)
    assert all(not m._forward_hooks for m in seen.backbone.modules())
    assert all(p.grad is None for p in seen.backbone.parameters())


def test_networks_whose_states_are_not_words_are_refused(subject):
    with pytest.raises(Refused, match="states are not its words, one for one"):
        measured(subject(backbone="rnn_seq2seq[encoder=pyramid[layers=1]]"))
