"""Plug-ins that end the process in which they are imported."""

import pytest

from bench.api.errors import BenchError
from bench.cli.registered import load_registry


@pytest.mark.parametrize(
    ("deed", "how"),
    [
        ("os._exit(0)", r"\(exit code 0\)"),
        ("os.kill(os.getpid(), 9)", r"\(SIGKILL\)"),
        ("os.kill(os.getpid(), 40)", r"\(signal 40\)"),
    ],
)
def test_a_plug_in_that_ends_the_process_is_one_sentence(tmp_path, fresh_registry, deed, how):
    path = tmp_path / "deadly.py"
    path.write_text(f"import os\n{deed}\n")
    with pytest.raises(BenchError, match=rf"deadly.py ends the process .* {how}; mend the file"):
        load_registry((str(path),))


def test_what_the_trial_prints_and_raises_comes_once(tmp_path, fresh_registry, capfd):
    path = tmp_path / "loud.py"
    path.write_text("print('spoken')\n1 / 0\n")
    with pytest.raises(BenchError, match="ZeroDivisionError"):
        load_registry((str(path),))
    assert capfd.readouterr().err.count("spoken") == 1
