"""Why an advantage does not appear here: each text says who reported what, and at which size."""

import re

import pytest

from bench.api import registry

CLAIM_NOTHING = {
    "concat_topk",
    "dropped_sum",
    "fertility_hinge",
    "gated_sum",
    "general_activated",
    "hard_gumbel_st",
    "hardmax",
    "last_state",
    "logistic_sigmoid",
    "max_pooling",
    "max_readout",
    "mean_pooling",
    "mlp_dot",
    "nadaraya_watson",
    "none_position",
    "softmax_off_by_one",
}
"""Their papers report no advantage that could appear, so that no size is asked of them."""

SIZE_UNKNOWN = {
    "agreement_l2",
    "agreement_trace",
    "global_fertility",
    "mi_coverage",
    "milk",
    "ssmax",
    "supervised_attention",
}
"""Nobody here has looked up the sizes of their papers yet. A name leaves once its text has one."""

FEWEST, MOST = 2, 4
"""Sentences of a text."""

HERE = ("Here ", "Sequences of this task ", "Recall ")
"""How sentences begin that are about this project and not about the paper."""

NOT_A_SIZE = re.compile(r"\b(?:table|WMT|Llama) \d+")

TEXTS = {
    name: registered
    for name, registered in registry.listed_variants().items()
    if registered.does_not_show
}


def sentences(text):
    """Parts that end in a full stop; that of `et al.` is followed by a small letter."""
    return re.split(r"(?<=\.) (?=[A-Z`])", text)


def has_size(text):
    """Whether the sentences about the paper have a number. Digits in names do not count."""
    reported = " ".join(part for part in sentences(text) if not part.startswith(HERE))
    return re.search(r"(?<![\w-])\d", NOT_A_SIZE.sub("", reported)) is not None


def first_author(citation):
    """The surname or the team that a citation begins with."""
    return re.split(r" et al\.| & |, ", citation.removeprefix("after "))[0]


@pytest.mark.parametrize("name", TEXTS)
def test_a_reason_has_a_few_sentences(name):
    assert FEWEST <= len(sentences(TEXTS[name].does_not_show)) <= MOST


@pytest.mark.parametrize("name", TEXTS)
def test_a_reason_names_the_first_author_of_the_paper(name):
    registered = TEXTS[name]
    author = first_author(registered.citation.text)
    assert author.casefold() in registered.does_not_show.casefold()


@pytest.mark.parametrize("name", sorted(TEXTS.keys() - CLAIM_NOTHING - SIZE_UNKNOWN))
def test_a_reason_says_at_which_size_the_paper_reported_its_result(name):
    assert has_size(TEXTS[name].does_not_show)


@pytest.mark.parametrize("name", sorted(CLAIM_NOTHING))
def test_a_paper_that_claims_nothing_is_said_to(name):
    text = TEXTS[name].does_not_show
    assert re.search(r"\bno (?:advantage|gain|measurement)\b", text)
    assert not has_size(text)


@pytest.mark.parametrize("name", sorted(SIZE_UNKNOWN))
def test_a_size_that_was_looked_up_is_no_longer_listed_as_unknown(name):
    assert not has_size(TEXTS[name].does_not_show)


def test_what_two_lists_excuse_is_in_one_of_them():
    assert CLAIM_NOTHING.isdisjoint(SIZE_UNKNOWN)


@pytest.mark.parametrize(
    "text",
    [
        "Doe et al. report gains over Mamba-2 on long texts. Here 20 and 32 pairs are few.",
        "Doe et al. report gains in table 2. Sequences of this task have at most 128 symbols.",
        "Doe et al. report gains with `mamba2_ssd` on WMT 2014. Costs are in the tables of speed.",
    ],
)
def test_a_number_of_this_project_or_of_a_name_is_no_size_of_a_paper(text):
    assert not has_size(text)
    assert len(sentences(text)) == FEWEST


@pytest.mark.parametrize(
    ("citation", "author"),
    [
        ("Dao & Gu, 2024", "Dao"),
        ("after Wu et al., 2016", "Wu"),
        ("von Oswald et al., 2025", "von Oswald"),
        ("Kimi Team, 2025", "Kimi Team"),
    ],
)
def test_the_first_author_is_read_from_a_citation(citation, author):
    assert first_author(citation) == author
