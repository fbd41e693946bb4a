"""What tests of the command line share."""

SMOKE = ["--preset", "smoke", "--tasks", "after_marker", "--no-speed", "--no-verify", "--inline"]
"""A run of seconds."""


def report_text(folder):
    """The short Markdown page and the details."""
    pages = (folder / "report.md", folder / "details.md")
    return "\n".join(page.read_text(encoding="utf-8") for page in pages if page.is_file())
