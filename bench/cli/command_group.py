"""Groups of commands: they suggest the closest name for a wrong one, and read every word first."""

from collections import Counter
from collections.abc import Sequence

import click

from bench.api.errors import InvalidConfig, UnknownName

COMMA_LISTS = ("variants", "tasks", "probes", "fail_on")
"""Options of one value that may hold several names."""


class BenchGroup(click.Group):
    """Commands whose errors are one sentence, and that suggest a name for a wrong one."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Suggest the closest command, and refuse words that say nothing or say it twice."""
        if args and self.get_command(ctx, args[0]) is None:
            wrong = UnknownName.among("command", args[0], self.list_commands(ctx))
            raise click.UsageError(str(wrong))
        name, command, words = super().resolve_command(ctx, args)
        if command is not None and not isinstance(command, click.Group):
            _refuse_lost_words(click.Context(command, info_name=name, parent=ctx), words)
        return name, command, words

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Commands in the order in which they were added: what one does first comes first."""
        return list(self.commands)


def _refuse_lost_words(context: click.Context, words: Sequence[str]) -> None:
    """Refuse an option that is given twice, and an empty value, as they were typed.

    Of two values click keeps the last and says nothing. An empty one would be a folder (`.`), or
    what nobody asked for: the default. Once values are converted, neither can be seen.

    Raises:
        InvalidConfig: One of the two was typed.
    """
    parser = context.command.make_parser(context)
    typed, _, order = parser.parse_args([*words])  # of a copy, for it takes the words out
    for parameter, times in Counter(order).items():
        value = typed.get(parameter.name or "")
        if value == "" or (isinstance(value, list | tuple) and "" in value):
            raise InvalidConfig(_empty(parameter))
        takes_one = isinstance(parameter, click.Option) and not (
            parameter.multiple or parameter.is_flag or parameter.count
        )
        if takes_one and times > 1:
            often = "twice" if times == 2 else f"{times} times"
            listed = parameter.name in COMMA_LISTS
            do = "separate names by commas" if listed else "give it once"
            raise InvalidConfig(f"{_shown(parameter)} is given {often}; {do}.")


def _empty(parameter: click.Parameter) -> str:
    instead = "" if parameter.required else " or leave it out"
    return f"{_shown(parameter)} is empty; give a value{instead}."


def _shown(parameter: click.Parameter) -> str:
    """A parameter as the help has it."""
    if isinstance(parameter, click.Option):
        return parameter.opts[-1]
    return parameter.human_readable_name
