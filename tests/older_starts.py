"""Parts that start elsewhere since the published runs (ADR 19), whose published cells are older.

Empty this when those cells have been run again.
"""

NEWER = frozenset(
    f"{part}:2"
    for part in (
        "concat",
        "decomposable",
        "general",
        "general_activated",
        "general_biased",
        "location",
        "luong_local_p",
        "mlp_dot",
    )
)
"""As they stand in the revisions of a cell."""
