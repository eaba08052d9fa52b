"""Entry point of `python -m factbook`, the same as the command `factbook`."""

from factbook.cli import main

if __name__ == "__main__":
    main()
