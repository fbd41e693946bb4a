"""The command line in this process, and a run that has finished."""

import signal
import sys

import pytest

from bench.cli import main as command_line
from tests.bench.cli.command_lines import SMOKE


@pytest.fixture
def call(monkeypatch, capsys, fresh_registry):
    """`call(*arguments)` -> (exit code, standard output, standard error), in this process."""
    handlers = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)}

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["bench", *map(str, arguments)])
        capsys.readouterr()
        try:
            command_line.main()
            code = 0
        except SystemExit as left:
            code = left.code or 0
        said = capsys.readouterr()
        return code, said.out, said.err

    yield run
    for number, handler in handlers.items():  # a command that was stopped ignores them
        signal.signal(number, handler)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A small finished run that tests may copy."""
    folder = tmp_path_factory.mktemp("finished") / "run"
    arguments = ["run", "--variants", "dot", *SMOKE, "--out", str(folder)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["bench", *arguments])
        with pytest.raises(SystemExit) as left:
            command_line.main()
    assert left.value.code == 0
    return folder
