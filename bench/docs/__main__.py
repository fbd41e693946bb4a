"""Pages from code and published rows.

`python -m bench.docs site` writes the pages for mkdocs, `readme` the tables of README.md,
`choices` the page that says what to choose by all published runs, and `packs` the table of these.
`recount` counts parameters and FLOPs in published packs again.
"""

from pathlib import Path

import click

from bench.docs.choices import PAGE, update_choices
from bench.docs.packs import PAGE as PACKS_PAGE
from bench.docs.packs import update_packs
from bench.docs.peers import PAGE as PEERS_PAGE
from bench.docs.peers import update_page
from bench.docs.readme import update_readme
from bench.docs.recount import count_again
from bench.docs.site import write_site

ROOT = Path(__file__).parents[2]


@click.group()
def main() -> None:
    """Make the documentation from code and published rows."""


@main.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=ROOT / "build" / "docs",
    help="Folder of the pages; made anew. Default: build/docs.",
)
def site(out: Path) -> None:
    """Write the pages that mkdocs builds."""
    written = write_site(ROOT, out)
    click.echo(f"{len(written)} pages in {out}")


@main.command()
@click.option("--check", is_flag=True, help="Write nothing; exit code 1 if a table is out of date.")
def readme(check: bool) -> None:
    """Write the tables and the figure of README.md from the published runs."""
    changed = update_readme(ROOT, write=not check)
    click.echo("README.md: " + (f"changed {', '.join(changed)}" if changed else "up to date"))
    raise SystemExit(1 if check and changed else 0)


@main.command()
@click.option("--check", is_flag=True, help="Write nothing; exit code 1 if it is out of date.")
def packs(check: bool) -> None:
    """Write the table of the published packs, and the page of comparisons with public code."""
    found = {
        PACKS_PAGE: update_packs(ROOT, write=not check),
        PEERS_PAGE: update_page(ROOT, write=not check),
    }
    for page, changed in found.items():
        click.echo(f"{page}: {'changed' if changed else 'up to date'}")
    raise SystemExit(1 if check and any(found.values()) else 0)


@main.command()
@click.option(
    "--check", is_flag=True, help="Write nothing; exit code 1 if the page is out of date."
)
def choices(check: bool) -> None:
    """Write the page of what to choose by all published runs."""
    changed = update_choices(ROOT, write=not check)
    click.echo(f"{PAGE}: {'changed' if changed else 'up to date'}")
    raise SystemExit(1 if check and changed else 0)


@main.command()
@click.argument("packs", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option(
    "--containing",
    multiple=True,
    help="Only cells whose label has this text, such as cell=lstm; may be given several times.",
)
def recount(packs: tuple[Path, ...], containing: tuple[str, ...]) -> None:
    """Count parameters and FLOPs in published packs again, after a count was mended.

    Products in bfloat16 are counted as the processor computes them. So name cells without them
    where the pack is of another processor.
    """
    for pack in packs:
        changed = count_again(pack, click.echo, containing)
        click.echo(f"{pack}: {'written anew' if changed else 'up to date'}")


if __name__ == "__main__":
    main()
