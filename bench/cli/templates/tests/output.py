import pytest
import torch

from bench.api.config import build_config
from bench.api.errors import InvalidConfig
from bench.api.registry import find


def test_probabilities_are_those_of_sharpened_logits_word_by_word(scene):
    output, trace, batch = scene.output("new_name[sharpness=2.0]"), scene.trace(), scene.batch()
    found = output.log_probs(trace, scene.emit, batch).exp()
    logits = scene.emit(trace.states, trace.context, trace.embedded)
    for row in range(scene.rows):
        for step in range(scene.steps):
            terms = [torch.exp(2 * logits[row, step, word]) for word in range(scene.vocab)]
            for word in range(scene.vocab):
                expected = terms[word] / sum(terms)
                assert (found[row, step, word] - expected).abs() < 1e-12


def test_words_that_only_the_source_has_are_trained_as_unknown(scene):
    output, trace, batch = scene.output("new_name"), scene.trace(), scene.batch()
    log_probs = output.log_probs(trace, scene.emit, batch)
    assert (log_probs[..., scene.vocab :] == float("-inf")).all()
    found = output.nll(trace, scene.emit, batch)
    assert found[0, 1] == -log_probs[0, 1, scene.unk]
    assert not found[~batch.mask].any()


def test_a_sharpness_that_is_not_positive_is_refused():
    with pytest.raises(InvalidConfig, match="sharpness must be positive"):
        build_config(find("output", "new_name").config, {"sharpness": 0.0}, "new_name")
