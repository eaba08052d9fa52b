"""The settings of the service: one table, read from a file, the environment and flags.

Later places win: the default, then `factbook.toml`, then `FACTBOOK_<NAME>` in the environment, then
a flag of the command line.
"""

from factbook.settings.loader import environment, load
from factbook.settings.table import Settings

__all__ = ["Settings", "environment", "load"]
