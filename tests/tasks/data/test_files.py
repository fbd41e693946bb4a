"""A file of the data directory is read whole and exactly, or refused in one sentence."""

import gzip
import hashlib
from pathlib import Path

import pytest

from bench.api.errors import DataDamaged, DataUnavailable
from tasks.data.files import read_parallel, read_text


def refusal(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    with pytest.raises(DataDamaged) as caught:
        read_text(path)
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith(".")
    assert str(path) in message
    return message


def test_lines_are_cut_at_line_feeds_alone(tmp_path):
    path = tmp_path / "text.gz"
    raw = gzip.compress("a\x85b\u2028c\x0cd\x1ce\rf\nsecond, no end".encode())
    path.write_bytes(raw)
    file = read_text(path)
    assert file.lines == ("a\x85b\u2028c\x0cd\x1ce\rf", "second, no end")
    assert file.sha256 == hashlib.sha256(raw).hexdigest()


def test_a_plain_file_needs_no_gzip(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("one\ntwo\n", encoding="utf-8")
    assert read_text(path).lines == ("one", "two")


def test_a_byte_order_mark_is_not_text(tmp_path):
    path = tmp_path / "text.gz"
    path.write_bytes(gzip.compress("\ufeffein Hund\n".encode()))
    assert read_text(path).lines == ("ein Hund",)


def test_a_truncated_file_tells_how_far_it_is_whole(tmp_path):
    raw = gzip.compress("".join(f"line {n * 7919 % 9973}\n" for n in range(2000)).encode())
    assert "ends too early, after line" in refusal(tmp_path / "cut.gz", raw[: len(raw) // 2])
    assert "ends too early, after line 2000" in refusal(tmp_path / "tail.gz", raw[:-4])
    assert "ends too early, after line 0" in refusal(tmp_path / "head.gz", raw[:6])


def test_a_flipped_byte_is_damage(tmp_path):
    raw = bytearray(gzip.compress("".join(f"line {n}\n" for n in range(2000)).encode()))
    raw[len(raw) // 2] ^= 0xFF
    assert "damaged after line" in refusal(tmp_path / "flipped.gz", bytes(raw))


def test_a_wrong_check_sum_is_damage(tmp_path):
    raw = bytearray(gzip.compress(b"one\ntwo\n", mtime=0))
    raw[-6] ^= 0xFF
    assert "damaged after line" in refusal(tmp_path / "sum.gz", bytes(raw))


def test_text_under_a_gzip_name_is_damage(tmp_path):
    assert "damaged after line 0" in refusal(tmp_path / "plain.gz", b"<html>404</html>\n")


@pytest.mark.parametrize(
    "content", [b"", gzip.compress(b"", mtime=0), gzip.compress(b"\xef\xbb\xbf\n\n", mtime=0)]
)
def test_an_empty_file_is_damage(tmp_path, content):
    assert "the file is empty" in refusal(tmp_path / "empty.gz", content)


def test_blank_rows_are_counted_and_located(tmp_path):
    message = refusal(tmp_path / "blank.gz", gzip.compress(b"one\n \ntwo\n\n", mtime=0))
    assert "2 blank rows, the first at line 2" in message
    assert read_text(tmp_path / "blank.gz", allow_blank=True).lines == ("one", " ", "two", "")


def test_wrong_encoding_names_the_line(tmp_path):
    latin = gzip.compress("gut\nschön\n".encode("latin-1"))
    assert "line 2 is not UTF-8 (byte 0xf6)" in refusal(tmp_path / "latin.gz", latin)
    utf16 = gzip.compress("gut\n".encode("utf-16"))
    assert "line 1 is not UTF-8 (UTF-16)" in refusal(tmp_path / "utf16.gz", utf16)


def test_carriage_returns_are_refused(tmp_path):
    message = refusal(tmp_path / "windows.txt", b"one\ntwo\r\n")
    assert "line 2 ends in a carriage return" in message


def test_misaligned_files_are_refused_with_both_counts(tmp_path):
    paths = {"de": tmp_path / "x.de", "en": tmp_path / "x.en"}
    paths["de"].write_text("eins\nzwei\n", encoding="utf-8")
    paths["en"].write_text("one\ntwo\nthree\n", encoding="utf-8")
    with pytest.raises(DataDamaged, match=r"from line 3 on.*x\.de has 2.*x\.en has 3 lines"):
        read_parallel(paths)


def test_a_missing_file_is_unavailable(tmp_path):
    with pytest.raises(DataUnavailable, match=r"x\.gz is missing"):
        read_text(tmp_path / "x.gz")
    with pytest.raises(DataUnavailable, match="cannot be read"):
        read_text(tmp_path)
