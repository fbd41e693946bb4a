"""The table of slots: growth of the state, what is missing, and who is left out."""

from types import SimpleNamespace

import pandas as pd
import pytest

from reports.blocks import Paragraph
from reports.catalog import Catalog
from reports.sections.slots import main_slot_section, slots_section, slots_sentence
from reports.sections.speed import _of_stacks
from reports.sections.timed_slots import PEAK, STEP_PEAK, Slots, main_place

NO_VALUE = "\N{EM DASH}"


def line(variant, length, metric, median, ratio=1.0, **more):
    place = {"dtype": "float32", "device": "cpu", "impl": "auto", "slot": "causal"}
    place |= {"protocol": "rounds"}
    return {
        **place,
        "shape": "attend[batch=1,heads=8,place=slot,width=64]",
        "variant": variant,
        "length": float(length),
        "metric": metric,
        "median": float(median),
        "ratio": ratio,
        "ratio_low": ratio,
        "ratio_high": ratio,
        "aa_half_width": 0.1,
        "rounds": 16 if length < 1024 else 3,
        **more,
    }


def lines(variant, states, verdict="FAST"):
    found = []
    for length, state in states.items():
        found += [
            line(variant, length, "prefill_tokens_per_s", 1000),
            line(variant, length, "decode_tokens_per_s", 50, 2.0),
            line(variant, length, "decode_step_time_ms", 20, 0.5, verdict=verdict),
            line(variant, length, "state_bytes", state),
            line(variant, length, PEAK, 3e6),
            line(variant, length, STEP_PEAK, 7e3),
            *(line(variant, length, f"{name}_count", 8) for name in ("heads", "key_heads")),
            *(line(variant, length, f"{name}_width_count", 64) for name in ("key", "value")),
        ]
    return found


NAMES = {"baseline": "cache", "ranks": True, "variants": {}, "tasks": {}, "metrics": {}}


def folder(found, outcomes=(), certificates=None):
    return SimpleNamespace(
        speed=pd.DataFrame(found),
        certificates=certificates or {},
        catalog=Catalog.of(NAMES),
        of_kind=lambda kind: [one for one in outcomes if one.record.status == "ok"],
        outcomes=list(outcomes),
        comparisons=(),
    )


def texts(table):
    return {row[0].text: [cell.text for cell in row] for row in table.rows}


FOUND = lines("cache", {256: 256e3, 1024: 1024e3}) + lines("window", {256: 200e3, 1024: 300e3})


def test_what_a_token_adds_is_the_growth_to_the_shorter_length_or_else_the_longer_one():
    section = slots_section(folder([*FOUND, *lines("window", {4096: 300e3})]))
    short, middle, long = (texts(one) for one in section.blocks[1:])
    assert [one["window"][5] for one in (short, middle, long)] == ["130", "130", "0"]
    assert (short["cache"][5], middle["cache"][5]) == ("1,000", "1,000")
    assert short["cache"][-1] == "8; 8 × 64 + 64"


def test_a_note_says_whose_numbers_are_those_of_a_layer_in_a_stack():
    found = [*FOUND, line("window", 256, "layers_count", 4)]
    first, second = slots_section(folder(found)).blocks[1:]
    assert first.notes[-1].startswith("window: layers read each other, so a stack of 4 layers")
    assert not [note for note in second.notes if "stack" in note]


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_times_of_a_gpu_say_that_launches_are_left_out(device):
    found = [{**one, "device": device} for one in lines("cache", {256: 100, 1024: 400})]
    for section in (slots_section(folder(found)), main_slot_section(folder(found))):
        said = " ".join(block.text for block in section.blocks if isinstance(block, Paragraph))
        assert ("launch the kernels is left out" in said) == (device == "cuda")


def test_a_peak_over_lengths_says_whose_it_is_of_a_stack():
    found = [*lines("cache", {256: 100}), line("deep", 256, "layers_count", 4)]
    group = pd.DataFrame([line("deep", 256, PEAK, 4e6), line("cache", 256, PEAK, 3e6)])
    (said,) = _of_stacks(folder(found), group)
    assert said.startswith("deep: layers read each other, so a stack of 4 layers was timed.")
    assert _of_stacks(folder(found), group[1:]) == ()


def test_one_length_tells_no_growth():
    (table,) = slots_section(folder(lines("cache", {256: 1.0}))).blocks[1:]
    assert texts(table)["cache"][5] == NO_VALUE
    assert "one length only" in table.rows[0][5].help


def test_the_baseline_comes_first_and_others_by_prefill():
    found = [*lines("window", {8: 1.0}), *lines("cache", {8: 1.0})]
    found.append(line("quick", 8, "prefill_tokens_per_s", 9000))
    (table,) = slots_section(folder(found)).blocks[1:]
    assert list(texts(table)) == ["cache", "quick", "window"]
    assert texts(table)["quick"][3:] == [NO_VALUE] * 8


def test_a_run_that_measured_no_memory_of_a_step_has_no_column_of_it():
    heads = []
    for found in (FOUND, [one for one in FOUND if one["metric"] != STEP_PEAK]):
        table = slots_section(folder(found)).blocks[1]
        heads.append([column.title for column in table.columns])
        assert {len(row) for row in table.rows} == {len(table.columns)}
    assert [title for title in heads[0] if title not in heads[1]] == ["Peak, a step"]


