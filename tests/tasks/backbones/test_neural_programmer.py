"""The programmer: operations by loops over tables, programs that are written by hand."""

import pytest
import torch

from bench.api.errors import InvalidConfig, Refused
from bench.api.noise import Noise
from bench.api.trace import Mode
from tasks.backbones.table_operations import OPERATIONS, execute

SIZES = "[rows=4,more_rows=6,columns=3,names=5,evaluate=30]"
TASK = f"table_questions{SIZES}"
BACKBONE = "neural_programmer[width=12,steps=2{}]"


def drawn(*shape, seed=0):
    rng = torch.Generator().manual_seed(seed)
    return torch.rand(*shape, generator=rng, dtype=torch.float64)


def by_loops(table, pivot, rows, operation, column):
    """One table, operation by operation, column by column, row by row."""
    share = dict(zip(OPERATIONS, operation, strict=True))
    number, kept = share["count"] * sum(rows), [share["reset"]] * len(rows)
    for j, of_column in enumerate(column):
        chosen = [rows[i] * table[i][j] for i in range(len(rows))]
        lacking = [rows[i] * (1 - table[i][j]) for i in range(len(rows))]
        number += share["sum"] * of_column * sum(chosen)
        number += share["max"] * of_column * max(chosen)
        number += share["min"] * of_column * (1 - max(lacking))
        for i in range(len(rows)):
            kept[i] += share["greater"] * of_column * (table[i][j] > pivot)
            kept[i] += share["lesser"] * of_column * (table[i][j] < pivot)
    return number, kept


def test_one_step_equals_loops_over_the_table():
    table, pivot, rows = drawn(3, 5, 4), drawn(3, seed=1), drawn(3, 5, seed=2)
    operation, column = drawn(3, 7, seed=3).softmax(1), drawn(3, 4, seed=4).softmax(1)
    found = execute(table, pivot, rows, operation, column)
    for b in range(3):
        given = (x[b].tolist() for x in (table, pivot, rows, operation, column))
        number, kept = by_loops(*given)
        assert found.number[b].item() == pytest.approx(number, abs=1e-12)
        assert found.rows[b].tolist() == pytest.approx(kept, abs=1e-12)


def hard(names, choices):
    return torch.tensor([[float(name == choice) for name in names] for choice in choices])


def test_programs_of_two_steps_answer_every_kind_of_question(built):
    """Written by hand from the question's words, they are right for all questions of the task."""
    _, task, _ = built("dot", task=TASK, backbone=BACKBONE.format(""))
    for batch in task.evaluation("test"):
        table, pivot = batch.features, batch.frames[:, 0, 0]
        first, second = [], []
        for words, header in zip(
            batch.sources[1].tokens.tolist(), batch.sources[0].tokens.tolist(), strict=True
        ):
            said = [word for word in task.tokens(words, source=True) if word]
            place = {name: j for j, name in enumerate(task.tokens(header, source=True))}
            column = 0 if said[0] == "count" else place[said[1]]
            condition = said[-2:] if said[-2] in ("greater", "lesser") else None
            first.append((condition[0], place[condition[1]]) if condition else ("reset", 0))
            second.append((said[0], column))
        rows = torch.zeros(table.shape[:2])
        for step in (first, second):
            operation = hard(OPERATIONS, [name for name, _ in step])
            done = execute(table, pivot, rows, operation, hard(range(3), [j for _, j in step]))
            rows = done.rows
        torch.testing.assert_close(done.number, batch.values.flatten(), rtol=0, atol=1e-5)


def equations(backbone, batch, row):
    """Section 2 for one example, with the dot product and a softmax, step by step."""
    embedded = backbone.words.weight
    question = batch.sources[1]
    words = embedded[question.tokens[row][question.mask[row]]]
    asked = backbone.reader(words[None])[0][0, -1]
    names = embedded[batch.sources[0].tokens[row]]
    past = torch.zeros_like(asked)
    rows = torch.ones(batch.features.shape[1], dtype=torch.float64)
    for _ in range(backbone.steps):
        joined = torch.cat((asked, past))
        operation = (backbone.operations @ torch.tanh(backbone.ask_operation(joined))).softmax(0)
        column = (names @ torch.tanh(backbone.ask_column(joined))).softmax(0)
        numbers = (batch.features[row].tolist(), batch.frames[row, 0, 0].item(), rows.tolist())
        number, kept = by_loops(*numbers, operation.tolist(), column.tolist())
        rows = torch.tensor(kept, dtype=torch.float64)
        read = torch.cat((operation @ backbone.operations, column @ names, past))
        past = torch.tanh(backbone.history(read))
    return number, column, past


