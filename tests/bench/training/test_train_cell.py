"""Training one cell: determinism, budgets, what is read, what is written."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from bench.api import registry
from bench.api.chain import Chain
from bench.api.errors import Diverged, InvalidConfig, UnknownName
from bench.api.selector import parse
from bench.api.trace import Mode
from bench.running.catalog import known_metrics
from bench.training import quality
from bench.training.assemble import assemble
from bench.training.evaluate import LONGEST, evaluate
from bench.training.protocol import canonical_protocol, read_protocol
from bench.training.quality import train_cell
from bench.training.system import System
from bench.training.training import start_training
from tasks.translation.transduction import Transduction

TIMES = {"train_cpu_s", "train_step_time_ms", "train_tokens_per_s", "decode_tokens_per_s"}


def untimed(rows) -> list[tuple]:
    """Rows without clocks: values of times, and places on the axis of seconds."""
    return [
        (r.metric, r.axis, None if r.axis == "cpu_s" else r.x, r.split, r.value)
        for r in rows
        if r.metric not in TIMES
    ]


@pytest.mark.parametrize("variant", ["additive", "hard_reinforce", "hard_gumbel_st"])
def test_the_same_cell_twice_gives_the_same_bits(variant, smoke):
    cell = smoke(variant, backbone="rnn_seq2seq[hidden=16,embedding=8,dropout=0.3]")
    one, two = train_cell(cell), train_cell(cell)
    assert untimed(one.rows) == untimed(two.rows)
    assert one.artifact == two.artifact
    for a, b in zip(one.system.parameters(), two.system.parameters(), strict=True):
        assert torch.equal(a, b)


def test_no_two_maps_of_a_cell_have_one_title(smoke):
    maps = train_cell(smoke()).artifact["attention"]
    titles = [one["title"] for one in maps]
    assert titles == ["example 1", "example 2", LONGEST]
    assert len(maps[-1]["query"]) > len(maps[0]["query"])


def test_maps_of_a_single_batch_are_numbered_by_its_rows(smoke):
    task = "keyword_cls[length=12,noise=20,evaluate=8]"
    titles = [one["title"] for one in train_cell(smoke(task=task)).artifact["attention"]]
    assert titles == ["example 1", "example 2"]


def test_the_caller_s_random_state_does_not_matter(smoke):
    one = train_cell(smoke())
    torch.manual_seed(999)
    assert untimed(train_cell(smoke()).rows) == untimed(one.rows)


def test_another_seed_gives_other_numbers(smoke):
    one, two = train_cell(smoke(seed=0)), train_cell(smoke(seed=1))
    losses = [[r.value for r in done.rows if r.metric == "train_loss_nats"] for done in (one, two)]
    assert losses[0] != losses[1]
    assert not torch.equal(next(one.system.parameters()), next(two.system.parameters()))


def state_of_numpy() -> tuple:
    """The key, the place in it, and what a draw has left over."""
    _, key, *others = np.random.get_state()  # noqa: NPY002  # the old generator is what is asked about
    return key.tolist(), *others


def test_no_global_random_state_is_touched(smoke):
    """Python's own is left out: beartype, which checks shapes in tests, draws from it."""
    torch.manual_seed(5)
    before = (torch.get_rng_state(), state_of_numpy())
    train_cell(smoke("hard_reinforce"))
    assert torch.equal(torch.get_rng_state(), before[0])
    assert state_of_numpy() == before[1]


def test_a_split_is_answered_without_dropout_and_training_goes_on_with_it(smoke):
    built = assemble(smoke(backbone="rnn_seq2seq[hidden=16,embedding=8,dropout=0.5]"), None)
    network = built.system.there
    for mode in (True, False):
        network.train(mode)
        with torch.random.fork_rng():
            one, two = (
                evaluate(built.task, network, "validation", torch.device("cpu"), lambda: 0.0)
                for _ in range(2)
            )
        assert torch.equal(one.answers[0].nll, two.answers[0].nll)
        assert all(module.training == mode for module in network.modules())
    trained = train_cell(smoke(backbone="rnn_seq2seq[hidden=16,embedding=8,dropout=0.5]"))
    assert all(module.training for module in trained.system.modules())


def test_a_loss_that_is_not_finite_diverges_with_its_step(smoke, monkeypatch):
    honest, calls = System.losses, []

    def spoiled(self, batch, mode, carry):
        terms, carry = honest(self, batch, mode, carry)
        calls.append(mode)
        return ({"nll": terms["nll"] * float("nan")} if len(calls) == 3 else terms), carry

    monkeypatch.setattr(System, "losses", spoiled)
    with pytest.raises(Diverged, match="nan at step 3"):
        train_cell(smoke())


