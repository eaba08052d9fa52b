"""Entry point of `python -m factbook`, the same as the command `factbook`."""

from factbook.cli import main

main()
