"""A run of slots from the command line to its table and its pack."""

import signal
import sys
from dataclasses import replace

import pytest

from bench.cli import main as command_line
from bench.cli.execution import _compared
from bench.cli.run_options import RunOptions
from bench.running.plan import plan
from reports.folder import read_folder
from reports.render import document

COMMON = ("--preset", "smoke", "--no-quality", "--no-verify")
HEADS = {"scaled_dot": "8; 8 × 8 + 8", "gqa": "8; 4 × 8 + 8", "mla": "8; 1 × 36 + 32"}


@pytest.fixture
def bench(monkeypatch, capsys):
    """A command in this process, which must end well."""
    handler = signal.getsignal(signal.SIGTERM)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["bench", *map(str, arguments)])
        code: object = 0
        try:
            command_line.main()
        except SystemExit as left:
            code = left.code
        assert not code, capsys.readouterr().err

    yield run
    signal.signal(signal.SIGTERM, handler)


def tables(path):
    sections = document(read_folder(path)).sections
    (section,) = [one for one in sections if one.key == "slots"]
    return section.blocks[1:]


@pytest.mark.slow
def test_a_run_of_slots_has_a_table_a_length_and_a_pack(bench, tmp_path):
    out, pack = tmp_path / "serving", tmp_path / "serving.parquet"
    names = "scaled_dot,gqa,mla,retnet"
    bench("run", "--variants", names, "--shape", "slot,B=1,H=8,L=32+64,E=8", *COMMON, "--out", out)
    found = tables(out)
    assert [one.title.partition(",")[0] for one in found] == [
        "1 row of 32 tokens",
        "1 row of 64 tokens",
    ]
    for table in found:
        lines = {line[0].text: [cell.text for cell in line] for line in table.rows}
        assert {name: lines[name][-1] for name in HEADS} == HEADS
        added = {name: line[5] for name, line in lines.items()}
        # float32: 2 n_h d_h, 2 n_g d_h, 9/2 d_h numbers a token, and none
        assert added == {"scaled_dot": "512", "gqa": "256", "mla": "144", "retnet": "0"}
        assert all("\N{EM DASH}" not in line for line in lines.values())
    bench("report", out, "--publish", "--out", tmp_path / "published", "--pack", pack)
    assert [one.rows for one in tables(pack)] == [one.rows for one in found]
    assert "A token adds" in (tmp_path / "published" / "details.md").read_text(encoding="utf-8")


def test_a_plan_knows_that_a_gpu_is_faster_than_a_core():
    asked = RunOptions(
        variants="mha,gqa", preset="quick", quality=False, shape=("slot,B=64,L=8192,H=8,E=64",)
    )
    # a processor refuses these sizes at once, and a smaller length it does
    cells = {device: plan(replace(asked, device=device)).speed for device in ("cpu", "cuda")}
    assert len(cells["cuda"]) == 3
    assert sum(one.seconds for one in cells["cuda"]) < 120
    far = replace(asked, shape=("slot,B=1,L=8192,H=8,E=64",))
    slow, fast = (
        sum(one.seconds for one in plan(replace(far, device=device, minutes=999)).speed)
        for device in ("cpu", "cuda")
    )
    assert slow > 5 * fast


@pytest.mark.parametrize(
    ("shape", "compared"),
    [
        ("slot,B=64,H=8,L=131072,E=64", {(64, 131072)}),
        ("serving", {(1, 256), (1, 1024), (1, 4096), (1, 8192), (8, 256), (8, 1024)}),
        ("serving_long", set()),
    ],
)
def test_a_certificate_calls_no_slot_that_may_be_refused_for_its_size(shape, compared):
    asked = RunOptions(variants="gqa", preset="smoke", quality=False, shape=(shape,), minutes=999)
    found = _compared(asked, plan(asked))
    shapes = [shape for on in found if on is not None for shape in on.shapes]
    assert {(one.batch, one.length) for one in shapes} == compared


def test_a_variant_is_compared_at_the_shapes_at_which_it_is_timed():
    asked = RunOptions(
        variants="additive,linear_attention", preset="standard", quality=False, dtype="bfloat16"
    )
    found = _compared(asked, plan(asked))
    longest = {
        spec.name: max(shape.length for shape in on.shapes)
        for on, specs in found.items()
        for spec in specs
    }
    assert longest == {"additive": 4096, "linear_attention": 16384, "scaled_dot": 16384}
    assert {on.rounds.most_mb for on in found} == {2000.0}, "and where timing refuses nothing"
