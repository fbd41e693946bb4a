"""Shared scores against answers written by hand."""

import math
from dataclasses import replace

import pytest
import torch

from bench.api.answer import Answer
from bench.api.batch import Batch, Text
from bench.api.metric import Scored
from tasks.metrics.accuracy import scores_by_length
from tasks.metrics.attention_scores import alignment_scores, selection_scores
from tasks.metrics.delays import delay_scores


def answer(lengths: list[int], right: list[list[int]], **more) -> Answer:
    """Rows of a copy task: `right` lists, for each row, 1 where the prediction is right."""
    width = max(lengths) + 1
    real = torch.arange(width) <= torch.tensor(lengths)[:, None]
    targets = torch.where(real, 5, 0)
    predicted = torch.full_like(targets, 9)
    for row, marks in enumerate(right):
        for place, mark in enumerate(marks):
            if mark:
                predicted[row, place] = 5
    source = Text(targets, None if bool(real.all()) else real)
    batch = Batch(
        (source,), inputs=targets, targets=targets, mask=real, gold=more.pop("gold", None)
    )
    return Answer(batch, predicted=predicted, **more)


def plain(found) -> dict[str, float]:
    return {s.metric: s.value for s in found if not s.axis}


def test_a_sequence_is_right_when_all_its_scored_tokens_are():
    found = plain(scores_by_length([answer([2, 1], [[1, 1, 1], [1, 0]])], 8))
    assert found == {"sequence_accuracy": 1 / 2, "token_accuracy": 4 / 5}


def test_what_stands_in_padding_neither_helps_nor_harms():
    whole = answer([2, 1], [[0, 0, 0], [1, 1, 1]])
    assert plain(scores_by_length([whole], 8))["sequence_accuracy"] == 1 / 2
    masked = answer([2, 1], [[0, 0, 0], [1, 1, 0]])
    assert scores_by_length([whole], 8) == scores_by_length([masked], 8)


def test_tokens_are_weighed_by_their_number_and_sequences_equally():
    answers = [answer([1], [[1, 1]]), answer([5], [[0] * 6])]
    found = plain(scores_by_length(answers, 8))
    assert found == {"sequence_accuracy": 1 / 2, "token_accuracy": 2 / 8}


def test_the_plain_score_covers_lengths_inside_and_the_curve_all():
    answers = [answer([2], [[1, 1, 1]]), answer([3], [[1, 1, 1, 0]]), answer([4], [[0] * 5])]
    found = scores_by_length(answers, 3)
    assert plain(found) == {"sequence_accuracy": 1 / 2, "token_accuracy": 6 / 7}
    curve = {(s.metric, s.x): s.value for s in found if s.axis == "length"}
    assert curve == {
        ("sequence_accuracy", 2.0): 1.0,
        ("token_accuracy", 2.0): 1.0,
        ("sequence_accuracy", 3.0): 0.0,
        ("token_accuracy", 3.0): 3 / 4,
        ("sequence_accuracy", 4.0): 0.0,
        ("token_accuracy", 4.0): 0.0,
    }
    assert scores_by_length(answers, 3, curve=False) == [s for s in found if not s.axis]


def test_one_batch_has_no_curve_and_nothing_scored_gives_nothing():
    assert [s.axis for s in scores_by_length([answer([2], [[1, 1, 1]])], 8)] == ["", ""]
    assert scores_by_length([answer([5], [[1] * 6])], 3) == []


def gold_of(*rows: list[int | None]) -> torch.Tensor:
    """One row: the linked key of each step, None for no link; four keys."""
    gold = torch.zeros(1, len(rows[0]), 4)
    for step, key in enumerate(rows[0]):
        if key is not None:
            gold[0, step, key] = 1
    return gold


def test_alignment_match_counts_linked_and_scored_steps_whose_strongest_key_is_gold():
    weights = torch.tensor(
        [[[0.7, 0.1, 0.1, 0.1], [0.4, 0.3, 0.2, 0.1], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]]]
    )
    gold = gold_of([0, 1, None, 3])
    found = plain(alignment_scores([answer([3], [[1] * 4], weights=weights, gold=gold)], 8))
    assert found["alignment_match"] == pytest.approx(2 / 3)
    # a second row whose two last steps are padding, with links that are missed there
    more = torch.cat((weights, weights.roll(1, -1)))
    links = torch.cat((gold, gold_of([1, 0, 0, 0])))
    padded = answer([3, 1], [[1] * 4, [1, 1]], weights=more, gold=links)
    assert plain(alignment_scores([padded], 8))["alignment_match"] == pytest.approx(3 / 5)


