"""What tests of the command line share."""

SMOKE = ["--preset", "smoke", "--tasks", "after_marker", "--no-speed", "--no-verify", "--inline"]
"""A run of seconds."""


def with_others(usual, *more):
    """Words with more of them; an option that comes with another value replaces the usual one."""
    words, more = [*usual], [*map(str, more)]
    for option in more:
        if option.startswith("--") and option in words:
            at = words.index(option)
            has_value = at + 1 < len(words) and not words[at + 1].startswith("--")
            del words[at : at + 1 + has_value]
    return [*words, *more]


def report_text(folder):
    """The short Markdown page and the details."""
    pages = (folder / "report.md", folder / "details.md")
    return "\n".join(page.read_text(encoding="utf-8") for page in pages if page.is_file())
