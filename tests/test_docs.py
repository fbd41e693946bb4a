"""README is executed; generated pages hold what the registry holds."""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from scipy.stats import spearmanr

import bench
import results
from bench.api import registry
from bench.api.calibration import stored_choices
from bench.api.claim import CLAIMS
from bench.api.documented_fields import documented_fields
from bench.api.resolve import resolve
from bench.api.selector import Selector
from bench.api.task import TASKS
from bench.calibration_trials import RATES
from bench.cli.main import cli
from bench.docs import readme
from bench.docs.choices import update_choices
from bench.docs.columns import columns_page
from bench.docs.commands import commands_page
from bench.docs.marked import with_part
from bench.docs.packs import PACKS, update_packs
from bench.docs.peers import update_page
from bench.docs.places import filled
from bench.docs.site import linked
from bench.docs.tasks import NEEDS_DATA, _made, facts_of, tasks_page
from bench.docs.variants import variants_page
from bench.running.calibrated import calibrated_choice
from bench.running.catalog import describe_variant
from bench.running.families import tasks_by_family
from reports import tested
from reports.folder import read_folder
from reports.markdown import with_code
from reports.needs import above_uniform
from reports.ranked_table.saturation import edge
from reports.sections.decisions import ERRORS
from reports.sections.timed_slots import STEP, main_place, places_by_length, timed_slots
from results.frame import COLUMNS
from results.row import Row
from results.statistics.intervals import t_interval

ROOT = Path(__file__).parents[1]


def blocks(name: str, language: str) -> list[str]:
    text = (ROOT / name).read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def test_python_in_the_readme_runs(tmp_path):
    code = "\n".join(blocks("README.md", "python"))
    assert "variants.build" in code
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_every_make_target_in_the_readme_exists():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"make (\w+)", text)
    assert targets
    for target in targets:
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target


README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_readme_is_short_enough_to_be_read():
    assert len(README.splitlines()) <= 120


def test_the_readme_builds_a_variant_in_six_lines():
    (code,) = blocks("README.md", "python")
    assert len(list(filter(None, code.splitlines()))) <= 6


def test_the_numbers_of_variants_and_tasks_in_the_readme_are_those_of_the_registry():
    tasks = registry.registrations("task")
    uses = {registered.target.family for registered in tasks.values()} - {""}
    said = re.search(r"(\d+) variants, (\d+) tasks for (\d+) uses of attention", README)
    assert said is not None
    counts = [len(registry.listed_variants()), len(tasks), len(uses)]
    assert [int(number) for number in said.groups()] == counts