def test_a_step_with_several_gold_keys_may_look_at_any_of_them():
    gold = torch.tensor([[[0.5, 0.0, 0.5, 0.0]] * 4])
    weights = torch.tensor([[[0.1, 0.1, 0.7, 0.1]] * 3 + [[0.1, 0.7, 0.1, 0.1]]])
    found = plain(alignment_scores([answer([3], [[1] * 4], weights=weights, gold=gold)], 8))
    assert found["alignment_match"] == pytest.approx(3 / 4)


def test_two_gold_keys_that_share_the_weight_evenly_are_found():
    gold = torch.tensor([[[0.5, 0.0, 0.5, 0.0]] * 4])
    weights = torch.tensor([[[0.5, 0.0, 0.5, 0.0]] * 3 + [[0.4, 0.4, 0.2, 0.0]]])
    found = plain(alignment_scores([answer([3], [[1] * 4], weights=weights, gold=gold)], 8))
    assert found["alignment_match"] == 3 / 4


def test_a_row_of_zeros_and_a_row_of_ties_look_at_nothing():
    weights = torch.tensor([[[0.0] * 4, [0.25] * 4, [0.5, 0.0, 0.5, 0.0], [0.5, 0.2, 0.2, 0.1]]])
    gold = gold_of([0, 0, 0, 0])
    found = plain(alignment_scores([answer([3], [[1] * 4], weights=weights, gold=gold)], 8))
    assert found["alignment_match"] == 1 / 4


def test_entropy_is_the_mean_over_scored_steps_in_nats():
    weights = torch.tensor([[[0.25] * 4, [1.0, 0.0, 0.0, 0.0]], [[0.5, 0.5, 0.0, 0.0]] * 2])
    rows = answer([1, 0], [[1, 1], [1, 1]], weights=weights)
    found = plain(alignment_scores([rows], 8))
    assert found == {"alignment_entropy_nats": pytest.approx((math.log(4) + math.log(2)) / 3)}


def test_alignment_leaves_out_lengths_beyond_and_models_without_weights():
    weights = torch.tensor([[[0.7, 0.1, 0.1, 0.1]] * 4])
    long = answer([3], [[1] * 4], weights=weights, gold=gold_of([0, 1, 2, 3]))
    assert alignment_scores([long], 2) == []
    assert alignment_scores([answer([3], [[1] * 4], gold=gold_of([0, 1, 2, 3]))], 8) == []
    assert plain(alignment_scores([long], 3))["alignment_match"] == 1 / 4


def test_what_was_said_decides_exact_match_where_something_was():
    marks = [[1, 1, 1], [1, 0], [0]]
    said = ((5, 5), (5,), (5, 5))  # of five, five EOS; five EOS; EOS, which here are all fives
    found = plain(scores_by_length([answer([2, 1, 0], marks, generated=said)], 8))
    assert found == {"sequence_accuracy": 2 / 3, "token_accuracy": 4 / 6}


def test_the_correct_prefix_ends_at_the_first_error_and_is_that_of_the_output():
    """Right tokens behind the first error do not count: 2 of 3, 0 of 2."""
    marks, said = [[1, 1, 0], [0, 1]], ((5, 5, 5), ())
    forced = plain(scores_by_length([answer([2, 1], marks)], 8, prefix=True))
    assert forced == {
        "sequence_accuracy": 0,
        "token_accuracy": 3 / 5,
        "prefix_accuracy": 2 / 5,
    }
    # of five five EOS: one word too many where EOS is another number; EOS alone is here a five
    decoded = Answer(answer([2, 1], marks).batch, generated=said)
    found = plain(scores_by_length([decoded], 8, prefix=True))
    assert found["prefix_accuracy"] == 4 / 5
    assert found["sequence_accuracy"] == 0


def test_what_is_not_scored_neither_counts_nor_ends_the_prefix():
    whole = answer([2], [[1, 0, 1]])
    gap = replace(whole.batch, mask=torch.tensor([[True, False, True]]))
    found = plain(scores_by_length([replace(whole, batch=gap)], 8, prefix=True))
    assert found["prefix_accuracy"] == found["sequence_accuracy"] == 1.0


def test_decoded_rows_are_right_as_wholes_and_have_no_token_accuracy():
    """Targets are fives and end in a five, which stands for EOS and is not decoded."""
    forced = answer([2, 1, 3], [[1, 1, 1], [1, 1], [1, 1, 1, 1]])
    decoded = Answer(forced.batch, generated=((5, 5), (5, 5), (5, 5, 5)))
    assert scores_by_length([decoded], 8) == [
        Scored(metric="sequence_accuracy", value=2 / 3),
    ]
    assert decoded.words() == [[5, 5], [5, 5], [5, 5, 5]]
    assert forced.words() == [[5, 5, 5], [5, 5], [5, 5, 5, 5]]


