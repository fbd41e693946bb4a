"""Try to break the bench: `python -m tests.fuzz`, or with `--long` for an hour with new seeds."""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

from bench.api.loading import load_package
from tests.fuzz.attacks import ATTACKS
from tests.fuzz.law import attempt


def main() -> int:
    """Print cases and failures of every attack; 1 if there was a failure."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--long", action="store_true", help="Go on with new seeds for an hour.")
    parser.add_argument("--seed", type=int, default=0, help="First seed.")
    parser.add_argument("--only", default="", help="Attacks whose name contains this text.")
    asked = parser.parse_args()
    load_package("variants")
    load_package("tasks")
    end = time.monotonic() + (3600 if asked.long else 0)
    seed, failed = asked.seed, 0
    while True:
        for attack in (one for one in ATTACKS if asked.only in one.name):
            with tempfile.TemporaryDirectory() as folder:
                found = attempt(attack, attack.many, seed, Path(folder))
            failed += len(found.failures)
            print(
                f"seed {seed}: {found.name}: {found.cases} cases, {len(found.failures)} failures, "
                f"{found.seconds:.1f} CPU s",
                flush=True,
            )
            for failure in found.failures:
                print(failure, flush=True)
        seed += 1
        if time.monotonic() >= end:
            return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
