"""What is summed, what is carried, and what two directions share."""

from dataclasses import replace
from itertools import islice

import pytest
import torch

from bench.api.batch import Batch, Text
from bench.api.noise import Noise
from bench.api.trace import Mode
from bench.training.assemble import assemble
from bench.training.network_size import forward_flops
from bench.training.protocol import read_protocol
from bench.training.quality import train_cell
from bench.training.step_time import step_seconds
from bench.training.system import System, repeat_batch, reverse_batch
from bench.training.training import start_training
from tasks.translation.transduction import Transduction

TRAIN = Mode(read="train", noise=Noise(3))


@pytest.fixture
def system(smoke):
    """`system(variant, task=..)` -> the system in float64 and one batch."""

    def make(variant, task="transduction[rule=swap,min_length=1,evaluate=8]", rows=6):
        with torch.random.fork_rng():
            torch.manual_seed(0)
            built = assemble(smoke(variant, task=task), None)
        batch = next(built.task.training(rows, torch.Generator().manual_seed(0)))
        return built.system.double(), batch

    return make


def test_terms_are_nats_per_scored_word(system):
    made, batch = system("additive")
    terms, carry = made.losses(batch, TRAIN, made.init_carry())
    assert set(terms) == {"nll"}
    assert carry == {}
    nll = made.there.output.nll(made.there(batch, TRAIN), made.there.emit, batch)
    assert terms["nll"].item() == pytest.approx(nll[batch.mask].mean().item())
    assert not batch.mask.all(), "padding must be there to be left out"


def test_supervised_attention_reads_the_gold_of_its_batch(system):
    made, batch = system("supervised_attention")
    terms, _ = made.losses(batch, TRAIN, made.init_carry())
    moved, _ = made.losses(replace(batch, gold=batch.gold.roll(1, 2)), TRAIN, made.init_carry())
    assert terms["nll"] == moved["nll"]
    assert terms["supervised"] > 0
    assert (terms["supervised"] - moved["supervised"]).abs() > 1e-3
    slot = made.there.variant_slots()[0]
    (slope,) = torch.autograd.grad(terms["supervised"], slot.variant.score.v)
    assert slope.abs().max() > 0


def reward(made, batch) -> float:
    """Mean log likelihood of a whole target under the draws of `TRAIN`."""
    with torch.no_grad():
        nll = made.there.output.nll(made.there(batch, TRAIN), made.there.emit, batch)
    return float(-nll.sum(1).mean())


def test_the_reinforce_baseline_is_carried_through_losses(system):
    made, batch = system("hard_reinforce")
    start = made.init_carry()
    assert start == {"reinforce": {"baseline": torch.zeros(())}}
    expected = reward(made, batch)
    terms, once = made.losses(batch, TRAIN, start)
    assert start["reinforce"]["baseline"] == 0, "a carry is returned, not written to"
    assert float(once["reinforce"]["baseline"]) == pytest.approx(0.1 * expected)
    later, twice = made.losses(batch, TRAIN, once)
    assert float(twice["reinforce"]["baseline"]) == pytest.approx(0.19 * expected)
    assert later["nll"] == terms["nll"]
    assert later["reinforce"] != terms["reinforce"], "the baseline moves the term"


def test_training_hands_the_carry_on_from_step_to_step(system):
    made, batch = system("hard_reinforce")
    run = start_training(made, read_protocol("adam"), 0, lambda: 0.0)
    seen = []
    for _ in range(3):
        run.update(batch)
        seen.append(float(run.carry["reinforce"]["baseline"]))
    assert seen[0] > seen[1] > seen[2], "from zero towards a negative reward"


