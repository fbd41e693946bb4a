import pytest
import torch

import variants
from bench.api.errors import InvalidConfig


def slot(options="", seed=0, **place):
    torch.manual_seed(seed)
    given = {"dim": 8, "source_dim": 6, "regime": "cross", **place}
    return variants.build(
        f"scaled_dot[head=roles[heads=4{options and chr(44)}{options}]]", **given
    ).double()


def attend(built, x, source):
    memory = built.prepare(source)
    return built.attend(x, memory, built.start(memory, x))


@pytest.fixture
def drawn():
    rng = torch.Generator().manual_seed(1)
    return (
        torch.randn(2, 3, 8, generator=rng, dtype=torch.float64),
        torch.randn(2, 5, 6, generator=rng, dtype=torch.float64),
    )


@pytest.mark.parametrize("pointing", [1, 2])
def test_values_of_pointing_heads_are_read_by_nobody_but_their_weights_are_there(pointing, drawn):
    built = slot(f"pointing={pointing}")
    context, attended = attend(built, *drawn)
    assert context.shape == (2, 3, 8)
    assert attended.weights.shape == (2, 4, 3, 5)
    context.square().sum().backward()
    by_head = built.heads.to_value.weight.grad.unflatten(0, (4, 2)).abs().sum((1, 2))
    assert (by_head[4 - pointing :] == 0).all()
    assert (by_head[: 4 - pointing] > 0).all()
    attended = attend(built, *drawn)[1]
    (slope,) = torch.autograd.grad(
        attended.weights[:, -pointing:].square().sum(), built.heads.to_key.weight
    )
    by_head = slope.unflatten(0, (4, 2)).abs().sum((1, 2))
    assert (by_head[4 - pointing :] > 0).all()
    assert (by_head[: 4 - pointing] == 0).all()


def test_the_context_is_that_of_the_reading_heads_alone(drawn):
    built, plain = slot("pointing=1"), slot("pointing=1,sharing=shared")
    with torch.no_grad():
        for name in ("to_query", "to_key", "to_value"):
            getattr(plain.heads, name).weight.copy_(getattr(built.heads, name).weight)
        plain.heads.to_output.weight.zero_()
        plain.heads.to_output.weight[:, :6].copy_(built.heads.to_output.weight)
    torch.testing.assert_close(attend(built, *drawn)[0], attend(plain, *drawn)[0])


def test_shared_roles_are_ordinary_heads(drawn):
    built = slot("sharing=shared")
    multi = variants.build("scaled_dot[head=multi[heads=4]]", dim=8, source_dim=6, regime="cross")
    multi.double().load_state_dict(built.state_dict())
    assert torch.equal(attend(built, *drawn)[0], attend(multi, *drawn)[0])


def test_roles_that_nobody_takes_are_refused():
    with pytest.raises(InvalidConfig, match="roles: pointing must be at least 1 and below heads=4"):
        slot("pointing=4")
    with pytest.raises(InvalidConfig, match="roles: heads must divide the model width 6, got 4"):
        slot("", dim=6)