PAGES = ["README.md", *(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("name", PAGES)
def test_links_between_pages_lead_to_files(name):
    generated = {"variants.md", "tasks.md", "commands.md", "columns.md", "peers.md"}
    text = (ROOT / name).read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)#\s]+)", text)
    here = (ROOT / name).parent
    assert not [
        target
        for target in targets
        if "://" not in target and target not in generated and not (here / target).exists()
    ]


def test_a_marked_part_is_replaced_and_the_rest_is_left():
    text = "before\n<!-- a:begin -->\nold\n<!-- a:end -->\nafter\n"
    new = with_part(text, "a", "new")
    assert new == "before\n<!-- a:begin -->\n\nnew\n<!-- a:end -->\nafter\n"
    assert with_part(new, "a", "new") == new
    assert with_part(new, "a", "") == "before\n<!-- a:begin -->\n<!-- a:end -->\nafter\n"
    with pytest.raises(ValueError, match="markers of the part 'b'"):
        with_part(text, "b", "new")


def test_a_number_of_the_readme_may_be_of_another_metric_than_that_which_ranks():
    folder = read_folder(ROOT / readme.PUBLISHED / "quick.parquet")
    text = filled("{oov_copy/copynet}, {oov_copy/copynet|oov_accuracy}", folder)
    ranked, unknown = text.split(", ")
    assert ranked != unknown
    (comparison, *_) = sorted(
        (one for one in folder.comparisons if "copynet" in one.means),
        key=lambda one: -len(one.means),
    )
    values = comparison.stored.final("oov_accuracy")["copynet"].values()
    assert float(unknown.partition(" ")[0]) == pytest.approx(sum(values) / len(values), abs=0.01)
    with pytest.raises(LookupError, match="has no score of copynet on oov_copy nothing"):
        filled("{oov_copy/copynet|nothing}", folder)


def test_a_number_of_the_readme_may_be_of_inputs_of_one_length():
    folder = read_folder(ROOT / readme.PUBLISHED / "quick.parquet")
    text = filled("{offset/sinusoid|token_accuracy@96}", folder)
    (comparison,) = (one for one in folder.comparisons if one.title == "offset")
    values = comparison.stored.parts("token_accuracy", "length")["sinusoid", 96.0].values()
    assert float(text.partition(" ")[0]) == pytest.approx(sum(values) / len(values), abs=0.01)
    with pytest.raises(LookupError, match="no inputs of length 95 for sinusoid"):
        filled("{offset/sinusoid|token_accuracy@95}", folder)


def test_the_table_of_packs_is_that_of_the_packs():
    assert not update_packs(ROOT, write=False), "run `make readme`"
    assert not update_page(ROOT, write=False), "run `make readme`"
    assert {f"{name}.parquet" for name in PACKS} == {
        path.name for path in (ROOT / "results" / "published").glob("*.parquet")
    }


@pytest.mark.slow
def test_the_page_of_choices_is_that_of_the_published_runs():
    assert not update_choices(ROOT, write=False), "run `make readme`"


@pytest.mark.slow
def test_the_parts_of_the_readme_are_those_of_the_published_runs():
    assert not readme.update_readme(ROOT, write=False), "run `make readme`"


def ranks_of(pack, task):
    """Rank of each variant of the largest published comparison on a task."""
    folder = read_folder(ROOT / "results" / "published" / pack)
    known = folder.catalog
    here = [one for one in folder.comparisons if known.task_label(one.task) == task]
    found = max(here, key=lambda one: len(one.means))
    return {known.label(name): line.rank for name, line in found.compared.items()}


def outcome_of(pack, task, variant, reference):
    """What the planned test says of a variant beside a reference."""
    folder = read_folder(ROOT / "results" / "published" / pack)
    known = folder.catalog
    return next(
        decision.outcome
        for one in folder.comparisons
        if known.task_label(one.task) == task
        for asked, decision in one.primary.items()
        if (known.label(asked.variant), known.label(asked.reference)) == (variant, reference)
    )


@pytest.mark.slow
def test_what_the_findings_say_is_decided_or_not_is_so_by_the_planned_tests():
    copying = "transduction[rule=copy]"
    for pack, task, variant, wanted in (
        ("quick.parquet", "oov_copy", "copynet", "better"),
        ("quick.parquet", "oov_copy", "pointer_generator", "undecided"),
        ("quick.parquet", copying, "raffel_monotonic", "undecided"),
        ("quick.parquet", copying, "mocha", "undecided"),
        ("flagship.parquet", "transduction[rule=copy]", "raffel_monotonic", "better"),
        ("flagship.parquet", "transduction[rule=copy]", "coverage_eq1", "undecided"),
        ("flagship.parquet", "translation", "luong_local_p", "better"),
        *(
            ("flagship.parquet", "translation", other, "undecided")
            for other in ("dot", "general", "additive", "location_aware", "coverage_eq1")
        ),
        ("fresh_seeds.parquet", "recall", "gated_deltanet", "worse"),
        ("fresh_seeds.parquet", "recall", "gsa", "worse"),
        ("fresh_seeds.parquet", "recall", "dpfp", "equivalent"),
        *(
            ("fresh_seeds.parquet", "recall", other, "undecided")
            for other in ("based", "hedgehog", "performer", "kda")
        ),
        ("fresh_seeds.parquet", "recall", "mqa", "equivalent"),
        ("fresh_seeds.parquet", "recall", "dilated", "worse"),
        ("fresh_seeds.parquet", "recall", "linear_attention", "worse"),
        ("fresh_seeds.parquet", "recall", "rope", "worse"),
        ("fresh_seeds.parquet", "recall", "sliding_window", "worse"),
        ("quick.parquet", "recall", "gated_deltanet", "undecided"),
        ("modern.parquet", "recall", "linear_attention", "undecided"),
    ):
        assert outcome_of(pack, task, variant, "scaled_dot") == wanted, (task, variant)
    words = ("families.parquet", "wikitext2_mini")
    assert outcome_of(*words, "shaw_rpr", "uniform") == "better"
    assert outcome_of(*words, "linear_attention", "uniform") == "undecided"


@pytest.mark.slow
def test_the_gain_of_attention_in_translation_is_as_large_as_the_findings_say():
    gains = {}
    for pack in ("flagship", "families"):
        folder = read_folder(ROOT / readme.PUBLISHED / f"{pack}.parquet")
        for one in folder.comparisons:
            uniform = one.uniform_baseline
            if folder.catalog.task_label(one.task) == "translation" and uniform in one.means:
                gains |= {
                    (pack, one.title, name): found.estimate - one.means[uniform].estimate
                    for name, found in one.means.items()
                    if name not in (uniform, "none_state")
                }
    of_flagship = [gain for (pack, *_), gain in gains.items() if pack == "flagship"]
    assert len(of_flagship) == 7
    assert min(of_flagship) > 10
    of_families = {key: gain for key, gain in gains.items() if key[0] == "families"}
    assert max(of_families, key=of_families.get)[-1] == "bahdanau"
    assert 2.45 < min(of_families.values()) < max(of_families.values()) < 9


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pack", "keys", "faster"),
    [
        ("serving", 256, set()),
        ("serving_gpu", 256, {"gqa", "mqa"}),
        ("serving_gpu", 8192, {"gqa", "mqa"}),
        ("serving_gpu", 32768, {"gqa", "mqa"}),
        ("serving_gpu", 131072, {"gqa", "mqa", "linear_attention"}),
    ],
)
def test_what_the_findings_say_is_faster_is_so(pack, keys, faster):
    folder = read_folder(ROOT / "results" / "published" / f"{pack}.parquet")
    slots = timed_slots(folder)
    lines = slots.lines[places_by_length(main_place(slots), slots)[keys]]
    found = {
        folder.catalog.label(name)
        for name, line in lines.items()
        if STEP in line and line[STEP]["verdict"] == "FAST"
    }
    assert found - {"scaled_dot"} == faster
    assert pack != "serving" or len(lines) == 78, "77 variants and the baseline"


