"""`python -m factbook` is the command `factbook`."""

from factbook.cli import main

main()
