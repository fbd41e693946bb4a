"""The catalog of a run: what is written is read back, and a foreign one is not guessed at."""

import json

import pytest

from bench.api.comparison import PublishedResult
from bench.api.license import License
from bench.api.metric import Metric
from results.catalog import CatalogTask, CatalogVariant, ChangedAxis, RunCatalog
from results.looks import Looks

NUMBER = PublishedResult(
    what="a model", metric="bleu", value=31.0, text="Somebody, 2016", url="https://example.org",
    where="table 1", differs="in size",
)  # fmt: skip
WHOLE = RunCatalog(
    variants={
        "additive": CatalogVariant(
            short="additive", control="uniform_baseline", decoder_differs=True
        ),
        "dot": CatalogVariant(
            name="dot",
            does_not_show="It is small.",
            ablation=ChangedAxis(base="b", axis="score", value="dot"),
        ),
    },
    tasks={
        "recall[pairs=8]": CatalogTask(
            primary="bleu",
            license=License("MIT", redistributable=True),
            needs_download=False,
            generated=True,
            chance=0.25,
            pipeline_check="Counts win.",
            pipeline_check_over={"rnn_decoder": "Counts win over it."},
            rule_baseline="copy the source",
            counts_with="translation",
            tuned={"additive @ rnn / cross": 3},
            published_results=(NUMBER,),
        )
    },
    metrics={
        "bleu": Metric(
            name="bleu", title="BLEU", unit="points", low=0.0, high=100.0, better="higher"
        )
    },
    study={"additive": {"trials": 3}},
    trials={"additive[width=8]": "additive"},
    baseline="dot",
    commands=("run a",),
    preset="quick",
    ranks=False,
    looks=Looks(first=4, first_seed=2),
    plugins=("mine.py",),
    data_dir="there",
    notes=("Two starts were too large.",),
)


def test_a_catalog_is_read_back_as_it_was_written():
    assert RunCatalog.from_json(json.loads(json.dumps(WHOLE.to_json()))) == WHOLE


def test_a_catalog_that_says_nothing_has_every_default():
    assert RunCatalog.from_json(None) == RunCatalog() == RunCatalog.from_json({})
    bare = RunCatalog.from_json({"tasks": {"recall": {}}, "variants": {"dot": {}}})
    assert bare.tasks["recall"] == CatalogTask()
    assert not bare.tasks["recall"].license.redistributable
    assert bare.variants["dot"].control is None


@pytest.mark.parametrize("first", [None, 1, -3, 1e9, "3", [3]])
def test_looks_that_cannot_be_are_none(first):
    assert RunCatalog.from_json({"looks": {"first": first}}).looks is None


def test_scores_that_were_looked_at_several_times_stay_so():
    assert WHOLE.merged(RunCatalog()).looks == WHOLE.looks
    assert RunCatalog().merged(WHOLE).looks == WHOLE.looks


def test_words_outside_the_closed_sets_are_not_guessed_at():
    read = RunCatalog.from_json(
        {
            "variants": {"dot": {"control": "yes", "unheard": 1}},
            "tasks": {"recall": {"license": {"name": "open", "redistributable": "no"}}},
            "metrics": {"bleu": {"better": "bigger", "group": "other"}},
        }
    )
    assert read.variants["dot"].control is None
    assert not read.tasks["recall"].license.redistributable
    assert (read.metrics["bleu"].better, read.metrics["bleu"].group) == ("none", "quality")


def test_a_later_run_adds_names_and_its_command_and_keeps_what_was_there():
    later = RunCatalog(
        variants={"mha": CatalogVariant(short="mha")}, baseline="mha", commands=("run a", "run b")
    )
    both = WHOLE.merged(later)
    assert set(both.variants) == {"additive", "dot", "mha"}
    assert both.commands == ("run a", "run b")
    assert (both.baseline, both.data_dir, both.plugins) == ("mha", "there", ("mine.py",))
    assert both.study == WHOLE.study


def test_a_plug_in_that_has_moved_is_named_where_it_lies_now():
    """A pack names the file alone, and who goes on from it has it somewhere."""
    later = RunCatalog(plugins=("/here/other.py", "/here/mine.py"))
    assert WHOLE.merged(later).plugins == ("/here/mine.py", "/here/other.py")


def test_a_study_in_the_folder_of_a_run_takes_no_baseline_away():
    assert WHOLE.merged(RunCatalog()).baseline == WHOLE.baseline


def test_a_variant_that_a_later_run_asks_for_by_no_name_keeps_the_one_that_it_has():
    selector = "additive[width=8]"
    first = RunCatalog(variants={selector: CatalogVariant(short="narrow", title="Old")})
    by_label = RunCatalog(variants={selector: CatalogVariant(short=selector, title="New")})
    by_name = RunCatalog(variants={selector: CatalogVariant(short="slim")})
    both = first.merged(by_label).variants[selector]
    assert (both.short, both.title) == ("narrow", "New")
    assert first.merged(by_name).variants[selector].short == "slim"
    assert RunCatalog().merged(by_label).variants[selector].short == selector


def test_notes_on_a_run_stay_when_a_later_one_goes_on_in_its_folder():
    both = WHOLE.merged(RunCatalog(notes=("New.", *WHOLE.notes)))
    assert both.notes == ("Two starts were too large.", "New.")
    assert WHOLE.merged(RunCatalog()).notes == WHOLE.notes


def test_a_published_result_without_a_number_is_left_out():
    said = [{"name": "paper"}, {"name": "other", "value": 0.5}]
    assert [
        one.value for one in CatalogTask.from_json({"published_results": said}).published_results
    ] == [0.5]


def test_an_input_ablation_and_a_pipeline_check_decide_nothing():
    whole, network = CatalogTask(whole="two_source"), "rnn_decoder[cell=gru]"
    assert whole.decides("two_source", network)
    assert not whole.decides("two_source[read=first]", network)
    assert CatalogTask().decides("recall[pairs=8]", network), "it has no such options"
    assert not CatalogTask(pipeline_check="Counts win.").decides("recall[pairs=8]", network)
    over = CatalogTask(pipeline_check_over={"rnn_decoder": "Counts win over it."})
    assert not over.decides("recall[pairs=8]", network)
    assert not over.decides("recall[pairs=8]", "rnn_decoder")
    assert over.decides("recall[pairs=8]", "transformer_decoder")


def test_an_ablation_keeps_what_others_of_its_base_changed_and_drops_that_of_another_base():
    def changes(base, *names):
        change = ChangedAxis(base=base, axis="score", value="x")
        return {name: CatalogVariant(title="T", ablation=change) for name in names}

    held = RunCatalog(variants={**changes("b", "one", "c"), "b": CatalogVariant()}, baseline="b")
    assert held.ablated == {"b"}
    same = held.merged(RunCatalog(variants=changes("b", "two"), baseline="b"))
    assert {name for name, one in same.variants.items() if one.ablation} == {"one", "two", "c"}
    plain = held.merged(RunCatalog(variants={"one": CatalogVariant()}))
    assert plain.variants["one"].ablation == held.variants["one"].ablation
    later = {**changes("c", "one", "b"), "c": CatalogVariant()}
    other = held.merged(RunCatalog(variants=later, baseline="c"))
    assert other.ablated == {"c"}
    assert other.variants["c"].ablation is None