def test_pages_say_how_long_the_networks_of_flagship_train():
    rows = results.load(ROOT / readme.PUBLISHED / readme.FLAGSHIP).rows
    minutes = rows[rows.metric == "train_cpu_s"].groupby("task_name").value.agg(["min", "max"]) / 60
    longest = minutes["max"].max()
    limits = " ".join((ROOT / "docs/limits.md").read_text(encoding="utf-8").split())
    assert f"of CPU time, those of `flagship` up to {longest:.0f} minutes" in limits
    least, most = minutes.loc[minutes["max"].idxmax()]
    assert f"takes {least:.0f} to {most:.0f} minutes of CPU time" in limits
    assert longest < 60, "the page of findings says up to an hour"


def test_limits_count_the_variants_that_were_timed_at_each_length():
    slots = timed_slots(read_folder(ROOT / readme.PUBLISHED / "serving.parquet"))
    places = places_by_length(main_place(slots), slots)
    names = {keys: set(slots.lines[place]) for keys, place in places.items()}
    also = names[8192] & names[256]
    alone = names[8192] - names[256]
    assert names[4096] == names[8192]
    assert sorted(alone) == ["sliding_window[window=512]", "streaming[window=512]"]
    limits = " ".join((ROOT / "docs/limits.md").read_text(encoding="utf-8").split())
    said = f"78 with 256 keys and one row, 77 of them with 1,024, {len(also)} of them with up to"
    assert said in limits
    assert (len(names[256]), len(names[1024])) == (78, 77)


@pytest.mark.slow
def test_cells_of_a_comparison_come_from_one_commit_where_the_page_of_packs_says_so():
    mixed = set()
    for pack in set(PACKS) - {"claims"}:
        run = results.load(ROOT / readme.PUBLISHED / f"{pack}.parquet")
        commits = {name: one["git_revision"] for name, one in run.environments.items()}
        cells = run.cells.assign(commit=run.cells.environment.map(commits))
        counts = cells.groupby(["kind", "task", "backbone", "slot"]).commit.nunique()
        mixed |= {(pack, *key[1:2]) for key, count in counts.items() if count > 1}
    assert mixed == {("flagship", "translation[validate=500]")}


