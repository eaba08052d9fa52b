"""Types of sources, without importing the reader of their definitions."""

from typing import Literal

Type = Literal["http", "repository-file", "repository-directory", "entity", "push"]