def test_a_term_beside_the_likelihood_may_not_be_infinite_either(smoke, monkeypatch):
    honest = System.losses

    def spoiled(self, batch, mode, carry):
        terms, carry = honest(self, batch, mode, carry)
        return {**terms, "more": terms["nll"] * 0 + float("inf")}, carry

    monkeypatch.setattr(System, "losses", spoiled)
    with pytest.raises(Diverged, match="inf at step 1"):
        train_cell(smoke(protocol="adam[steps=1,batch=8]"))


def test_a_rate_that_is_far_too_large_diverges(smoke):
    with pytest.raises(Diverged):
        train_cell(smoke(protocol="adam[lr=1e38,warmup=1,steps=20,batch=8,clip=1e30]"))


def test_stop_at_ends_training_at_the_validation_that_reaches_it(smoke, monkeypatch):
    reached = iter([0.1, 0.3, 0.6, 0.9, 0.9])
    ranks = Transduction.ranking_metric().name
    honest = Transduction.scores

    def told(self, split, answers):
        found = honest(self, split, answers)
        return [
            replace(s, value=next(reached)) if s.metric == ranks and not s.axis else s
            for s in found
        ]

    monkeypatch.setattr(Transduction, "scores", told)
    done = train_cell(smoke(protocol="adam[steps=40,batch=8,evaluate_every=2,stop_at=0.5]"))
    assert value(done, "train_steps_count") == 6
    assert value(done, ranks, "validation") == 0.6
    assert value(done, ranks, "test") == 0.9


def test_without_stop_at_a_perfect_model_trains_on(smoke, monkeypatch):
    honest = Transduction.score
    monkeypatch.setattr(
        Transduction,
        "score",
        lambda self, split, answers: [replace(s, value=1.0) for s in honest(self, split, answers)],
    )
    assert value(train_cell(smoke()), "train_steps_count") == 4


def value(done, metric: str, split: str = "") -> float:
    (found,) = [
        r.value
        for r in done.rows
        if (r.metric, r.split, r.axis, r.baseline) == (metric, split, "", "")
    ]
    return found


def test_cpu_seconds_end_training_and_evaluation_is_free(smoke, clock):
    shares = []
    done = train_cell(
        smoke(protocol="adam[steps=1000,batch=8,cpu_seconds=5,evaluate_every=2]"),
        clock=clock,
        progress=shares.append,
    )
    assert value(done, "train_steps_count") == 5
    assert value(done, "train_cpu_s") == 5.0
    assert value(done, "train_step_time_ms") == 1000.0
    assert shares == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])
    curve = [(r.axis, r.x) for r in done.rows if r.metric == "sequence_accuracy" and r.axis]
    validated = [place for place in curve if place[0] in ("step", "cpu_s")]
    assert validated == [(axis, x) for x in (2.0, 4.0, 5.0) for axis in ("step", "cpu_s")]


@pytest.mark.parametrize("limit", ["steps=5", "steps=1000,cpu_seconds=5"])
def test_schedules_see_the_share_of_the_budget_that_is_spent(limit, smoke, clock, monkeypatch):
    honest, seen = System.losses, []

    def noted(self, batch, mode: Mode, carry):
        seen.append((mode.progress, mode.read))
        return honest(self, batch, mode, carry)

    monkeypatch.setattr(System, "losses", noted)
    monkeypatch.setattr(quality, "forward_flops", lambda *_: 0)  # it asks for losses, too
    train_cell(smoke(protocol=f"adam[batch=8,{limit}]"), clock=clock)
    assert [progress for progress, _ in seen] == pytest.approx([0.0, 0.2, 0.4, 0.6, 0.8])
    assert {read for _, read in seen} == {"train"}


def test_noise_is_new_at_every_step_and_in_every_seed(smoke, monkeypatch):
    honest, seen = System.losses, []

    def noted(self, batch, mode: Mode, carry):
        seen.append(mode.noise.seed)
        return honest(self, batch, mode, carry)

    monkeypatch.setattr(System, "losses", noted)
    monkeypatch.setattr(quality, "forward_flops", lambda *_: 0)  # it asks for losses, too
    for seed in (0, 1, 0):
        train_cell(smoke(seed=seed))
    first, second, again = seen[:4], seen[4:8], seen[8:]
    assert first == again
    assert len({*first, *second}) == 8
    with torch.random.fork_rng():
        torch.manual_seed(1)
        train_cell(smoke(backbone="rnn_seq2seq[hidden=16,embedding=8,dropout=0.5]"))
    assert seen[12:] == first, "addressed by seed and step, whatever else was drawn"


