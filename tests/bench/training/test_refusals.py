"""Combinations without meaning are refused with a sentence before anything is trained."""

import pytest
import torch

from bench.api.errors import Refused
from bench.api.noise import Noise
from bench.api.trace import Mode
from bench.training.assemble import assemble
from bench.training.system import System

TRANSFORMER = "transformer_seq2seq[width=16,heads=2,layers=1]"
REFUSED = [
    ("pointer_generator", "recall", "", "", "needs the token ids of the source"),
    ("supervised_attention", "recall", "", "", "needs gold alignments"),
    ("supervised_attention", "oov_copy", TRANSFORMER, "causal", "needs weights over the source"),
    ("supervised_attention", "transduction", TRANSFORMER, "self", "needs weights over the source"),
    ("pointer_generator", "oov_copy", TRANSFORMER, "causal", "needs weights over the source"),
    ("agreement_trace", "recall", "rnn_seq2seq", "", "both ways, not Recall"),
    ("agreement_trace", "recall", "", "", "transformer_decoder has no such axis"),
    ("agreement_trace", "oov_copy", "", "", "both ways, not OovCopy"),
    ("none_state[direction=both]", "transduction", "", "", "none_state has none"),
    ("none_state[output=pointer_generator]", "transduction", "", "", "none_state has none"),
    ("none_state[loss=supervised]", "transduction", "", "", "none_state has none"),
    ("none_state", "recall", "", "", "decoder=none_state.*, and transformer_decoder has no such"),
    ("none_state", "transduction", "rnn_seq2seq[summaries=none]", "", "knows only the summary"),
    ("none_input", "transduction", "rnn_seq2seq[summaries=none]", "", "knows only the summary"),
    ("bahdanau", "recall", "", "", "no such axis"),
    ("luong_global", "after_marker", "", "", "pooling has no such axis"),
    ("shaw_rpr", "transduction", "", "", "cross attention has two"),
    ("shaw_rpr", "transduction", TRANSFORMER, "cross", "cross attention has two"),
    ("scaled_dot", "transduction", "rnn_seq2seq[encoder=embed]", "", "of equal width"),
    (
        "hard_exact",
        "transduction",
        "rnn_seq2seq[decoder=bahdanau]",
        "",
        "states that do not depend",
    ),
    ("hard_exact", "transduction", "rnn_seq2seq[decoder=luong[input_feeding=true]]", "", "do not"),
    ("hard_reinforce[loss=none]", "transduction", "", "", "needs the reinforce loss"),
    ("mi_coverage", "transduction", TRANSFORMER, "", "needs per-query token embeddings"),
    ("mi_coverage", "translation", "", "", "needs the token ids of the source"),
    ("mi_coverage", "transduction", "rnn_seq2seq[decoder=none_state]", "", "none_state has none"),
    ("coverage_eq1", "recall", "", "", "causal self-attention has none"),
    ("global_fertility", "after_marker", "", "", "pooling has one query"),
    ("ssnt", "transduction", TRANSFORMER, "", "no such axis"),
    ("ssnt[direction=both]", "transduction", "", "", "target_only has none"),
    ("additive[output=ssnt]", "transduction", TRANSFORMER, "", "states that do not depend"),
    ("ssnt", "after_marker", "rnn_seq2seq", "", "no single words, by which AfterMarker is ranked"),
    ("ssnt[loss=reinforce]", "transduction", "", "", "has no reward for a word"),
    ("copynet", "transduction", TRANSFORMER, "", "feeds the decoder word by word"),
    ("copynet", "recall", "", "", "feeds the decoder word by word"),
    ("copynet[selective_read=false]", "recall", "", "", "one state for each source token"),
    ("pointer_net", "translation[train=400]", "", "", "token ids of the source"),
    ("pointer_net", "recall", "", "", "token ids of the source"),
    ("additive", "transduction", "transformer_decoder", "", "reads one sequence only"),
    ("additive", "recall", "rnn_seq2seq", "", "reads a source, and the task has none"),
    ("additive", "offset", TRANSFORMER, "causal", "reads a source, and the task has none"),
]


@pytest.mark.parametrize(("variant", "task", "backbone", "slot", "why"), REFUSED)
def test_it_is_refused_with_the_reason(variant, task, backbone, slot, why, smoke):
    with pytest.raises(Refused, match=why) as refused:
        assemble(smoke(variant, task=task, backbone=backbone, slot=slot), None)
    sentence = str(refused.value)
    assert sentence.count("\n") == 0
    assert 20 < len(sentence) < 200


ALLOWED = [
    ("pointer_generator", "transduction", TRANSFORMER, ""),
    ("pointer_generator[direction=both]", "transduction", "rnn_seq2seq", ""),
    ("supervised_attention", "after_marker", "", ""),
    ("hard_exact", "transduction", "rnn_seq2seq[decoder=luong]", ""),
    ("mi_coverage[direction=both]", "transduction", "rnn_seq2seq[decoder=bahdanau]", ""),
    ("mi_coverage", "oov_copy", "", ""),
    ("global_fertility[direction=both[joint=agreement_l2]]", "transduction", "", ""),
    ("global_fertility", "transduction", TRANSFORMER, ""),
    ("coverage_loss[output=pointer_generator,start=0.0]", "oov_copy", "", ""),
    ("cohn_structural", "transduction", TRANSFORMER, "cross"),
    ("ssnt", "transduction", "", ""),
    ("copynet", "oov_copy", "rnn_seq2seq[decoder=bahdanau]", ""),
    ("copynet[selective_read=false]", "transduction", TRANSFORMER, ""),
    ("pointer_net", "transduction", TRANSFORMER, ""),
    ("pointer_net", "after_marker", "", ""),
    ("additive", "transduction", "rnn_seq2seq[encoder=embed]", ""),
    ("additive", "after_marker", "rnn_seq2seq", ""),
    ("shaw_rpr", "transduction", TRANSFORMER, "self"),
    ("none_state[direction=single]", "transduction", "", ""),
    ("hard_reinforce", "transduction", TRANSFORMER, "causal"),
]


@pytest.mark.parametrize(("variant", "task", "backbone", "slot"), ALLOWED)
def test_its_neighbors_are_not(variant, task, backbone, slot, smoke):
    built = assemble(smoke(variant, task=task, backbone=backbone, slot=slot), None)
    batch = next(built.task.training(4, torch.Generator().manual_seed(0)))
    assert isinstance(built.system, System)
    mode = Mode(read="train", noise=Noise(0))
    terms, _ = built.system.losses(batch, mode, built.system.init_carry())
    assert all(term.isfinite() for term in terms.values())