def test_the_network_equals_its_equations(built, near):
    backbone, _, batch = built("dot", task=TASK, backbone=BACKBONE.format(",hard=false"), rows=6)
    trace = backbone(batch, Mode())
    for row in range(6):
        number, column, past = equations(backbone, batch, row)
        assert backbone.emit(*trace[:3])[row, 0, 0].item() == pytest.approx(number, abs=1e-6)
        near(trace.states[row, 0], past)
        near(trace.weights[row, 0], column)


def test_scoring_takes_the_best_operation_and_column_and_training_mixes_them(built):
    backbone, _, batch = built(
        "dot", task=TASK, backbone="neural_programmer[width=12,steps=1]", rows=8
    )
    scored = backbone.eval()(batch, Mode()).context.flatten()
    table = batch.features
    possible = torch.cat((table.sum(1), table.amax(1), table.amin(1)), 1)
    possible = torch.cat((possible, torch.zeros(8, 1), torch.full((8, 1), 4.0)), 1)
    assert ((scored[:, None] - possible).abs().amin(1) < 1e-6).all()
    mixed = backbone.train()(batch, Mode()).context.flatten()
    assert ((mixed[:, None] - possible).abs().amin(1) > 1e-4).any()


def test_scoring_runs_the_program_of_the_largest_weights(built):
    backbone, _, batch = built(
        "dot", task=TASK, backbone="neural_programmer[width=12,steps=1]", rows=8
    )
    trace = backbone.eval()(batch, Mode())
    column, operation = (  # the column stands first
        torch.nn.functional.one_hot(a.weights[:, 0, 0].argmax(-1), a.weights.shape[-1]).double()
        for a in trace.attended
    )
    rows = torch.ones(batch.features.shape[:2]).double()
    run = execute(batch.features, batch.frames[:, 0, 0], rows, operation, column)
    assert run.number.any()
    torch.testing.assert_close(
        trace.context.flatten(), run.number, check_dtype=False, rtol=0, atol=1e-6
    )


def test_every_choice_of_every_step_is_answered_the_last_one_first(built):
    backbone, _, batch = built(
        "hard_reinforce", task=TASK, backbone="neural_programmer[width=12,steps=3]", rows=4
    )
    trace = backbone.train()(batch, Mode(read="train", noise=Noise(3)))
    names, operations = batch.sources[0].tokens.shape[1], len(OPERATIONS)
    assert [a.weights.shape[-1] for a in trace.attended] == [names, operations] * 3
    assert [m.num_keys for m in trace.memories] == [names, operations] * 3
    drawn = [a.terms["log_prob"] for a in trace.attended]
    assert all(each.requires_grad and bool(each.any()) for each in drawn)
    backbone.steps = 1
    alone = backbone(batch, Mode(read="train", noise=Noise(3)))
    for mine, last in zip(alone.attended, trace.attended[-2:], strict=True):
        torch.testing.assert_close(mine.weights, last.weights, rtol=0, atol=0)


def test_other_tasks_and_mechanisms_without_weights_are_refused(built):
    with pytest.raises(Refused, match="neural_programmer reads names of columns"):
        built("dot", task="chains", backbone="neural_programmer")
    with pytest.raises(InvalidConfig, match="width and steps must be at least 1, got 12, 0"):
        built("dot", task=TASK, backbone="neural_programmer[width=12,steps=0]")
    backbone, _, batch = built("linear_attention", task=TASK, backbone=BACKBONE.format(""))
    with pytest.raises(Refused, match="selects by weights, and the variant gives none"):
        backbone(batch, Mode())
