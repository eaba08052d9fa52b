"""Settings of the service: one table, read from a file, the environment and flags.

Precedence, lowest first: the default, `factbook.toml`, `FACTBOOK_<NAME>` in the environment, a flag
of the command line.
"""

from factbook.settings.table import Settings

__all__ = ["Settings"]
