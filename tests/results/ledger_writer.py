"""A process that finishes cells until it is killed; run by test_store.py.

Each id is written to standard output only after `append` returned: the acknowledgement.
"""

import os
import sys
import time
from dataclasses import asdict

from bench.api.cell import Cell
from results.row import Record, Row
from results.store import Store


def cell(number: int) -> Cell:
    return Cell(
        kind="quality",
        task="copying",
        backbone="seq2seq",
        variant="bahdanau",
        slot="cross",
        protocol="adam",
        seed=number,
    )


def record(number: int) -> Record:
    asked = cell(number)
    # Lines of 500 bytes to 20 kB, so that kills meet writes of several pages too.
    length = 200 if number % 20 == 0 else number % 3 + 1
    rows = tuple(
        Row(metric="loss_nats", value=number + step / 7, axis="step", x=float(step))
        for step in range(length)
    )
    return Record(cell=asdict(asked), id=asked.id, status="ok", environment="e", rows=rows)


def main(folder: str, last: int, pause_s: float) -> None:
    store = Store(folder)
    done = store.finished()
    os.write(1, b"ready\n")
    for number in range(last):
        id_ = cell(number).id
        if id_ not in done and store.reserve(id_):
            # Asked again under the claim: the other writer may have finished it since.
            if id_ not in store.finished():
                store.append(record(number))
                os.write(1, f"{number} {id_}\n".encode())
            store.release(id_)
            time.sleep(pause_s)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
