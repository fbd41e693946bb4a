"""A run folder on disk: the ledger and the JSON files beside it (ADR 2)."""

import fcntl
import json
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from bench.api.errors import DataDamaged
from bench.api.whole_file import sync_folder, written_whole
from results.artifact import whole_artifact
from results.environment import Environment
from results.json_values import Json, JsonObject, read_object, why_unreadable
from results.ledger import Ledger, LedgerReader, LedgerWriter
from results.reservations import Reservations
from results.row import Record, Status
from results.run_path import LEDGER, refuse_occupied, refuse_what_is_no_folder

ENVIRONMENTS, ARTIFACTS = "environments", "artifacts"
RESERVATIONS, FILES_LOCK = "ledger/reservations.lock", "ledger/files.lock"


class Store:
    """An existing run folder; several processes may write to it at once.

    Opening writes nothing. A store may be pickled or inherited by a fork: each process appends
    to a file of its own.
    """

    def __init__(self, folder: Path | str) -> None:
        """Open a run folder.

        Raises:
            NotARunFolder: The folder does not exist or has no ledger.
        """
        self.folder = Path(folder)
        refuse_what_is_no_folder(self.folder)
        self._writer = LedgerWriter(self.folder / LEDGER)
        self._reader = LedgerReader(self.folder / LEDGER)
        self._reservations = Reservations(self.folder / RESERVATIONS)

    @classmethod
    def create(cls, folder: Path | str) -> "Store":
        """Open a run folder, making it first if the path is free or empty.

        Raises:
            NotARunFolder: The path is a file, or a folder with something else inside.
        """
        folder = Path(folder)
        refuse_occupied(folder)
        (folder / LEDGER).mkdir(parents=True, exist_ok=True)
        sync_folder(folder)
        return cls(folder)

    def __reduce__(self) -> tuple[type["Store"], tuple[Path]]:
        return Store, (self.folder,)

    def __enter__(self) -> "Store":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close open files and drop all reservations; the store can still be used."""
        self._writer.close()
        self._reservations.close()

    def append(self, record: Record) -> None:
        """Store one finished cell; when this returns, the record survives a kill or power cut."""
        self._writer.append(record)

    def ledger(self) -> Ledger:
        """Read every attempt on disk now, and count what is damaged."""
        return self._reader.read()

    def records(self) -> list[Record]:
        """Read the newest attempt of every finished cell, in no promised order."""
        return list(self.ledger().newest().values())

    def newest_of(self, cell_id: str) -> Record | None:
        """The newest attempt of one cell on disk now, or None; cheap in a long ledger, too."""
        return self._reader.newest_of(cell_id)

    def finished(self) -> dict[str, Status]:
        """Status of every finished cell by id, whatever the status."""
        return {id_: record.status for id_, record in self.ledger().newest().items()}

    def reserve(self, cell_id: str) -> bool:
        """Reserve a cell among the processes that share this folder; never waits.

        Reserve first and ask `newest_of` second: then no cell is run twice, whoever else writes
        here. A killed process leaves no reservation behind.

        Returns:
            False if another process holds the cell now.
        """
        return self._reservations.take(cell_id)

    def release(self, cell_id: str) -> None:
        """Give a reserved cell back, after its record was appended."""
        self._reservations.drop(cell_id)

    def write_environment(self, environment: Environment) -> str:
        """Store the facts of a machine once; returns the id that records carry."""
        name = f"{ENVIRONMENTS}/{environment.id}.json"
        if not (self.folder / name).exists():
            self.write_json(name, environment.to_json())
        return environment.id

    def environments(self) -> dict[str, JsonObject]:
        """Read the stored facts of every machine by environment id."""
        paths = sorted((self.folder / ENVIRONMENTS).glob("*.json"))
        return {path.stem: self.read_json(f"{ENVIRONMENTS}/{path.name}") or {} for path in paths}

    def write_artifact(self, cell_id: str, data: object) -> Path:
        """Store attention maps and samples of a cell; call before appending its record."""
        return self.write_json(f"{ARTIFACTS}/{cell_id}.json", data)

    def remove_artifact(self, cell_id: str) -> None:
        """Remove the artifact of a cell if it has one; call before appending a record without."""
        self._inside(f"{ARTIFACTS}/{cell_id}.json").unlink(missing_ok=True)

    def read_artifact(self, cell_id: str) -> JsonObject | None:
        """Read what is usable in the artifact of a cell, or None if it has none.

        Raises:
            DataDamaged: The file cannot be read.
        """
        found = self.read_json(f"{ARTIFACTS}/{cell_id}.json")
        return None if found is None else whole_artifact(found)

    def write_json(self, name: str, data: object) -> Path:
        """Replace a JSON file of the run folder as a whole: a reader sees old or new, never half.

        Args:
            name: Path inside the run folder, `catalog.json`.
            data: Plain data; NaN and infinity are refused.
        """
        path = self._inside(name)
        text = json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        with written_whole(path) as draft:
            # half of a surrogate pair is written as JSON escapes it
            draft.write_text(text, encoding="utf-8", errors="backslashreplace")
        return path

    def update_json(self, name: str, change: Callable[[dict[str, Json] | None], object]) -> None:
        """Replace a JSON file by a function of what it holds, while no other process does so.

        Args:
            name: Path inside the run folder, `catalog.json`.
            change: Gets the content (None where there is no file), and returns the new one.
        """
        with (self.folder / FILES_LOCK).open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.write_json(name, change(self.read_json(name)))

    def read_json(self, name: str) -> dict[str, Json] | None:
        """Read a JSON file of the run folder, or None if there is no such file.

        Raises:
            DataDamaged: The file is not JSON, or holds something other than an object.
        """
        path = self._inside(name)
        try:
            return read_object(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise DataDamaged(
                f"{path} is damaged ({why_unreadable(error)}); delete it and run again."
            ) from error

    def _inside(self, name: str) -> Path:
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise ValueError(f"{name!r} does not name a file inside the run folder")
        return self.folder / name