@pytest.mark.slow
def test_pages_count_the_decisions_of_quick_as_the_report_does():
    folder = read_folder(ROOT / "results/published/quick.parquet")
    every, of_baseline, reversal = Counter(), Counter(), Counter()
    for one in tested.tested_comparisons(folder):
        for pair, test in one.primary.items():
            at_edge = test.outcome == "equivalent" and edge(one, pair.variant, pair.reference)
            outcome = "at an edge" if at_edge else test.outcome
            every[outcome] += 1
            if pair.reference == one.baseline:
                of_baseline[outcome] += 1
                if one.title.startswith("transduction[rule=reverse] (cross"):
                    reversal[outcome] += 1
    decided = [
        sum(found[o] for o in ("better", "worse", "equivalent")) for found in (every, of_baseline)
    ]
    said = [
        f"Of the {every.total()} primary hypotheses of `quick`, five seeds decide {decided[0]} "
        f"({decided[0] / every.total():.0%}), {every['undecided']} are undecided, "
        f"and {every['at an edge']} are",
        f"{decided[1]} of {of_baseline.total()} are decided: {of_baseline['better']} better, "
        f"{of_baseline['worse']} worse",
    ]
    limits = " ".join((ROOT / "docs/limits.md").read_text(encoding="utf-8").split())
    for sentence in said:
        assert sentence in limits
    assert f"{reversal['better']} of reversal in recurrent networks" in limits


def test_pages_say_how_often_the_chosen_test_is_wrong_as_decision_23_does():
    lines = (ROOT / "docs/adr/023-decisions.md").read_text(encoding="utf-8").splitlines()
    (head,) = (
        line.split("|") for line in lines if line.startswith("| variants, seeds | procedure")
    )
    chosen = [line.split("|") for line in lines if "| moderated variants |" in line]
    large = [line.split("|") for line in lines if line.startswith(("| 36, ", "| 60, "))]

    def percents(kind: str, of_seeds: str = "") -> list[int]:
        at = head.index(f" {kind} ")
        rows = [(line, at) for line in chosen] + [(line, at - 1) for line in large]
        return [round(100 * float(line[at])) for line, at in rows if line[1].endswith(of_seeds)]

    assert len(percents("skewed")) == 12
    assert set(percents("mixed", "3 ")) == {6, 7}
    assert 6 <= min(percents("skewed")[:6]) <= max(percents("skewed")[:6]) <= 8
    assert max(percents("skewed")) == 10
    assert 35 < max(percents("one fails")) <= 40
    for name in ("docs/limits.md", "docs/statistics.md", "reports/sections/decisions.py"):
        text = (ROOT / name).read_text(encoding="utf-8")
        for share in ("6 to 7%", "6 to 8%", "up to 10%", "up to 40%"):
            assert share in text, name
    for name in ("docs/limits.md", "docs/statistics.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        said = [line for line in text.splitlines() if "up to 40%" in line]
        assert said
        assert len(re.findall(r"better in the others by as much", text)) == len(said), name
    assert "better in the others by as much" in ERRORS


def test_three_in_five_calibrated_rates_lie_at_an_end_of_the_grid():
    choices = [one for name in registry.registrations("task") for one in stored_choices(name)]
    rates = [rate for choice in choices for rate in choice.rates.values()]
    ends = [rate for rate in rates if rate in (min(RATES), max(RATES))]
    assert 0.575 < len(ends) / len(rates) < 0.625, "docs/limits.md says so"


def test_the_readme_counts_the_verdicts_of_the_published_claims():
    page = (ROOT / "reports/published/claims/claims.md").read_text(encoding="utf-8")
    counts = re.search(r"(\d+) supported, (\d+) contradicted.*?, (\d+) undecided(.*)\.", page)
    told = re.search(r"(\d+) supported, (\d+) contradicted.*?, (\d+) undecided(.*)", README)
    assert counts
    assert told
    assert counts.groups()[:3] == told.groups()[:3]
    others = re.search(r"(\d+) not run", counts[4])
    assert not others or f"{others[1]} that have not been run" in told[4]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("column", "pack", "task", "title"),
    [
        (2, "quick.parquet", "recall", "recall (transformer_decoder, layers=1)"),
        (3, "modern.parquet", "induction", "induction"),
    ],
)
def test_fresh_seeds_are_compared_with_the_earlier_ones_as_the_page_says(column, pack, task, title):
    fresh, before = (
        next(
            c
            for c in read_folder(ROOT / readme.PUBLISHED / name).headlines.values()
            if c.title == t
        )
        for name, t in ((readme.FRESH, task), (pack, title))
    )
    new, old = ({line.variant: line.mean.estimate for line in c.ranking} for c in (fresh, before))
    both = [name for name in new if name in old]
    farthest = max(both, key=lambda name: abs(new[name] - old[name]))
    outcomes = Counter(
        (old_test.outcome, fresh.primary[pair].outcome)
        for pair, old_test in before.primary.items()
        if pair in fresh.primary
    )
    same = sum(count for (one, two), count in outcomes.items() if one == two)
    undecided = sum(n for pair, n in outcomes.items() if "undecided" in pair and len({*pair}) == 2)
    correlation = spearmanr([new[name] for name in both], [old[name] for name in both]).statistic
    found = [
        str(len(both)),
        f"{correlation:.2f}",
        f"{abs(new[farthest] - old[farthest]):.2f} (`{farthest}`)",
        str(outcomes.total()),
        str(same),
        str(undecided),
        str(outcomes.total() - same - undecided),
    ]
    text = (ROOT / "docs/measurements.md").read_text(encoding="utf-8")
    section = text.partition("## Recall and induction on other seeds\n")[2].partition("\n## ")[0]
    more = f"also has {len(new) - len(both)} variants on `{task}`"
    assert len(new) == len(both) or more in section
    table = [line.split(" | ") for line in section.splitlines() if line.startswith("| ")]
    assert [line[column - 1].strip(" |") for line in table[2:]] == found


