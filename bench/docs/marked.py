"""Parts of a page that are written by a machine, between markers."""


def with_part(text: str, name: str, content: str, *, name_of_page: str = "README.md") -> str:
    """The text with what stands between the two markers of a part replaced.

    Raises:
        ValueError: A marker is missing.
    """
    begin, end = f"<!-- {name}:begin -->\n", f"<!-- {name}:end -->"
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"{name_of_page}: the markers of the part {name!r} are missing")
    inside = f"\n{content}\n" if content else ""
    return f"{before}{begin}{inside}{end}{after}"
