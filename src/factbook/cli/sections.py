"""Help that separates the commands on the database from those on a server."""

from typing import Any, Final

from typer.core import TyperGroup

_TITLES: Final = {
    frozenset({"database_url"}): "Commands on the database itself (--database-url)",
    frozenset({"server"}): "Commands that ask a server (--server, --token)",
    frozenset({"database_url", "server"}): "Commands of both kinds",
    frozenset[str](): "Commands that need neither database nor server",
}


class Sections(TyperGroup):
    """Command group that lists its commands in sections, by their options."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write each section with its commands, in their order."""
        listed = [(name, self.commands[name]) for name in self.list_commands(ctx)]
        shown = [(name, command) for name, command in listed if not command.hidden]
        limit = formatter.width - 6 - max((len(name) for name, _ in shown), default=0)
        for needs, title in _TITLES.items():
            rows = [
                (name, command.get_short_help_str(limit))
                for name, command in shown
                if _needs(command) == needs
            ]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


def _needs(command: Any) -> frozenset[str]:
    """Deciding options of a command, or of the commands in a group.

    Beside the database, a server is only the base address of a link.
    """
    names = {parameter.name for parameter in command.params}
    own = next(({name} for name in ("database_url", "server") if name in names), set[str]())
    below = getattr(command, "commands", {}).values()
    return frozenset(own.union(*map(_needs, below)))