def test_the_findings_count_the_pairs_of_recall_as_calibration_has_chosen_them():
    choice = calibrated_choice(Selector("recall", {}), "quick")
    assert choice is not None
    assert choice.options is not None
    given = choice.options.options
    pairs, most = int(given["pairs"]), int(given["more_pairs"])
    said = f"among {(pairs + most) // 2} and {most} pairs"
    short, long = (
        " ".join((ROOT / name).read_text(encoding="utf-8").split())
        for name in ("README.md", "docs/findings.md")
    )
    assert f"{said} after training with {pairs}" in short
    assert f"trained with {pairs} pairs: share of values {said}" in long


def test_limits_name_the_tasks_whose_validation_reaches_beyond_training():
    text = (ROOT / "docs" / "limits.md").read_text(encoding="utf-8")
    found = re.search(r"ranks by inputs longer than those of training \(([^)]*)\)", text)
    assert found is not None
    named = set(re.findall(r"`(\w+)`", found.group(1)))
    tasks = registry.registrations(TASKS)
    headlines = {name: one.target.headline for name, one in tasks.items()}
    beyond = {name for name, one in headlines.items() if one and one.kind == "beyond_training"}
    assert named == beyond


def test_limits_name_the_claims_that_were_decided_again():
    claims = [entry.target for entry in registry.registrations(CLAIMS).values()]
    limits = " ".join((ROOT / "docs/limits.md").read_text(encoding="utf-8").split())
    anew = [claim for claim in claims if claim.rewritten]
    assert f"Of the claims, {len(anew)} were written anew" in limits
    for claim in claims:
        assert not claim.again or claim.key in limits
    packs = (ROOT / "results/published/README.md").read_text(encoding="utf-8")
    assert sum(claim.again > 0 for claim in claims) == 8
    assert f"eight claims have a second sample, and {len(anew)} were written anew" in packs
    assert "the first samples of eight claims" in packs


