"""Which names are offered in the place of a wrong one."""

import pytest

from bench.api.errors import UnknownName, suggestion

KNOWN = ["cope", "copynet", "lead_copy", "conv_copy", "causal_copy", "padding_invariance", "run"]


@pytest.mark.parametrize(
    ("name", "offered"),
    [
        ("copy", "; did you mean 'copynet', 'conv_copy' or 'lead_copy'?"),
        ("padding", "; did you mean 'padding_invariance'?"),
        ("Padding", "; did you mean 'padding_invariance'?"),
        ("invariance", "; did you mean 'padding_invariance'?"),
        ("copnet", "; did you mean 'copynet'?"),
        ("rnu", "; did you mean 'run'?"),
        ("ru", "; did you mean 'run'?"),
        ("ad", ";"),
        ("nothing", ";"),
    ],
)
def test_longer_names_are_offered_before_those_that_are_written_alike(name, offered):
    assert suggestion(name, KNOWN) == offered


def test_a_long_text_is_compared_and_quoted_in_part():
    said = str(UnknownName.among("task", "copy" * 5000, KNOWN))
    assert len(said) < 500
    assert "(20000 characters)" in said
