"""The types of sources, without the import of what reads their definitions."""

from typing import Literal

Type = Literal["http", "repository-file", "repository-directory", "entity", "push"]
