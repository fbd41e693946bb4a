"""What holds for each task that is registered: seeds, presets, ranges, names of metrics."""

import doctest
import importlib
import itertools
import math
import pkgutil
import random
import runpy
from dataclasses import fields, replace
from pathlib import Path

import pytest
import torch

import tasks
from bench.api import registry
from bench.api.answer import Answer
from bench.api.axes import BACKBONE_AXES
from bench.api.config import FloatRange, IntRange, default_of, search_ranges
from bench.api.options import complete
from bench.api.registry import DefaultTask
from bench.api.resolve import resolve
from bench.api.selector import parse
from bench.api.task import Task
from bench.api.trace import Mode
from bench.running.catalog import describe_task, describe_variant, known_metrics
from bench.running.common_metrics import COMMON_METRICS
from bench.running.quality_cells import quality_cell
from bench.running.request import Request
from bench.training.assemble import assemble
from bench.training.evaluate import evaluate
from bench.training.protocol import AdamProtocol, read_protocol

ALL = list(registry.registrations("task"))
DRAWN = [n for n in ALL if registry.find("task", n).target.is_generated()]
PRESETS = ("smoke", "quick", "standard")
HERE = [
    name
    for name in ALL
    if not (target := registry.find("task", name).target).needs_download
    and target.metrics[0].name in ("token_accuracy", "label_accuracy")
]
"""Tasks that count right answers, with data that need no directory."""


@pytest.fixture(scope="session")
def small_data(tmp_path_factory):
    """Any downloaded task finds a little invented data; small_data/ has a file a data set."""
    folder = tmp_path_factory.mktemp("directory")
    for file in sorted((Path(__file__).parent / "small_data").glob("*.py")):
        runpy.run_path(str(file))["write"](folder, random.Random(0))
    return folder


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory):
    """A cache for all these tests: some tasks take seconds to read what they are made of."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BENCH_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


def smoke(name: str, seed: int):
    options = parse(registry.find("task", name).target.presets["smoke"].options)
    return registry.make("task", options, seed)


def everything(batch) -> list[torch.Tensor]:
    tensors = [text.tokens for text in batch.sources]
    tensors += [batch.inputs, batch.targets, batch.mask.long()]
    maybe = [text.frames for text in batch.sources]
    maybe += [batch.extended, batch.gold, batch.values, batch.frames]
    maybe += [batch.features, batch.features_gold, batch.relations]
    return tensors + [t for t in maybe if t is not None]


def same(one, two) -> bool:
    pairs = itertools.zip_longest(everything(one), everything(two))
    return all(
        a is not None and b is not None and a.shape == b.shape and bool((a == b).all())
        for a, b in pairs
    )


def drawn(task, seed: int):
    stream = task.training(16, torch.Generator().manual_seed(seed))
    return [next(stream), next(stream), *task.evaluation("validation"), *task.evaluation("test")]


@pytest.mark.parametrize("name", DRAWN)
def test_the_same_seed_draws_the_same_data_and_another_seed_other_data(name):
    first, again, other = (drawn(smoke(name, seed), seed) for seed in (4, 4, 5))
    assert all(same(a, b) for a, b in zip(first, again, strict=True))
    assert not any(same(a, b) for a, b in zip(first, other, strict=True))
    assert not same(first[0], first[1]), "training never repeats its first batch"


@pytest.mark.parametrize("name", DRAWN)
def test_a_split_is_fixed_whatever_was_read_before_it(name):
    task = smoke(name, 2)
    test = list(task.evaluation("test"))
    next(task.training(8, torch.Generator().manual_seed(9)))
    task.evaluation("validation")
    assert all(same(a, b) for a, b in zip(test, task.evaluation("test"), strict=True))


class SeedReader(torch.Generator):
    """A generator that notes its seeds."""

    seen: list[int] = []

    def manual_seed(self, seed: int) -> torch.Generator:
        self.seen.append(seed)
        return super().manual_seed(seed)


@pytest.mark.parametrize("name", DRAWN)
def test_training_validation_and_test_have_streams_of_their_own(name, monkeypatch):
    monkeypatch.setattr(torch, "Generator", SeedReader)
    for seed in range(5):
        task = smoke(name, seed)
        SeedReader.seen = []
        task.evaluation("validation")
        task.evaluation("test")
        # the trainer seeds its generator with the seed of the cell
        assert len({seed, *SeedReader.seen}) == 3


def test_a_pool_of_training_pairs_has_a_stream_of_its_own(monkeypatch):
    monkeypatch.setattr(torch, "Generator", SeedReader)
    SeedReader.seen = []
    task = registry.make("task", parse("transduction[pairs=4]"), 3)
    task.evaluation("validation")
    task.evaluation("test")
    dictionary, *streams = SeedReader.seen
    assert dictionary == 7
    assert len({3, *streams}) == 4


@pytest.mark.parametrize("name", DRAWN)
def test_no_task_touches_the_global_random_state(name):
    before = torch.get_rng_state()
    drawn(smoke(name, 0), 0)
    assert torch.equal(before, torch.get_rng_state())


def test_a_batch_moves_with_everything_that_it_holds():
    batch = smoke("transduction", 0).evaluation("validation")[0]
    moved = batch.to(torch.device("meta"))
    assert {t.device.type for t in (*everything(moved), moved.sources[0].mask)} == {"meta"}


def stands_in(name: str) -> str:
    """The first mechanism of a task's comparison, or one that fits nearly everywhere."""
    comparison = registry.find("task", name).target.comparison
    return comparison[0].variant if comparison else "additive"


