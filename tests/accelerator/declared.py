"""Where the host may wait for the device, and why; a wait anywhere else is an error.

A place is a file and a function; the word is the kind of wait that `device.py` writes down.
"""

SCORED = "only scored places go through the output layer, and their number is known by looking"
MOVES = "answers are scored, and texts are made, on the host"
SAID = "words that were said come to the host once a batch, and go back to be heard again"
ENDS = "decoding ends as soon as every row has ended: one look a word"
SIZES = "the size of the result depends on the data"

DECLARED = {
    ("tolist", "bench/training/training.py::update"): "a loss that is not finite ends training at "
    "once, and clocks wait for the step anyway: one look a step",
    ("copy to host", "bench/api/batch.py::<lambda>"): MOVES,
    ("copy to host", "bench/training/evaluate.py::<genexpr>"): MOVES,
    ("copy to host", "bench/training/evaluate.py::_teacher_forced"): MOVES,
    ("tolist", "bench/training/evaluate.py::_teacher_forced"): MOVES,
    ("tolist", "bench/training/evaluate.py::_by_row"): MOVES,
    ("tolist", "bench/training/evaluate.py::_read_for"): MOVES,
    ("list to device", "bench/training/evaluate.py::_laid_out"): SAID,
    ("tolist", "tasks/backbones/searches/found_words.py::cut_at_eos"): SAID,
    ("tolist", "tasks/backbones/searches/beam.py::decode"): SAID,
    ("list to device", "tasks/backbones/rnn_seq2seq.py::_said"): SAID,
    ("item", "tasks/backbones/searches/greedy.py::decode"): ENDS,
    ("item", "tasks/backbones/searches/beam.py::decode"): ENDS,
    ("item", "tasks/backbones/rnn_seq2seq.py::_run_by_word"): SIZES,
    ("item", "tasks/backbones/sentences.py::split_sentences"): SIZES,
    ("item", "variants/outputs/ssnt.py::step"): SIZES,
    ("tolist", "bench/api/batch.py::select"): "texts of a batch are on the host",
    ("copy to host", "tasks/backbones/recurrent_layers.py::encode"): "packed sequences have their "
    "lengths on the host, by PyTorch's interface",
    ("index from host", "variants/outputs/lexicon.py::fit"): "counted on the host, once a cell",
    ("nonzero", "variants/outputs/softmax.py::nll"): SCORED,
    ("nonzero", "variants/outputs/ssnt.py::_log_words"): SCORED,
    ("boolean index", "variants/outputs/ssnt.py::_log_words"): SCORED,
    ("nonzero", "variants/outputs/hard_exact.py::_chunks"): SCORED,
    ("boolean index", "variants/outputs/hard_exact.py::_chunks"): SCORED,
    ("boolean index", "variants/outputs/hard_exact.py::nll"): SCORED,
    ("boolean index", "variants/outputs/conv_copy.py::nll"): SCORED,
    ("boolean index", "variants/outputs/copynet.py::nll"): SCORED,
    ("boolean index", "variants/outputs/lexicon_bias.py::nll"): SCORED,
    ("boolean index", "variants/outputs/lexicon_linear.py::nll"): SCORED,
    ("boolean index", "variants/outputs/neural_cache.py::nll"): SCORED,
    ("boolean index", "variants/outputs/pointer_generator.py::nll"): SCORED,
    ("boolean index", "variants/outputs/pointer_sentinel.py::nll"): SCORED,
    ("boolean index", "variants/outputs/pointer_sentinel.py::own_losses"): SCORED,
}