def delays(shares, lengths, inside=100):
    """Average lagging and proportion of rows whose sources have these lengths, EOS included."""
    found = plain(
        delay_scores(
            [answer([n - 1 for n in lengths], [[1]] * len(lengths), read_shares=shares)], inside
        )
    )
    return found["average_lagging"], found["average_proportion"]


@pytest.mark.parametrize("k", [1, 2, 3, 8])
def test_waiting_k_tokens_lags_by_k_where_source_and_target_are_equally_long(k):
    read = [min(k + t, 8) / 8 for t in range(8)]
    lagging, proportion = delays((tuple(read),), [8])
    assert lagging == pytest.approx(k)
    assert proportion == pytest.approx(sum(read) / 8)


def test_reading_everything_first_lags_by_the_source_and_reads_all_of_it():
    assert delays(((1.0,) * 5,), [7]) == pytest.approx((7, 1))


def test_lagging_counts_up_to_the_first_word_for_which_all_was_read():
    # S = 4, T = 2: g = 2, 4 against an ideal of 0 and 2
    assert delays(((0.5, 1.0),), [4]) == pytest.approx((2, 0.75))
    # a third word spoken after that adds nothing to the lag, only to the pace
    assert delays(((0.5, 1.0, 1.0),), [4]) == pytest.approx(((2 + 4 - 4 / 3) / 2, 2.5 / 3))


def test_delays_are_averaged_over_sentences_of_lengths_inside():
    shares = ((1.0, 1.0), (0.25, 0.5, 0.75, 1.0))
    lagging, proportion = delays(shares, [2, 4])
    assert (lagging, proportion) == pytest.approx(((2 + 1) / 2, (1 + 0.625) / 2))
    assert delays(shares, [2, 4], inside=1) == pytest.approx((2, 1))


def test_there_are_no_delays_where_attention_does_not_say_what_it_read():
    assert delay_scores([answer([3], [[1]])], 100) == []


def test_a_selection_matches_where_some_scored_target_is_aligned_with_it():
    # two rows of 3 and 2 source tokens, EOS included; the second target of row 2 is padding
    gold = torch.zeros(2, 3, 3)
    gold[0, 0, 0] = gold[0, 1, 2] = gold[1, 0, 1] = gold[1, 2, 0] = 1.0
    selected = torch.tensor([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0]])
    one = answer([2, 1], [[1], [1]], gold=gold, selected=selected)
    found = plain(selection_scores([one], 8))
    assert found == {"selection_match": 2 / 4, "selected_proportion": 4 / 5}
    assert selection_scores([one], 1) == []


def test_nothing_selected_has_no_match_and_nothing_to_select_has_no_scores():
    gold = torch.ones(1, 3, 3)
    empty = answer([2], [[1]], gold=gold, selected=torch.zeros(1, 3))
    assert plain(selection_scores([empty], 8)) == {"selected_proportion": 0}
    assert selection_scores([answer([2], [[1]], gold=gold)], 8) == []


def test_a_decoded_row_of_which_nothing_is_scored_is_left_out():
    mask = torch.tensor([[True, True], [False, False]])
    targets = torch.tensor([[5, 2], [0, 0]])
    batch = Batch(sources=(), inputs=targets, targets=targets, mask=mask)
    scores = scores_by_length([Answer(batch, generated=((5,), ()))], 2, curve=False)
    assert {one.metric: one.value for one in scores}["sequence_accuracy"] == 1.0


@pytest.mark.parametrize("row", [[0.9, -0.1], [2.0, 0.5]])
def test_weights_that_are_no_shares_have_a_match_and_no_entropy(row):
    gold = torch.tensor([[[1.0, 0.0], [1.0, 0.0]]])
    weights = torch.tensor([[row, row]])
    found = plain(alignment_scores([answer([1], [[1, 1]], gold=gold, weights=weights)], 8))
    assert found == {"alignment_match": 1.0}
    halves = torch.full_like(weights, 0.5)
    answers = [answer([1], [[1, 1]], gold=gold, weights=each) for each in (halves, weights)]
    assert plain(alignment_scores(answers, 8)) == {"alignment_match": 0.5}
    found = plain(alignment_scores(answers[:1], 8))
    assert found["alignment_entropy_nats"] == pytest.approx(math.log(2))