def test_the_rate_warms_up_linearly_and_then_stays(smoke):
    built = assemble(smoke(), None)
    protocol = read_protocol("adam[lr=0.01,warmup=4,steps=10]")
    run = start_training(built.system, protocol, 0, lambda: 0.0)
    stream = built.task.training(4, torch.Generator().manual_seed(0))
    rates = []
    for _ in range(6):
        run.update(next(stream))
        rates.append(run.optimizer.param_groups[0]["lr"])
    assert rates == pytest.approx([0.0025, 0.005, 0.0075, 0.01, 0.01, 0.01])


def test_the_rate_falls_to_nothing_over_the_share_of_the_steps_that_is_asked(smoke):
    built = assemble(smoke(), None)
    protocol = read_protocol("adam[lr=0.01,warmup=2,steps=8,cooldown=0.5]")
    run = start_training(built.system, protocol, 0, lambda: 0.0)
    stream = built.task.training(4, torch.Generator().manual_seed(0))
    rates = []
    for _ in range(8):
        run.update(next(stream))
        rates.append(run.optimizer.param_groups[0]["lr"])
    assert rates == pytest.approx([0.005, 0.01, 0.01, 0.01, 0.01, 0.0075, 0.005, 0.0025])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("cooldown=1.5", "cooldown must lie in"),
        ("cooldown=0.5,patience=2", "set one or the other"),
        ("cooldown=0.5,cpu_seconds=3", "set one or the other"),
    ],
)
def test_a_cooldown_without_a_last_step_is_refused(options, said):
    with pytest.raises(InvalidConfig, match=said):
        read_protocol(f"adam[{options}]")


def test_gradients_are_clipped_to_the_norm_of_the_protocol(smoke):
    built = assemble(smoke(), None)
    run = start_training(built.system, read_protocol("adam[clip=0.001]"), 0, lambda: 0.0)
    run.update(next(built.task.training(8, torch.Generator().manual_seed(0))))
    squares = sum(float(p.grad.square().sum()) for p in built.system.parameters())
    assert squares**0.5 == pytest.approx(0.001, rel=1e-3)


def test_weights_decay_by_as_much_as_the_protocol_says(smoke):
    system = assemble(smoke(), None).system
    run = start_training(system, read_protocol("adam[weight_decay=0.1]"), 0, lambda: 0.0)
    assert [group["weight_decay"] for group in run.optimizer.param_groups] == [0.1]
    run = start_training(system, read_protocol("adam"), 0, lambda: 0.0)
    assert [group["weight_decay"] for group in run.optimizer.param_groups] == [0.0]


@pytest.fixture
def splits(monkeypatch) -> list[str]:
    """Splits in the order in which they are read."""
    honest, seen = Transduction.evaluation, []

    def noted(self, split):
        seen.append(split)
        return honest(self, split)

    monkeypatch.setattr(Transduction, "evaluation", noted)
    return seen


def test_a_trial_never_reads_the_test_split(smoke, splits):
    done = train_cell(replace(smoke(), kind="trial"))
    assert splits == ["validation", "validation"]
    assert {r.split for r in done.rows} == {"", "train", "validation"}
    assert 0 <= value(done, "sequence_accuracy", "validation") <= 1
    assert value(done, "train_steps_count") == 4
    assert not done.artifact


def test_a_quality_cell_reads_the_test_split_at_the_end_alone(smoke, splits):
    train_cell(smoke())
    trained, after = splits[:2], splits[2:]
    assert trained == ["validation", "validation"]
    # scored once; then non-neural baselines is scored on the same examples
    assert set(after) == {"test"}


def test_validation_in_between_does_not_change_what_is_learned(smoke):
    """Were a validation to draw from the training's streams, its number would show."""
    ends = []
    # dropout alone draws from the stream of the process; other noise has its place in the training
    backbone = "rnn_seq2seq[hidden=16,embedding=8,dropout=0.3]"
    for every in (1, 4):
        protocol = f"adam[steps=4,batch=8,evaluate_every={every}]"
        done = train_cell(smoke("hard_gumbel_st", backbone=backbone, protocol=protocol))
        ends.append([p.detach().clone() for p in done.system.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*ends, strict=True))


