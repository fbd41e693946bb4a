import torch


def test_products_of_features_are_the_taylor_series_of_the_exponential(beneath, draw):
    drawn = draw(2, 2, 4, 6, lengths=())
    variant = beneath("based[width=3]")
    asked = variant.of_queries(drawn.query, torch.arange(4))
    products = asked @ variant.of_keys(drawn.source.key, torch.arange(6)).mT
    query = torch.einsum("bhle,hew->bhlw", drawn.query, variant.to_query)
    key = torch.einsum("bhse,hew->bhsw", drawn.source.key, variant.to_key)
    energy = query @ key.mT / 3**0.5
    torch.testing.assert_close(products, 1 + energy + energy**2 / 2, rtol=0, atol=1e-12)
    assert products.min() >= 0.5


def test_for_small_energies_it_is_softmax_attention(beneath, answer, draw):
    drawn = draw(1, 2, 4, 6, lengths=())
    variant = beneath("based[width=3]")
    small = 1e-3 * drawn.query
    query = torch.einsum("bhle,hew->bhlw", small, variant.to_query)
    key = torch.einsum("bhse,hew->bhsw", drawn.source.key, variant.to_key)
    expected = (query @ key.mT / 3**0.5).softmax(-1) @ drawn.source.value
    found = answer(variant, small, drawn.source).output
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


def test_under_causal_attention_each_pair_weighs_the_product_of_its_features(beneath, answer, draw):
    drawn = draw(3, 2, 140, 140)
    variant, place = beneath("based[width=3]", regime="causal"), torch.arange(140)
    asked, keys = variant.of_queries(drawn.query, place), variant.of_keys(drawn.source.key, place)
    products = (asked @ keys.mT).tril() * drawn.source.mask[:, None, None]
    expected = products @ drawn.source.value / (products.sum(-1, keepdim=True) + variant.eps)
    found = answer(variant, drawn.query, drawn.source).output
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-11)
