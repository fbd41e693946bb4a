"""`bench show` of a claim: what is quoted, what decides it, how it stands, what it costs."""

import json
import re
from pathlib import Path

import pytest

from bench.api import registry
from bench.api.claim import CLAIMS
from bench.claims.verdicts import outcomes_of, request_of
from bench.cli.claims import PUBLISHED
from bench.cli.registered import load_registry
from bench.cli.shown_claims import claim_facts, published_verdict
from results.pack import Pack

load_registry(())


def test_a_claim_is_shown_with_what_decides_it(call):
    code, out, _ = call("show", "C01")
    assert code == 0
    assert "quote     “the only representation of the input" in out
    assert "source    F0, " in out
    assert "decides   attention minus one state, exact match at 8 symbols: higher by 0.1" in out
    assert "needed    all of these" in out
    assert "seeds     24 paired, 300 to 323, a second sample" in out
    assert re.search(r"^verdict   \w+, as published; the numbers are in ", out, re.MULTILINE)
    cost = r"^cost      about \d+ CPU minutes: python -m bench claims run C01$"
    assert re.search(cost, out, re.MULTILINE)


def test_a_computed_claim_has_bounds_and_no_seeds(call):
    (shown,) = json.loads(call("show", "C08", "--json")[1])
    assert shown["decides"][0] == "parameters of the dot product: at most 0, computed"
    assert (shown["seeds"], shown["networks"]) == ("", [])
    assert shown["cost"] == "less than a CPU minute: python -m bench claims run C08"


def test_a_claim_of_a_plug_in_is_run_with_it(call):
    plugin = Path(__file__).parents[1] / "claims" / "plugin_claim.py"
    (shown,) = json.loads(call("show", "own1", "--plugin", plugin, "--json")[1])
    assert shown["cost"].endswith(f": python -m bench claims run own1 --plugin {plugin}")


def test_a_contrast_says_what_its_networks_must_have_learned():
    asked = [
        line
        for one in registry.registrations(CLAIMS).values()
        if any(contrast.learned for contrast in one.target.contrasts)
        for line in claim_facts(one)["decides"]
    ]
    assert any(re.search(r", if the mean [a-z ]+ of \w+.* is at least 0\.\d", one) for one in asked)


def test_the_verdict_shown_is_that_of_the_published_rows():
    entries = registry.registrations(CLAIMS)
    rows = Pack(PUBLISHED).frame
    found = outcomes_of([one.target for one in entries.values()], rows, request_of(rows))
    for one in found:
        verdict = claim_facts(entries[one.claim.key])["verdict"].split(",")[0]
        assert verdict.removesuffix(" (below the margin)") == one.standing, one.claim.key


@pytest.mark.parametrize("text", ["", "C2: A title. Verdict: supported.\n", "C1 Verdict: no.\n"])
def test_a_page_without_the_claim_has_no_verdict(tmp_path, text):
    assert published_verdict(tmp_path / "nowhere.md", "C1") == ""
    (tmp_path / "claims.md").write_text(text)
    assert published_verdict(tmp_path / "claims.md", "C1") == ""


def test_a_claim_has_no_options(call):
    code, out, err = call("show", "C01[margin=2]")
    assert (code, out) == (2, "")
    assert "no option of C01 named 'margin'" in err