@pytest.mark.annotations
@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("name", ALL)
def test_every_preset_resolves_builds_and_scores(name, preset, small_data):
    target = registry.find("task", name).target
    assert {*PRESETS} <= target.presets.keys() <= {*PRESETS, "modern", "flagship"}
    size = target.presets[preset]
    assert parse(size.options).name == name
    assert size.seconds > 0
    protocol = read_protocol(size.protocol)
    assert protocol.evaluate_every <= protocol.steps
    cell = quality_cell(
        Request(preset=preset), resolve(stands_in(name)), DefaultTask(task=name), 0
    ).cell
    with torch.random.fork_rng():
        built = assemble(cell, small_data)
    stream = built.task.training(2, torch.Generator().manual_seed(0))
    batch = next(stream)
    terms, _ = built.system.losses(batch, Mode(read="train"), built.system.init_carry())
    assert terms["nll"].isfinite()


@pytest.mark.parametrize("name", ALL)
def test_what_a_task_scores_is_what_it_declares(name, small_data):
    cell = quality_cell(
        Request(preset="smoke"), resolve(stands_in(name)), DefaultTask(task=name), 0
    ).cell
    with torch.random.fork_rng():
        built = assemble(cell, small_data)
    headline = built.task.headline
    beyond = headline is not None and headline.kind == "beyond_training"
    known = built.task.all_metrics() if beyond else built.task.metrics
    declared = {metric.name for metric in known}
    for split in ("validation", "test"):
        found = evaluate(
            built.task, built.system.there, split, torch.device("cpu"), itertools.count().__next__
        )
        assert found.value(built.task.watched_metric().name) is not None
        scored = {s.metric for s in found.scores if not s.axis}
        assert scored == declared, "validation holds what ranks, too"
        assert {s.metric for s in found.scores} <= declared
        assert all(bool(s.axis) == (s.x is not None) for s in found.scores)
        if not built.task.needs_weights:
            without = [replace(answer, weights=None) for answer in found.answers]
            assert built.task.scores(split, without) == [*found.scores]
    assert built.task.samples(found.answers, 3)


@pytest.mark.parametrize("name", ALL)
def test_a_report_knows_the_chance_level_that_a_task_has(name, small_data):
    target = registry.find("task", name).target
    for preset in PRESETS[:2]:
        options = parse(target.presets[preset].options)
        told = describe_task(name, options).chance
        assert registry.make("task", options, 0, small_data).chance == told


def constant(batch, word) -> Answer:
    return Answer(
        batch,
        predicted=torch.full_like(batch.targets, word),
        nll=torch.zeros_like(batch.targets).float(),
    )


