"""Names of implementations."""

import pytest

import variants
from bench.api.errors import Refused, UnknownName
from bench.api.impl import check_code, impl_of
from bench.api.registry import registrations
from bench.api.variant import MECHANISMS, Variant


@pytest.mark.parametrize("name", ["triton", "flex", "jit", "reference"])
def test_an_implementation_that_nobody_wrote_is_refused_and_never_replaced(name):
    with pytest.raises(UnknownName, match=f"no impl named {name!r}"):
        impl_of(name)


@pytest.mark.parametrize("impl", ["auto", "eager"])
def test_every_mechanism_has_the_usual_code_and_the_plain_one(impl):
    variants.load_all()
    for name, found in registrations(MECHANISMS).items():
        check_code(name, impl, found.target.codes)


def test_a_mechanism_that_declares_nothing_has_no_fused_code():
    with pytest.raises(Refused, match=r"^mine has no impl=sdpa; use auto or eager\.$"):
        check_code("mine", "sdpa", Variant.codes)


@pytest.mark.parametrize("codes", [("auto", "eager"), ("auto", "eager", "sdpa")])
def test_compiled_code_is_nothing_that_is_built(codes):
    with pytest.raises(Refused, match="build with impl='eager' and compile it yourself"):
        check_code("mine", "compiled", codes)
