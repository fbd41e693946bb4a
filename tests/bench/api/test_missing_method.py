"""What is said of a hook that a class does not have."""

import inspect

import pytest

from bench.api import (
    backbone,
    decoder,
    heads,
    history,
    loss,
    mask,
    normalizer,
    output,
    position,
    probe,
    readout,
    score,
    search,
    task,
)
from bench.api.missing_method import missing_method

CONTRACTS = [
    backbone.Backbone,
    decoder.Decoder,
    heads.Heads,
    history.History,
    loss.JointLoss,
    loss.Loss,
    mask.Mask,
    normalizer.Normalizer,
    output.Output,
    position.Position,
    probe.Probe,
    readout.Readout,
    score.Score,
    search.Search,
    task.Task,
]


def hooks(contract):
    """Names of methods that a class of this axis may have to write."""
    for name, value in vars(contract).items():
        if inspect.isfunction(value) and (
            "raise NotImplementedError" in inspect.getsource(value)
            or getattr(value, "__isabstractmethod__", False)
        ):
            yield name


HOOKS = [(contract, name) for contract in CONTRACTS for name in hooks(contract)]


def raised_by(call):
    with pytest.raises(NotImplementedError) as caught:
        call()
    return caught.value


@pytest.mark.parametrize(
    ("contract", "name"), [pytest.param(*one, id=f"{one[0].__name__}-{one[1]}") for one in HOOKS]
)
def test_every_hook_that_nobody_wrote_is_named_with_its_class(contract, name):
    mine = object.__new__(type("Mine", (contract,), {}))
    hook = inspect.unwrap(vars(contract)[name])
    rest = [None] * (sum(one.default is one.empty for one in _plain(hook)) - 1)
    error = raised_by(lambda: hook(mine, *rest))
    file = f"bench/api/{contract.__module__.rpartition('.')[2]}.py"
    assert missing_method(error) == f"Mine has no method `{name}`; write it (see {file})"


def _plain(hook):
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [one for one in inspect.signature(hook).parameters.values() if one.kind in kinds]


def test_all_axes_have_a_hook():
    assert {contract for contract, _ in HOOKS} == {*CONTRACTS}


def test_a_name_that_is_nearly_the_right_one_is_shown():
    class Score:
        def energy(self):
            raise NotImplementedError

    class Mine(Score):
        def enrgy(self):
            return 1

        def other(self):
            return 2

    sentence = "Mine has no method `energy`, only `enrgy`; write it (see "
    assert missing_method(raised_by(Mine().energy)).startswith(sentence)


def test_what_was_raised_on_purpose_says_it_itself():
    class Mine:
        def energy(self):
            raise NotImplementedError("no kernel for bfloat16")

    def alone():
        raise NotImplementedError

    assert missing_method(raised_by(Mine().energy)) == ""
    assert missing_method(raised_by(alone)) == ""
    assert missing_method(NotImplementedError()) == ""
    assert missing_method(ValueError()) == ""