def test_the_readme_says_how_many_claims_a_replaced_test_left_open():
    page = (ROOT / "reports/published/claims/claims.md").read_text(encoding="utf-8")
    counts = re.search(r"\*\*53 claims: (\d+) supported, (\d+) contradicted, (\d+) und", page)
    anew = re.search(r"The present ones say: (\d+) supported", page)
    gained = re.search(r"So (\d+) are supported by the present test alone", page)
    assert counts is not None
    assert anew is not None
    assert gained is not None
    supported, contradicted, undecided = counts.groups()
    verdicts = f"{supported} supported, {contradicted} contradicted, {undecided} undecided"
    told = f"{anew[1]} of the {supported} by tests that were written anew"
    told += f", where the earlier tests had not supported {gained[1]} |"
    assert f"{verdicts}; {told}" in README


def test_the_readme_says_how_far_translations_are_above_uniform_attention():
    folder = read_folder(ROOT / readme.PUBLISHED / "flagship.parquet")
    (comparison,) = (one for one in folder.comparisons if one.task.startswith("translation"))
    means = {name: found.estimate for name, found in comparison.means.items()}
    above = [means[name] - means["uniform"] for name in {*means} - {"uniform", "none_state"}]
    assert len(above) == 7
    told = f"by {min(above):.1f} to {max(above):.1f} BLEU in the mean"
    assert told in README


def test_with_eight_words_two_outputs_that_copy_are_ahead_of_plain_attention():
    """The README says so."""
    folder = read_folder(ROOT / readme.PUBLISHED / "quick.parquet")
    (comparison,) = (one for one in folder.comparisons if one.title == "oov_copy")
    parts = comparison.stored.parts("prefix_accuracy", "length")
    means = {name: sum(found.values()) / len(found) for (name, x), found in parts.items() if x == 8}
    ahead = {name for name in means if means[name] > means["scaled_dot"]}
    assert {name.partition("[")[0] for name in ahead} == {"mha_roles", "copynet"}
    assert not comparison.beats_the_rest, "none is above the dictionary in every seed"


@pytest.mark.slow
def test_what_the_findings_claim_is_what_the_tests_of_the_run_show():
    unknown, offset = (ranks_of("quick.parquet", task) for task in ("oov_copy", "offset"))
    assert unknown["copynet"] < unknown["scaled_dot"] < unknown["uniform"]
    for places in ("sinusoid", "rope"):
        assert offset[places] < offset["scaled_dot"] == offset["uniform"]
    copying = ranks_of("quick.parquet", "transduction[rule=copy]")
    for forward in ("ntm_addressing", "location_aware", "ssnt", "mma_h"):
        assert copying[forward] < copying["scaled_dot"]
    recall = ranks_of("quick.parquet", "recall")
    for forgets in ("linear_attention", "gated_deltanet", "sliding_window"):
        assert recall["scaled_dot"] < recall[forgets]


@pytest.mark.slow
def test_what_is_said_of_the_modern_half_is_what_the_tests_of_the_run_show():
    state = ranks_of("modern.parquet", "composition[group=s5,moves=swaps]")
    for follows in ("deltanet[reach=2.0]", "gated_deltaproduct"):
        assert state[follows] < min(state["deltanet"], state["scaled_dot"])
    copying = ranks_of("modern.parquet", "causal_copy")
    for copies in ("nope", "alibi", "fox"):
        assert copying[copies] < min(copying["rope"], copying["gated_deltanet"])
    words = ranks_of("modern.parquet", "wikitext2_mini")
    for ordered in ("gated_deltanet", "rope", "alibi"):
        assert words[ordered] < min(words["scaled_dot"], words["uniform"])
    folder = read_folder(ROOT / readme.PUBLISHED / "modern.parquet")
    texts = {one.catalog.task_label(one.task): one for one in folder.comparisons}
    above = above_uniform(texts["wikitext2_mini"])
    assert sorted(above) == ["alibi", "gated_deltanet", "mamba2_ssd", "mla", "rope"]
    trigrams = texts["wikitext2_mini"].without["trigram, interpolated"]
    apart = set()
    for name, scores in texts["wikitext2_mini"].scores.items():
        found = t_interval([value - trigrams[seed] for seed, value in scores.items()])
        apart |= {name} if name in above and not found.contains(0) else set()
    assert apart == {"gated_deltanet"}
    characters = texts["stdlib_code"]
    trigrams = characters.without["trigram, interpolated"]
    for scores in characters.scores.values():
        assert all(scores[seed] > trigrams[seed] for seed in scores)


