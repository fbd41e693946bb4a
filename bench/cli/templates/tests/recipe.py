from bench.api.resolve import resolve


def test_it_is_its_components_and_its_options_go_to_the_score():
    spec = resolve("new_name[width=5]")
    assert [chosen.name for chosen in spec.axes["normalizer"]] == ["entmax15"]
    assert spec.axes["score"][0].show() == "additive[width=5]"


def test_vectorized_code_equals_the_loops(equals_oracle):
    equals_oracle("new_name")
