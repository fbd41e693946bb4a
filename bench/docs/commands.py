"""The page of commands, from what click knows of them."""

from collections.abc import Iterator

import click

from reports.markdown import code_span, with_code

HEAD = (
    "Every command and its options, as `--help` prints them. `bench` and `python -m bench` are the "
    "same program."
)


def commands_page(root: click.Group) -> str:
    """The whole page: one part a command, in the order of `--help`."""
    context = click.Context(root, info_name="python -m bench")
    parts = ["# Commands", HEAD, *_prose(root)]
    for command, place in _commands(root, context):
        parts += _command(command, place)
    return "\n\n".join(parts) + "\n"


def _commands(
    group: click.Group, context: click.Context
) -> Iterator[tuple[click.Command, click.Context]]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None, f"{name} is listed"
        place = click.Context(command, info_name=name, parent=context)
        yield command, place
        if isinstance(command, click.Group):
            yield from _commands(command, place)


def _command(command: click.Command, place: click.Context) -> Iterator[str]:
    yield f"## {code_span(place.command_path.removeprefix('python -m bench '))}"
    yield from _prose(command)
    usage = " ".join(command.collect_usage_pieces(place))
    yield f"```sh\n{place.command_path} {usage}\n```"
    found = [one.get_help_record(place) for one in command.get_params(place)]
    rows = [record for record in found if record is not None]
    lines = [f"| {code_span(name)} | {_cell(text)} |" for name, text in rows]
    yield "\n".join(["| option | meaning |", "| --- | --- |", *lines])


def _prose(command: click.Command) -> Iterator[str]:
    """Paragraphs of the help text, each on one line."""
    for paragraph in (command.help or "").split("\n\n"):
        yield with_code(" ".join(paragraph.replace("\b", "").split()))


def _cell(text: str) -> str:
    return with_code(" ".join(text.split()))