def by_hand() -> Batch:
    """Two pairs: a source of three words that gives two, and one of one word that gives three."""
    source = torch.tensor([[5, 6, 7, 2], [8, 2, 0, 0]])
    targets = torch.tensor([[9, 10, 2, 0], [11, 12, 13, 2]])
    gold = torch.zeros(2, 4, 4)
    for row, step, place in ((0, 0, 1), (0, 1, 0), (0, 2, 3), (1, 0, 0), (1, 1, 0), (1, 2, 0)):
        gold[row, step, place] = 1
    gold[1, 3, 1] = 1
    return Batch(
        sources=(Text(source, source > 0),),
        inputs=torch.tensor([[1, 9, 10, 2], [1, 11, 12, 13]]),
        targets=targets,
        mask=targets > 0,
        extended=source,
        gold=gold,
    )


def test_a_reversed_batch_swaps_sides_and_shifts_its_inputs():
    back = reverse_batch(by_hand())
    assert back.sources[0].tokens.tolist() == [[9, 10, 2, 0], [11, 12, 13, 2]]
    assert back.sources[0].mask.tolist() == [[True, True, True, False], [True] * 4]
    assert back.inputs.tolist() == [[1, 5, 6, 7], [1, 8, 2, 0]]
    assert back.targets.tolist() == [[5, 6, 7, 2], [8, 2, 0, 0]]
    assert back.mask.tolist() == [[True] * 4, [True, True, False, False]]
    assert torch.equal(back.extended, back.sources[0].tokens)


def test_reversed_gold_is_transposed_and_its_rows_sum_to_one_or_to_zero():
    gold = reverse_batch(by_hand()).gold
    assert gold[0].tolist() == [[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 1, 0]]
    assert gold[1, 0].tolist() == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0])
    assert gold[1, 1].tolist() == [0, 0, 0, 1]
    assert not gold[1, 2:].any()


