"""What a path of a run leads to, told by names and a few bytes, before pandas is imported."""

from pathlib import Path

from bench.api.errors import BenchError
from bench.api.plain_text import message_of

LEDGER = "ledger"
"""Folder of a run folder that makes it one."""
SUFFIX = ".parquet"
"""Ending of a pack."""
PUBLISHED = Path(__file__).parent / "published"
"""Packs that come with this project."""

_MAGIC = b"PAR1"
"""First and last bytes of every Parquet file."""


class NotARunFolder(BenchError):
    """A path that holds no results of ours."""


def refuse_what_is_no_run(path: Path | str) -> None:
    """Refuse a path that leads neither to a run folder nor to a whole Parquet file.

    Raises:
        NotARunFolder: The message says which it is not, and what to give.
    """
    path = Path(path)
    if path.suffix == SUFFIX:
        refuse_damaged_pack(path)
    else:
        refuse_what_is_no_folder(path)


def refuse_what_is_no_folder(path: Path) -> None:
    """Refuse a path that leads to no run folder.

    Raises:
        NotARunFolder: The folder does not exist or has no ledger.
    """
    if not (path / LEDGER).is_dir():
        raise NotARunFolder(
            f"no run folder at {path}: it {_why_no_folder(path)}; give the folder that "
            f"a run wrote with --out{_published(path)}."
        )


def refuse_name_of_no_folder(folder: Path) -> None:
    """Refuse a run folder that could not be read by its name.

    Raises:
        NotARunFolder: It has the ending of a pack.
    """
    if folder.suffix == SUFFIX and not (folder / LEDGER).is_dir():
        raise NotARunFolder(
            f"cannot start a run in {folder}: names that end in {SUFFIX} are those of packs; give "
            "a folder of another name."
        )


def refuse_occupied(folder: Path) -> None:
    """Refuse to start a run where something else is.

    Raises:
        NotARunFolder: The path is a file, a folder with something else inside, or the name of a
            pack.
    """
    refuse_name_of_no_folder(folder)
    occupied = folder.is_file() or (folder.is_dir() and any(folder.iterdir()))
    if occupied and not (folder / LEDGER).is_dir():
        raise NotARunFolder(
            f"cannot start a run in {folder}: it holds something else; give a new or empty folder."
        )


def refuse_damaged_pack(path: Path) -> None:
    """Refuse a file that does not begin and end as every Parquet file does.

    Raises:
        NotARunFolder: There is no such file, or it is cut off or another kind of file.
    """
    if not path.is_file():
        why = "it is no file" if path.exists() else "there is no such file"
        raise NotARunFolder(
            f"no pack at {path}: {why}; give a file that `bench report --pack` wrote."
        )
    try:
        with path.open("rb") as file:
            begins = file.read(len(_MAGIC))
            file.seek(max(0, path.stat().st_size - len(_MAGIC)))
            ends = file.read()
    except OSError as error:
        why = error.strerror or message_of(error)
        raise NotARunFolder(
            f"no pack at {path} ({why}); mend that, or give another file."
        ) from error
    if (begins, ends) != (_MAGIC, _MAGIC):
        raise damaged_pack(path)


def damaged_pack(path: Path) -> NotARunFolder:
    """What to say of a file with the name of a pack that cannot be read as one."""
    return NotARunFolder(f"{path} is damaged or no pack; take a whole copy of the pack.")


def refuse_no_name_of_a_pack(path: Path) -> None:
    """Refuse to write a pack that could not be read by its name; ask before anything is written.

    Raises:
        NotARunFolder: The file has another ending.
    """
    if path.suffix != SUFFIX:
        raise NotARunFolder(f"a pack ends in {SUFFIX}, and {path} does not; name it so.")


def _why_no_folder(path: Path) -> str:
    if not path.exists():
        return "does not exist"
    if path.is_dir():
        return f"has no {LEDGER}/ inside"
    return (
        "is a pack, and this needs a folder" if path.suffix == SUFFIX else "is a file, and no pack"
    )


def _published(path: Path) -> str:
    """The published pack of the name, if there is one and no file where the path leads."""
    pack = (PUBLISHED / path.name).with_suffix(SUFFIX) if path.name else PUBLISHED
    if path.is_file() or not pack.is_file():
        return ""
    here = Path.cwd()
    return f", or the pack {pack.relative_to(here) if pack.is_relative_to(here) else pack}"
