from fractions import Fraction

import pytest

from bench.api import head_sizes
from bench.api.head_sizes import declare_multiples, multiples_of


def test_multiples_are_those_that_were_declared_and_cannot_be_changed(monkeypatch):
    monkeypatch.setattr(head_sizes, "_MULTIPLES", {})
    declare_multiples("some", width=Fraction(3, 2))
    assert multiples_of("some") == {"width": Fraction(3, 2)}
    assert multiples_of("other") == {}
    with pytest.raises(TypeError):
        multiples_of("some")["width"] = Fraction(1)