def test_reversed_gold_counts_links_and_not_their_shares():
    """A target word with two links gives each half, and one of them may have no other."""
    batch = by_hand()
    gold = torch.zeros_like(batch.gold)
    gold[0, 0, :2] = 0.5
    gold[0, 1, 1] = 1
    back = reverse_batch(replace(batch, gold=gold)).gold
    assert back[0].tolist() == [[1, 0, 0, 0], [0.5, 0.5, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]


def test_reversing_twice_gives_the_batch_back():
    batch = by_hand()
    again = reverse_batch(reverse_batch(batch))
    for name in ("inputs", "targets", "mask"):
        scored = getattr(again, name) * batch.mask
        assert torch.equal(scored, getattr(batch, name) * batch.mask)
    assert torch.equal(again.sources[0].tokens, batch.sources[0].tokens)
    assert torch.equal(again.sources[0].mask, batch.sources[0].mask)


def test_a_source_without_padding_is_scored_whole_when_reversed():
    batch = replace(by_hand(), sources=(Text(torch.tensor([[5, 6, 7, 2], [8, 9, 4, 2]]), None),))
    assert reverse_batch(batch).mask.all()
    assert reverse_batch(replace(batch, gold=None)).gold is None


def test_two_directions_have_terms_of_their_own_and_a_joint_one(system):
    made, batch = system("agreement_trace")
    terms, _ = made.losses(batch, TRAIN, made.init_carry())
    assert set(terms) == {"nll", "nll_back", "joint"}
    assert all(term.isfinite() for term in terms.values())
    assert terms["joint"] < 0, "agreement is a bonus"
    back = reverse_batch(batch)
    nll = made.back.output.nll(made.back(back, TRAIN), made.back.emit, back)
    assert terms["nll_back"].item() == pytest.approx(nll[back.mask].mean().item())


def test_the_second_direction_has_the_vocabularies_swapped(system, monkeypatch):
    honest = Transduction.__init__

    def larger(self, *args):
        honest(self, *args)
        self.sizes = self.sizes._replace(source_vocabs=(21,))

    monkeypatch.setattr(Transduction, "__init__", larger)
    made, _ = system("agreement_trace")
    for network, source, target in ((made.there, 21, 14), (made.back, 14, 21)):
        assert network.source_embeddings[0].num_embeddings == source
        assert network.target_embedding.num_embeddings == target
        assert network.project.out_features == target


@pytest.mark.parametrize(("term", "reached"), [("nll", "t"), ("nll_back", "b"), ("joint", "tb")])
def test_each_term_reaches_the_backbones_it_is_about(term, reached, system):
    made, batch = system("agreement_trace")
    terms, _ = made.losses(batch, TRAIN, made.init_carry())
    terms[term].backward()
    for letter, backbone in (("t", made.there), ("b", made.back)):
        moved = [
            p.grad is not None and bool(p.grad.abs().max() > 0)
            for slot in backbone.variant_slots()
            for p in slot.parameters()
        ]
        assert moved
        assert all(moved) if letter in reached else not any(moved)


def test_losses_are_summed_over_both_directions(system):
    made, batch = system("supervised_attention[direction=both]")
    terms, _ = made.losses(batch, TRAIN, made.init_carry())
    assert set(terms) == {"nll", "supervised", "nll_back", "supervised_back", "joint"}
    made, batch = system("hard_reinforce[direction=both]")
    _, carry = made.losses(batch, TRAIN, made.init_carry())
    assert set(carry) == {"reinforce", "reinforce_back"}
    assert carry["reinforce"]["baseline"] != carry["reinforce_back"]["baseline"]


def test_a_loss_with_parameters_learns_each_direction_by_itself(system):
    made, batch = system("global_fertility[direction=both,start=0.0]")
    terms, _ = made.losses(batch, TRAIN, made.init_carry())
    owners = {"global_fertility": made.terms, "global_fertility_back": made.back_terms}
    trained = {id(p) for p in made.parameters()}
    for term in owners:
        for name, other in owners.items():
            leaves = list(other.parameters())
            assert len(leaves) == 4
            assert trained >= {id(leaf) for leaf in leaves}
            slopes = torch.autograd.grad(terms[term], leaves, retain_graph=True, allow_unused=True)
            assert all((slope is not None) == (name == term) for slope in slopes)


def test_coverage_losses_reach_the_score(system):
    for name in ("coverage_eq1", "doubly_stochastic", "coverage_loss[start=0.0]", "mi_coverage"):
        made, batch = system(name)
        terms, _ = made.losses(batch, TRAIN, made.init_carry())
        (term,) = (terms[key] for key in terms if key != "nll")
        (slope,) = torch.autograd.grad(term, made.there.variant_slots()[0].variant.score.v)
        assert slope.abs().max() > 0, name


def test_both_directions_of_agreement_train(smoke):
    cell = smoke("agreement_trace", task="transduction[rule=swap,evaluate=8]")
    with torch.random.fork_rng():
        torch.manual_seed(cell.seed)
        fresh = assemble(cell, None).system
    done = train_cell(cell)
    for trained, before in ((done.system.there, fresh.there), (done.system.back, fresh.back)):
        for (name, one), two in zip(trained.named_parameters(), before.parameters(), strict=True):
            assert not torch.equal(one, two), name
    whole = {r.metric: r.value for r in done.rows if not (r.axis or r.baseline) and not r.split}
    alone = train_cell(smoke("additive", task="transduction[rule=swap,evaluate=8]"))
    single = {r.metric: r.value for r in alone.rows if not (r.axis or r.baseline) and not r.split}
    assert whole["parameters_count"] == 2 * single["parameters_count"]
    assert whole["slot_parameters_count"] == single["slot_parameters_count"]


@pytest.mark.parametrize(
    ("variant", "wanted"),
    [
        ("additive", False),
        ("supervised_attention", True),
        ("pointer_generator", True),
        ("agreement_trace", True),
    ],
)
def test_weights_are_computed_only_where_something_reads_them_in_training_and_what_measures_it(
    smoke, monkeypatch, variant, wanted
):
    asked, honest = [], System.losses

    def losses(system, batch, mode, carry):
        asked.append(mode.want_weights)
        return honest(system, batch, mode, carry)

    monkeypatch.setattr(System, "losses", losses)
    cell = smoke(variant, task="transduction[rule=swap,min_length=1,evaluate=8]")
    built = assemble(cell, None)
    (batch,) = islice(built.task.training(8, torch.Generator().manual_seed(0)), 1)
    start_training(built.system, read_protocol(cell.protocol), 0, float).update(batch)
    step_seconds(built.system, built.task, cell)()
    forward_flops(built.system, built.task, cell)
    assert asked == [wanted] * 3


def test_an_outputs_own_loss_is_trained_beside_the_likelihood_and_not_part_of_it(system):
    made, batch = system("pointer_sentinel", task="recall")
    terms, _ = made.losses(batch, TRAIN, made.init_carry())
    assert set(terms) == {"nll", "gate"}
    assert terms["gate"] > 0
    nll = made.there.output.nll(made.there(batch, TRAIN), made.there.emit, batch)
    assert terms["nll"].item() == pytest.approx(nll[batch.mask].mean().item())


def test_copies_of_an_example_stand_side_by_side_and_draw_for_themselves(system):
    made, batch = system(
        "hard_reinforce[sampling=1.0,loss=reinforce[baseline=leave_one_out,samples=3]]"
    )
    seen = []
    made.named_losses["reinforce"].register_forward_hook(
        lambda module, given, found: seen.append(given[0])
    )
    terms, _ = made.losses(batch, TRAIN, made.init_carry())
    (inputs,) = seen
    assert inputs.copies == 3
    assert len(inputs.nll) == 3 * len(batch.targets)
    assert torch.equal(inputs.batch.targets[::3], batch.targets)
    for copy in (1, 2):
        for name in ("targets", "inputs", "mask", "extended", "gold"):
            one, two = getattr(inputs.batch, name), getattr(batch, name)
            assert torch.equal(one[copy::3], two), name
        drawn = inputs.trace.weights[copy::3]
        assert not torch.equal(drawn, inputs.trace.weights[::3])
    assert terms["nll"].item() == pytest.approx(inputs.nll[inputs.batch.mask].mean().item())


def test_a_batch_is_left_alone_where_no_loss_compares_draws(system):
    _, batch = system("additive")
    assert repeat_batch(batch, 1) is batch
    named = replace(batch, references=tuple("abcdef"), names=tuple("uvwxyz"))
    twice = repeat_batch(named, 2)
    assert twice.references == tuple("aabbccddeeff")
    assert twice.names[:3] == ("u", "u", "v")
    assert torch.equal(twice.sources[0].mask[1::2], batch.sources[0].mask)


def test_a_learned_baseline_has_the_widths_of_the_network_and_is_trained(system):
    made, batch = system("hard_reinforce[loss=reinforce[baseline=learned]]")
    loss = made.named_losses["reinforce"]
    assert loss.value[0].in_features == 16 + 8
    terms, carry = made.losses(batch, TRAIN, made.init_carry())
    sum(terms.values()).backward()
    assert all(p.grad.abs().sum() > 0 for p in loss.value.parameters())
    assert set(carry["reinforce"]) == {"baseline", "spread"}
    assert any(p is loss.value[0].weight for p in made.parameters())


@pytest.mark.parametrize("slot", ["cross", "causal"])
def test_every_layer_draws_for_itself_and_is_rewarded(slot, smoke):
    cell = smoke(
        "hard_reinforce[sampling=1.0]",
        backbone="transformer_seq2seq[width=16,heads=2,layers=3]",
        slot=slot,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        built = assemble(cell, None)
    made = built.system.double()
    batch = next(built.task.training(6, torch.Generator().manual_seed(0)))
    trace = made.there(batch, TRAIN)
    assert len(trace.attended) == 3
    noise = {TRAIN.layer(index).noise.seed for index in range(3)}
    assert len(noise) == 3
    assert TRAIN.layer(0) is TRAIN
    made.losses(batch, TRAIN, made.init_carry())[0]["reinforce"].backward()
    for index, held in enumerate(made.there.variant_slots()):
        grads = [p.grad for p in held.parameters() if p.grad is not None]
        assert any(grad.any() for grad in grads), f"layer {index} learns nothing from the reward"
    last_first = made.there(batch, Mode()).attended
    assert torch.equal(made.there(batch, Mode()).weights, last_first[0].weights.mean(1))
