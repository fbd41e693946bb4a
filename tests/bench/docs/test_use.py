"""Every variant can be built and asked as the page of variants says."""

import doctest
import re

import pytest
import torch

import variants
from bench.api import registry
from bench.docs.use import use_of

variants.load_all()


@pytest.mark.parametrize("name", registry.listed_variants())
def test_the_lines_of_a_variant_run_as_they_are_printed(name):
    session = use_of(name)
    assert f'variants.build("{name}"' in session
    known = {"torch": torch, "variants": variants}
    found = doctest.DocTestParser().get_doctest(session, known, name, None, 0)
    assert doctest.DocTestRunner(verbose=False).run(found).failed == 0


def test_a_call_hands_over_what_the_variant_needs():
    assert "tokens=torch" in use_of("mi_coverage")
    assert "attention.variant.embed(torch" in use_of("sinusoid")
    assert "embed" not in use_of("rope")
    assert re.search(r'extras=\{"relation": .*\}', use_of("relation_aware"))
