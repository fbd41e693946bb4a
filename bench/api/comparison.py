"""What a task is compared by: entries that it proposes, and published results beside them."""

from dataclasses import dataclass
from functools import cached_property

from bench.api.selector import Selector, parse


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One line of a comparison that a task proposes; only the planner reads it."""

    variant: str
    """Variant selector."""

    backbone: str = ""
    """Backbone selector; empty for that of the task's size."""
    slot: str = ""
    """Slot of the backbone; empty for its main one."""
    task: str = ""
    """Task selector with other options, for controls such as a shuffled source; empty for none."""

    @cached_property
    def selector(self) -> Selector:
        """The variant, parsed."""
        return parse(self.variant)


@dataclass(frozen=True, kw_only=True)
class PublishedResult:
    """A published number to compare ours with."""

    what: str
    """Model, data and setting, as published."""
    metric: str
    """Name of the metric here."""
    value: float
    text: str
    """Authors and year."""
    url: str
    where: str
    """Table or section."""
    differs: str
    """How data, size and training differ from ours, in one sentence."""
    about: str = ""
    """Task selector with the options that the number is about, `word_alignment[pair=ja_en]`;
    empty where it holds for every run of the task."""

    def holds_for(self, task: Selector) -> bool:
        """Whether the number holds for a run of this task, whose defaults are written out.

        >>> english = PublishedResult(
        ...     what="", metric="bleu", value=1.0, text="", url="", where="", differs="",
        ...     about="translation[target=en]",
        ... )
        >>> english.holds_for(parse("translation[source=de,target=en]"))
        True
        >>> english.holds_for(parse("translation[source=en,target=de]"))
        False
        """
        if not self.about:
            return True
        asked = parse(self.about)
        there = {key: task.options.get(key) for key in asked.options}
        return asked.name == task.name and there == asked.options


def entries(*names: str, task: str = "", backbone: str = "", slot: str = "") -> tuple[Entry, ...]:
    """A line of a comparison for each variant that is there.

    Args:
        names: Variant selectors.
        task: Task selector with other options; empty for that of the preset.
        backbone: Backbone selector; empty for that of the preset.
        slot: Slot of the backbone; empty for the first.
    """
    return tuple(Entry(variant=name, task=task, backbone=backbone, slot=slot) for name in names)