def test_a_refused_cell_stands_below_the_table_of_its_place_alone():
    def outcome(length):
        cell = SimpleNamespace(
            kind="speed",
            variant="slow",
            task=f"attend[batch=1,heads=8,length={length},place=slot,width=64]",
            dtype="float32",
            device="cpu",
            impl="auto",
            slot="causal",
            protocol="rounds",
        )
        record = SimpleNamespace(status="refused", detail="reading would take about 9 s.")
        return SimpleNamespace(cell=cell, record=record, lost=())

    first, second = slots_section(folder(FOUND, [outcome(1024)])).blocks[1:]
    assert len(first.notes) == 1
    assert second.notes[1:] == ("slow: refused, reading would take about 9 s.",)


def test_attention_beneath_its_heads_and_red_certificates_have_no_line():
    beneath = [line("cache", 8, "forward_time_ms", 1, shape="attend[heads=8]")]
    assert slots_section(folder(beneath)) is None
    nothing = folder(beneath)
    nothing.speed = nothing.speed[:0]
    assert slots_section(nothing) is None
    red = {"failed": {"causality": "leaks"}, "passed": [], "skipped": {}, "expected": []}
    found = slots_section(folder(FOUND, certificates={"window": red}))
    assert [list(texts(one)) for one in found.blocks[1:]] == [["cache"], ["cache"]]


@pytest.mark.parametrize("batch", ["", "batch=1,"])
def test_the_title_says_what_was_timed(batch):
    shape = f"attend[{batch}heads=8,place=slot,width=64]"
    (table,) = slots_section(folder([line("cache", 4096, PEAK, 1, shape=shape)])).blocks[1:]
    rows = "1 row" if batch else "2 rows"
    assert table.title == f"{rows} of 4,096 tokens, 8 heads of width 64, float32 on cpu"


def test_a_run_that_trained_nothing_shows_long_caches_first_and_says_who_is_faster():
    section = main_slot_section(folder(FOUND))
    table, lengths, prompts = section.blocks[1:]
    assert section.group == "summary"
    assert table.title.startswith("1 row of 1,024 tokens")
    assert [column.title for column in lengths.columns] == ["Variant", "256", "1,024"]
    rows = [[cell.text for cell in row] for row in lengths.rows]
    assert rows == [["A/A noise", "10%", "10%"], ["Rounds", "16", "3"], ["window", "2.00", "2.00"]]
    assert "by keys in the cache" in lengths.title
    assert prompts.title.startswith("Tokens of a prompt per second against cache")
    assert [cell.text for cell in prompts.rows[2]] == ["window", "1.00", "1.00"]
    assert {lengths.key, prompts.key} == {"decoding-over-lengths", "prompts-over-lengths"}
    told = slots_sentence(folder(FOUND))
    assert told.startswith(
        "With 1,024 keys in the cache of one layer (1 row, float32 on cpu), 1 of 1 variant decodes"
    )
    assert told.endswith(
        "faster than cache by more than twice the A/A noise. Fastest: window (2.00×, interval 2.00 "
        "to 2.00). With 256 keys 1 of 1 is faster (window). The A/A noise is how far the interval "
        "of the same code, timed twice, reaches away from equal speed: up to 10%."
    )
    assert (
        slots_sentence(folder([line("cache", 8, "forward_time_ms", 1, shape="attend[heads=8]")]))
        == ""
    )


def test_the_longest_cache_with_many_variants_is_the_main_place():
    counts = {256: 10, 8192: 4, 32768: 3}
    lines = {(keys,): {f"v{at}": {} for at in range(n)} for keys, n in counts.items()}
    assert main_place(Slots(lines)) == (8192,)
    assert main_place(Slots({})) is None


def test_a_run_with_scores_keeps_its_times_among_the_details():
    trained = folder(FOUND)
    trained.comparisons = (object(),)
    assert main_slot_section(trained) is None


def test_who_is_faster_follows_the_verdicts_and_not_the_intervals():
    found = lines("cache", {8: 1.0}, "AMBIGUOUS")
    for name, verdict in (("quick", "FAST"), ("noisy", "AMBIGUOUS"), ("heavy", "SLOW")):
        found += lines(name, {8: 1.0}, verdict)
    told = slots_sentence(folder(found))
    assert (
        "1 of 3 variants decode faster than cache by more than twice the A/A noise and 1 slower; "
        "1 is" in told
    )
    nothing = folder(found)
    nothing.catalog.ranks = False
    assert slots_sentence(nothing) == ""


def test_a_table_tells_the_largest_noise_of_its_processes():
    found = [
        *lines("cache", {8: 1.0}),
        *({**one, "aa_half_width": 0.45} for one in lines("window", {8: 1.0})),
        *({**one, "aa_half_width": float("nan")} for one in lines("other", {8: 1.0})),
    ]
    (table,) = slots_section(folder(found)).blocks[1:]
    assert table.notes[0].startswith("A/A noise, the largest of all processes: ")
    assert "decode 45%" in table.notes[0]
    unknown = [{**one, "aa_half_width": float("nan")} for one in lines("cache", {8: 1.0})]
    (silent,) = slots_section(folder(unknown)).blocks[1:]
    assert not any("A/A noise" in note for note in silent.notes)


def test_codes_and_protocols_have_tables_of_their_own():
    usual = lines("cache", {8: 1.0})
    (table,) = slots_section(folder(usual)).blocks[1:]
    assert "impl" not in table.title
    fused = [{**one, "impl": "sdpa"} for one in usual]
    long = [{**one, "protocol": "rounds[count=20]"} for one in usual]
    titles = [one.title for one in slots_section(folder([*usual, *fused, *long])).blocks[1:]]
    ends = ("impl=auto, rounds", "impl=auto, rounds[count=20]", "impl=sdpa")
    assert [title.partition("on cpu, ")[2] for title in titles] == list(ends)
