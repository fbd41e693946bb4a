"""What text means by leaving something out stays: ids and stored cells rest on it (ADR 10).

`data/first_defaults.json` holds the first default of every option, and what every recipe stands
for, as of the last release. What was added since is not in it; the next release writes it anew:
`python tests/bench/api/test_first_defaults.py`.
"""

import json
from pathlib import Path

from bench.api import registry
from bench.api.axes import AXES, DEFAULTS
from bench.api.config import config_options, first_defaults
from bench.api.loading import load_package
from bench.api.registry import Recipe
from bench.api.selector import show_value
from bench.timing.shape import AttendShape, Rounds
from bench.training.protocol import AdamProtocol

RELEASED = Path(__file__).parent / "data" / "first_defaults.json"
PROTOCOLS = {"adam": AdamProtocol, "rounds": Rounds, "attend": AttendShape}


def defaults_of(config):
    found = {**config_options(config()), **first_defaults(config)}
    return {name: show_value(value) for name, value in sorted(found.items())}


def meanings():
    """What is meant where nothing is said, by what it is said of."""
    load_package("variants")
    load_package("tasks")
    found = {f"protocol {name}": defaults_of(config) for name, config in PROTOCOLS.items()}
    found["chain"] = dict(DEFAULTS)
    for axis in AXES:
        for name, item in registry.registrations(axis).items():
            if item.module.partition(".")[0] not in ("variants", "tasks"):
                continue  # registered by another test
            if isinstance(item.target, Recipe):
                own = {**item.target.axes, **item.target.fixes, "revision": str(item.revision)}
                found[f"{axis} {name}"] = own
            else:
                found[f"{axis} {name}"] = defaults_of(item.config)
    return found


def test_first_defaults_stay_and_recipes_change_only_with_their_revision():
    released, now = json.loads(RELEASED.read_text()), meanings()
    changed = {}
    for name in released.keys() & now.keys():
        before, after = released[name], now[name]
        if "revision" in before and before["revision"] != after["revision"]:
            continue
        kept = {key: after.get(key, value) for key, value in before.items()}
        if kept != before or ("revision" in before and after.keys() != before.keys()):
            changed[name] = (before, after)
    assert not changed, "keep the first default with FirstDefault, or raise a recipe's revision"


if __name__ == "__main__":
    RELEASED.write_text(json.dumps(meanings(), indent=1, sort_keys=True) + "\n")