def test_rows_hold_sizes_curves_scores_and_costs(smoke, clock):
    done = train_cell(smoke(), clock=clock)
    places = {(r.metric, r.axis, r.split) for r in done.rows}
    for metric in ("sequence_accuracy", "token_accuracy", "alignment_match"):
        assert {(metric, axis, "validation") for axis in ("step", "cpu_s", "")} <= places
        assert (metric, "", "test") in places
    assert ("token_accuracy", "length", "test") in places
    assert ("train_loss_nats", "step", "train") in places
    steps = [r.x for r in done.rows if r.metric == "token_accuracy" and r.axis == "step"]
    assert steps == [2.0, 4.0]
    lengths = [r.x for r in done.rows if r.metric == "token_accuracy" and r.axis == "length"]
    assert lengths == [2.0, 3.0, 4.0, 5.0, 6.0]
    assert len({(r.metric, r.axis, r.x, r.split, r.baseline) for r in done.rows}) == len(done.rows)
    tokens = value(done, "train_tokens_per_s") * value(done, "train_cpu_s")
    assert tokens == pytest.approx(round(tokens))
    assert 4 * 8 * 3 <= tokens <= 4 * 8 * 5, "target words of four batches, their ends too"


def test_the_training_loss_of_a_curve_is_the_mean_since_the_last_place(smoke, monkeypatch):
    made = []
    honest = quality.start_training
    monkeypatch.setattr(
        quality, "start_training", lambda *args: made.append(honest(*args)) or made[-1]
    )
    done = train_cell(smoke(protocol="adam[steps=5,batch=8,evaluate_every=2]"))
    losses = made[0].losses
    expected = [sum(losses[:2]) / 2, sum(losses[2:4]) / 2, losses[4]]
    shown = [r.value for r in done.rows if r.metric == "train_loss_nats"]
    assert shown == pytest.approx(expected)


@pytest.mark.parametrize("name", ["recall", "offset", "after_marker", "oov_copy"])
def test_every_drawn_task_trains_at_smoke_and_its_metrics_are_in_the_catalog(name, smoke):
    done = train_cell(smoke(task=f"{name}[evaluate=16]", protocol="adam[steps=2,batch=8]"))
    known = known_metrics([registry.find("task", name).target])
    assert {r.metric for r in done.rows} <= set(known)
    assert all(done.artifact[part] for part in ("attention", "samples"))


def test_artifacts_hold_maps_that_fit_their_words(smoke):
    done = train_cell(smoke())
    for shown in done.artifact["attention"]:
        assert len(shown["weights"]) == len(shown["query"]) == len(shown["gold"])
        assert all(len(line) == len(shown["source"]) for line in shown["weights"])
        assert all(sum(line) == pytest.approx(1, abs=1e-3) for line in shown["weights"])
    assert len(done.artifact["samples"]) == 5
    assert set(done.artifact["samples"][0]) == {"source", "reference", "output"}


def test_parameters_are_counted_whole_and_in_the_slot(smoke):
    words, hidden, width = 14, 16, 8
    done = train_cell(smoke("additive[width=5]"))
    gru = 3 * (8 * (width + 8) + 2 * 8)
    decoder = 3 * (hidden * (width + hidden) + 2 * hidden)
    slot = 5 * hidden + 5 * hidden + 5 + 5
    expected = 2 * words * width + 2 * gru + (hidden * hidden + hidden) + decoder
    expected += 2 * hidden * hidden + (hidden * words + words) + slot
    assert value(done, "parameters_count") == expected
    assert value(done, "slot_parameters_count") == slot


def test_a_decoder_without_attention_has_no_slot_and_no_alignment(smoke):
    done = train_cell(smoke("none_state"))
    assert value(done, "slot_parameters_count") == 0
    assert not [r for r in done.rows if r.metric.startswith("alignment")]
    assert done.artifact["attention"] == []


@pytest.mark.parametrize("slot", ["causal", "self"])
@pytest.mark.parametrize("rule", ["copy", "fert"])
def test_weights_of_self_attention_beside_a_source_are_no_alignment(slot, rule, smoke):
    done = train_cell(
        smoke(
            "scaled_dot",
            task=f"transduction[rule={rule},evaluate=8]",
            backbone="transformer_seq2seq[width=16,heads=2,layers=1]",
            slot=slot,
        )
    )
    assert not [r for r in done.rows if r.metric.startswith("alignment")]
    assert 0 < value(done, "token_accuracy", "test") < 1


def test_other_precisions_train(smoke):
    # bfloat16 is for products; parameters in it would lose small updates
    for dtype, stored in (("float64", torch.float64), ("bfloat16", torch.float32)):
        done = train_cell(replace(smoke(), dtype=dtype))
        assert {p.dtype for p in done.system.parameters()} == {stored}


def test_a_protocol_prints_what_is_not_the_default_and_reads_it_back():
    shown = canonical_protocol("adam[lr=0.01]").show()
    assert read_protocol(shown) == read_protocol("adam[lr=0.01]")
    assert set(parse(shown).options) == {"lr"}