def sections_of(text):
    found = re.split(r"^### `(.+)`$", text, flags=re.MULTILINE)[1:]
    return dict(zip(found[::2], found[1::2], strict=True))


@pytest.fixture(scope="module")
def variants_text():
    return variants_page()


def test_the_page_of_variants_lists_each_variant_once_and_says_what_the_code_says(variants_text):
    sections = sections_of(variants_text)
    assert sorted(sections) == sorted(registry.listed_variants())
    for name in registry.listed_variants():
        about = describe_variant(name, resolve(name))
        for said in (about.title, about.paper, about.where, about.deviations):
            assert with_code(said) in sections[name], name
        assert f"`{about.default_task}`" in sections[name] or not about.default_task


def test_the_page_of_tasks_lists_each_task_once_by_use_of_attention(monkeypatch):
    monkeypatch.setattr("bench.docs.tasks._made", lambda registered, data_dir: [])
    text = tasks_page()
    entries = [one for found in tasks_by_family().values() for one in found]
    assert list(sections_of(text)) == [registered.name for registered in entries]
    heads = re.findall(r"^## (.+)$", text, flags=re.MULTILINE)
    assert heads == [name[:1].upper() + name[1:] for name in tasks_by_family()]
    for registered in entries:
        assert all(line in text for line in facts_of(registered))


def test_examples_are_shown_of_numbers_and_of_data_that_are_not_here(tmp_path, monkeypatch):
    monkeypatch.setenv("BENCH_CACHE_DIR", str(tmp_path))
    shown = {
        name: [line for line in _made(registry.find("task", name), tmp_path) if "Example" in line]
        for name in ("adding", "stsb", "translation")
    }
    assert all(line.startswith(NEEDS_DATA) for lines in shown.values() for line in lines)
    assert re.fullmatch(r"\*\*Example\.\*\* `-?0\.\d+, -?0\.\d+` → `0\.\d+`", *shown["adding"])
    assert "a man is playing a guitar ." in shown["stsb"][0]
    assert shown["stsb"][0].endswith(" → `3.8`")
    assert not shown["translation"], "its example is made where its data are"


def test_the_page_of_commands_has_every_command_with_every_option():
    text = commands_page(cli)
    for name in ("run", "ablate", "study", "verify", "report", "data fetch"):
        assert f"## `{name}`" in text
    assert "`--keep-models`" in text
    assert "`--first-seed INTEGER`" in text


def test_the_page_of_columns_has_every_column_field_and_metric():
    text = columns_page()
    for name in (
        *COLUMNS,
        *documented_fields(Row),
        "forward_time_ms",
        "token_accuracy",
        "peak_memory_bytes",
    ):
        assert f"`{name}`" in text
    assert documented_fields(Row)["repeat"] == "Timing round, or 0."


def test_links_of_a_page_lead_to_pages_of_the_site_or_become_text():
    known = {"docs/a.md": "a.md", "CONTRIBUTING.md": "contributing.md", "docs/adr/1.md": "adr/1.md"}

    def made(text, source="docs/a.md"):
        return linked(text, source, known)

    assert made("[x](../CONTRIBUTING.md#how)") == "[x](contributing.md#how)"
    assert made("[x](../a.md)", "docs/adr/1.md") == "[x](../a.md)"
    assert made("[x](https://example.org) [y](#here)") == "[x](https://example.org) [y](#here)"
    assert made("[x](../bench/api/cell.py)") == "x (`bench/api/cell.py` in the repository)"
    assert made("[docs](docs/adr/1.md)", "CONTRIBUTING.md") == "[docs](adr/1.md)"
    assert made("![plot](images/plot.svg)") == "![plot](images/plot.svg)"


def test_what_is_cited_is_this_version():
    cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {bench.__version__}\n" in cited
    assert f"version = {{{bench.__version__}}}" in (ROOT / "README.md").read_text(encoding="utf-8")
