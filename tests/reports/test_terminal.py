"""What a run that only timed prints at its end."""

import pytest
from synthetic import BASE, LENGTHS
from synthetic_run import speed_records, write_run

from reports.folder import read_folder
from reports.terminal import result_text


@pytest.fixture
def text(tmp_path):
    return result_text(read_folder(write_run(tmp_path / "run", records=speed_records())))


def rows_of(text):
    return [line.split() for line in text.partition("\n\n")[0].splitlines()[3:]]


def test_a_run_that_only_timed_prints_each_variant_at_its_longest_length(text):
    first, *others = rows_of(text)
    assert first[:3] == [BASE.partition("[")[0], "(baseline)", str(LENGTHS[-1])]
    assert "AMBIGUOUS" not in first, "the baseline against itself has no verdict"
    lengths = {name: int(length) for name, length, *_ in others}
    assert lengths.pop("lstmn") == LENGTHS[-2], "it has no time at the longest"
    assert set(lengths.values()) == {LENGTHS[-1]}


def test_variants_stand_in_the_order_of_their_forward_time(text):
    times = [float(row[2]) for row in rows_of(text)[1:]]
    assert times == sorted(times)
