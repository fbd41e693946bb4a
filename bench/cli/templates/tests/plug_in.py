from pathlib import Path

from bench.api.loading import load_package, load_plugin
from bench.conformance import certify


def test_it_has_a_green_certificate():
    load_package("variants")
    load_plugin(Path(__file__).with_name("new_name.py"))
    found = certify("new_name")
    assert found.green(), found.failed