@pytest.mark.parametrize("name", ALL)
def test_a_level_of_chance_that_a_task_sets_is_not_hidden_by_a_rule_that_it_inherits(name):
    order = registry.find("task", name).target.__mro__
    sets = next(at for at, one in enumerate(order) if "chance" in vars(one))
    rules = next(at for at, one in enumerate(order) if "chance_of" in vars(one))
    assert order[rules] is Task or rules <= sets


BELOW_CHANCE = {
    "chains": "chance knows the rooms that a story names; a constant names one of all rooms",
}
"""Tasks of which the best constant answer is worse than chance, and why."""


SIZES_HERE = [
    (name, preset)
    for name in HERE
    for preset in (*PRESETS[:2], "modern")
    if preset in registry.find("task", name).target.presets
]


@pytest.mark.parametrize(("name", "preset"), SIZES_HERE)
def test_no_constant_answer_is_better_than_chance_and_the_best_one_attains_it(name, preset):
    target = registry.find("task", name).target
    primary = target.watched_metric().name
    task = registry.make("task", parse(target.presets[preset].options), 100)
    batches = task.evaluation("test")
    words = torch.cat([batch.targets[batch.mask] for batch in batches]).unique().tolist()
    values = []
    for word in words:
        scores = task.scores("test", [constant(batch, word) for batch in batches])
        values += [s.value for s in scores if s.metric == primary and not s.axis]
    # one batch a level at least, so that this many examples stand behind the plain score
    examples = min(len(batch.targets) for batch in batches)
    noise = math.sqrt(task.chance * (1 - task.chance) / examples)
    assert max(values) < task.chance + 4 * noise
    assert max(values) >= task.chance - 1e-9 or name in BELOW_CHANCE, "chance is overstated"
    best_word_is_exact = name in {"selective_copy", "sorting"}
    assert not best_word_is_exact or max(values) == pytest.approx(task.chance)


ENDINGS = {
    "_accuracy": "fraction of",
    "_match": "fraction of",
    "_lagging": "tokens",
    "_proportion": "fraction of",
    "_nats": "nats",
    "_nats_per_token": "nats per token",
    "_f1": "F1",
    "_correlation": "correlation",
    "_points": "points",
    "auroc": "area",
    "mse": "squared",
    "_error_rate": "errors per",
    "_width": "deviations",
    "auprc": "area",
    "_per_s": ("per CPU second", "per wall second"),
    "_ms": "ms",
    "_cpu_s": "CPU s",
    "_wall_s": "wall s",
    "_bytes": "bytes",
    "_count": ("count", "steps"),
    "bleu": "sacreBLEU points",
    "chrf": "sacreBLEU points",
    "bits_per_character": "bits per character",
    "perplexity": "perplexity",
}


def test_names_of_metrics_end_in_their_unit_and_are_in_the_catalog():
    targets = [registry.find("task", name).target for name in ALL]
    catalog = known_metrics(targets)
    metrics = [*COMMON_METRICS, *(metric for target in targets for metric in target.all_metrics())]
    for metric in metrics:
        ending = max((e for e in ENDINGS if metric.name.endswith(e)), key=len, default=None)
        assert ending is not None, f"{metric.name} ends in no unit"
        units = ENDINGS[ending]
        units = (units,) if isinstance(units, str) else units
        assert any(unit in metric.unit for unit in units), f"{metric.name} in {metric.unit}"
        declared = replace(metric, margin=metric.declared_margin)
        assert catalog[metric.name] == declared, f"{metric.name} is declared in two ways"
    for target in targets:
        assert target.metrics[0].better != "none", "the first metric ranks"
        assert target.metrics[0].group == "quality"


@pytest.mark.parametrize("name", ALL)
def test_what_ranks_has_a_margin_so_that_variants_can_be_equivalent(name):
    task = registry.find("task", name).target
    margin = task.ranking_metric().declared_margin if task.margin is None else task.margin
    assert margin is not None, f"{name} says of no difference that it has no practical meaning"
    assert margin > 0


def configs():
    for axis in ("task", "backbone", *BACKBONE_AXES):
        for name, registered in registry.registrations(axis).items():
            yield f"{axis} {name}", registered.config
    yield "adam", AdamProtocol


