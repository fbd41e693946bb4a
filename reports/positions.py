"""Which variants have positions of their own, as the catalog of a run says."""

from bench.api.errors import InvalidSelector
from bench.api.selector import parse
from reports.catalog import Catalog


def has_positions(catalog: Catalog, variant: str) -> bool:
    """Whether a variant has positions of its own: by name, recipe or option."""
    known = catalog.variant(variant)
    axes = known.made_of.split(", ")
    return (
        known.family == "position"
        or known.tells_places
        or any(one.startswith("position=") for one in axes)
        or _asks_for_positions(variant)
    )


def _asks_for_positions(variant: str) -> bool:
    try:
        return "position" in parse(variant).options
    except InvalidSelector:
        return False