@pytest.mark.parametrize("options", ["lr=0", "steps=0", "batch=0", "evaluate_every=0", "clip=0"])
def test_impossible_protocols_are_refused(options):
    with pytest.raises(InvalidConfig, match=r"adam: .* must be positive"):
        read_protocol(f"adam[{options}]")
    with pytest.raises(UnknownName, match="sgd"):
        read_protocol("sgd")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("steps=-3", "adam: steps must be at least 1, got -3."),
        ("lr=0.0", "adam: lr must be above 0, got 0.0."),
        ("lr=0.01,clip=-1", "adam: clip must be above 0, got -1."),
    ],
)
def test_a_number_of_a_protocol_that_is_too_small_is_named_with_its_option(options, said):
    with pytest.raises(InvalidConfig) as error:
        canonical_protocol(f"adam[{options}]")
    assert str(error.value) == said


def value_of(rows, metric, split, baseline=""):
    found = [
        r.value
        for r in rows
        if (r.metric, r.split, r.axis, r.baseline) == (metric, split, "", baseline)
    ]
    assert len(found) == 1, f"{metric} of {split} stands once"
    return found[0]


def test_an_area_under_the_curve_is_stored_once_a_cell_and_a_trial_reads_no_test(smoke):
    cell = smoke(task="needle", backbone="")
    rows = train_cell(cell).rows
    curve = [r.value for r in rows if (r.metric, r.axis) == ("token_accuracy", "step")]
    area = sum(curve) / len(curve)
    assert len(curve) > 1
    for split in ("validation", "test"):
        assert value_of(rows, "along_training_token_accuracy", split) == pytest.approx(area)
    tried = train_cell(replace(cell, kind="trial")).rows
    assert {r.split for r in tried if r.metric == "along_training_token_accuracy"} == {"validation"}


def test_a_score_beyond_training_is_that_of_the_longer_strings_of_each_split(smoke):
    cell = smoke(task="transduction", backbone="")
    rows = train_cell(cell).rows
    longer = [
        r.value
        for r in rows
        if (r.metric, r.split, r.axis) == ("prefix_accuracy", "test", "length") and r.x > 4
    ]
    name = "beyond_training_prefix_accuracy"
    assert len(longer) == 2
    assert value_of(rows, name, "test") == pytest.approx(sum(longer) / 2)
    assert 0 <= value_of(rows, name, "validation") <= 1
    assert [r.axis for r in rows if r.metric == name and r.split == "validation"][:-1]
    # the first symbol of a reversed string is that of the source by chance
    assert 0.0 < value_of(rows, name, "test", "copy the source") < 0.05


def test_training_stops_early_for_what_ranks_and_for_nothing_else(smoke):
    # after two steps few strings begin right, and more tokens are
    reached = {"transduction": 0.03, "selective_copy": 0.0001}
    steps = {}
    for task, enough in reached.items():
        protocol = f"adam[steps=4,batch=4,evaluate_every=2,stop_at={enough}]"
        rows = train_cell(smoke(task=task, backbone="", protocol=protocol)).rows
        steps[task] = value_of(rows, "train_steps_count", "")
        if task == "transduction":
            curve = [r.value for r in rows if (r.metric, r.axis) == ("token_accuracy", "step")]
            assert curve[0] > enough
    assert steps == {"transduction": 4, "selective_copy": 2}


def test_a_gradient_that_is_not_finite_diverges_though_the_last_loss_was(smoke, monkeypatch):
    honest = System.losses

    def spoiled(self, batch, mode, carry):
        terms, carry = honest(self, batch, mode, carry)
        some = next(p for p in self.parameters() if p.requires_grad)
        steep = torch.zeros((), requires_grad=True)
        return {**terms, "more": (some.sum() * 0 + steep).clamp(min=0).sqrt()}, carry

    monkeypatch.setattr(System, "losses", spoiled)
    with pytest.raises(Diverged, match="norm of the gradient was nan at step 1"):
        train_cell(smoke(protocol="adam[steps=1,batch=8]"))


def test_a_network_that_answers_with_nan_diverges_and_is_not_scored(smoke, monkeypatch):
    honest = Chain.mix

    def spoiled(self, call, carried, want_weights):
        found = honest(self, call, carried, want_weights)
        lost = found._replace(output=found.output * math.nan)
        return found if torch.is_grad_enabled() else lost

    monkeypatch.setattr(Chain, "mix", spoiled)
    with pytest.raises(Diverged, match="the network answered validation with NaN"):
        train_cell(smoke(protocol="adam[steps=1,batch=8]"))