@pytest.mark.parametrize(("name", "config"), list(configs()))
def test_defaults_lie_inside_their_search_ranges(name, config):
    for field, bounds in search_ranges(config).items():
        default = default_of(config, field)
        if isinstance(bounds, IntRange | FloatRange):
            assert bounds.low <= default <= bounds.high, f"{name}: {field}"
            assert bounds.low < bounds.high
            assert not bounds.log or bounds.low > 0
            for end in (bounds.low, bounds.high):
                assert isinstance(end, int if isinstance(bounds, IntRange) else int | float)
        else:
            assert default in bounds.options


@pytest.mark.parametrize(("name", "config"), list(configs()))
def test_every_option_has_a_default_and_survives_writing_out(name, config):
    made = config()
    assert replace(made) == made
    assert all(field.kw_only for field in fields(config))


def modules():
    for found in pkgutil.walk_packages(tasks.__path__, "tasks."):
        yield found.name


DRAWN_MODULES = {registry.find("task", name).module for name in DRAWN}


@pytest.mark.parametrize("name", sorted(modules()))
def test_the_examples_in_docstrings_run(name):
    found = doctest.testmod(importlib.import_module(name))
    assert found.failed == 0
    if name in DRAWN_MODULES:
        assert found.attempted > 0, "a task that needs no download shows one example"


@pytest.mark.parametrize("name", ALL)
def test_a_task_that_must_be_downloaded_names_its_data_sets(name):
    target = registry.find("task", name).target
    assert bool(target.data_sets) == target.needs_download


def is_a_sentence(text: str) -> bool:
    return text == "" or (text.endswith(".") and text[0].isupper() and len(text) > 30)


@pytest.mark.parametrize("name", ALL)
def test_what_a_task_says_of_its_evidence_and_ranking_reaches_the_catalog(name):
    target = registry.find("task", name).target
    assert is_a_sentence(target.pipeline_check)
    assert all(map(is_a_sentence, target.pipeline_check_over.values()))
    assert {*target.pipeline_check_over} <= {*registry.registrations("backbone")}
    assert not (target.pipeline_check and target.pipeline_check_over), "one says it of all"
    options = parse(target.presets["quick"].options)
    told = describe_task(name, options)
    assert told.pipeline_check == target.pipeline_check
    assert told.pipeline_check_over == target.pipeline_check_over
    families = {one.target.family for one in registry.registrations("task").values()}
    assert told.counts_with in families | {""}
    assert told.primary == target.ranking_metric().name
    assert told.primary in known_metrics([target])
    for setting in target.calibration:
        assert parse(setting.options).name == name
        complete("task", parse(setting.options))
        assert read_protocol(setting.protocol)


def test_a_variant_that_cannot_show_its_advantage_says_why_in_its_own_words():
    for name, registered in registry.listed_variants().items():
        assert is_a_sentence(registered.does_not_show)
        told = describe_variant(name, resolve(name)).does_not_show
        assert told == registered.does_not_show


FEWEST = {"visits": 8}
"""Examples of a split at least, where one is too few: its metric needs both outcomes."""


@pytest.mark.parametrize("name", DRAWN)
def test_a_task_of_the_fewest_examples_can_be_asked_and_scored(name):
    registration = registry.find("task", name)
    options = complete("task", parse(registration.target.presets["smoke"].options))
    config = registry.build_config(registration.config, options.options, name)
    if not hasattr(config, "evaluate"):
        pytest.skip("the task does not say how many")
    task = registration.target(replace(config, evaluate=FEWEST.get(name, 1)), 0)
    assert task.examples() is None or len(task.examples().targets) >= 1
    answers = []
    for batch in task.evaluation("test"):
        said = tuple(
            tuple(row[real].tolist()[:-1])
            for row, real in zip(batch.targets, batch.mask, strict=True)
        )
        zeros = torch.zeros(batch.mask.shape)
        said = said if task.decodes else None
        answers.append(Answer(batch, batch.targets, zeros, said, values=batch.values))
    assert task.scores("test", answers)
    task.samples(answers, 2)
