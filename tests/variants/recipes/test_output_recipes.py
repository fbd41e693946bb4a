import pytest

from bench.api.errors import InvalidConfig
from bench.api.loading import load_package
from bench.api.resolve import resolve

RECIPES = {
    "conv_copy": "output",
    "copynet": "output",
    "lexicon_bias": "output",
    "lexicon_linear": "output",
    "mha_roles": "head",
    "pointer_net": "output",
    "ssnt": "output",
}


@pytest.fixture(scope="module", autouse=True)
def _decoders_are_loaded():
    load_package("tasks")


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_resolves_has_a_default_task_and_prints_every_choice(name):
    spec = resolve(name)
    assert spec.registered.default_task is not None
    assert spec.registered.target.main == RECIPES[name]
    assert resolve(spec.canonical).canonical == spec.canonical


def test_options_go_to_the_output_or_to_the_heads():
    assert resolve("copynet[selective_read=false]").axes["output"][0].options == {
        "selective_read": False
    }
    assert resolve("ssnt[end=sum]").axes["output"][0].options["end"][0].name == "sum"
    shared = resolve("mha_roles[sharing=shared]")
    assert shared.axes["head"][0].options["sharing"][0].name == "shared"
    assert shared.axes["output"][0].options["heads"] == 1
    with pytest.raises(InvalidConfig, match="did you mean 'selective_read'"):
        resolve("copynet[selective=false]")


def test_ssnt_fixes_its_decoder_and_takes_an_encoder():
    assert resolve("ssnt").fixes["decoder"].name == "target_only"
    assert resolve("ssnt[encoder=uni_rnn]").fixes["encoder"].name == "uni_rnn"


@pytest.mark.parametrize("name", ["pointer_sentinel", "neural_cache"])
def test_an_output_given_as_a_variant_is_the_default_chain_with_it(name):
    spec = resolve(name)
    assert spec.axes["score"][0].name == "scaled_dot"
    assert spec.axes["output"][0].name == name
