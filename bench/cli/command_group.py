"""Groups of commands that suggest the closest name for a wrong one."""

import click

from bench.api.errors import UnknownName


class BenchGroup(click.Group):
    """Commands whose errors are one sentence, and that suggest a name for a wrong one."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Suggest the closest command."""
        if args and self.get_command(ctx, args[0]) is None:
            wrong = UnknownName.among("command", args[0], self.list_commands(ctx))
            raise click.UsageError(str(wrong))
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Commands in the order in which they were added: what one does first comes first."""
        return list(self.commands)
