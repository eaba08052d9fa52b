"""The command line: `factbook`."""


def main() -> None:
    """Run the command line of this process."""
    from factbook.cli.commands import app

    app(prog_name="factbook")
