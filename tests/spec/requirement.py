"""One requirement of the mission, and the themes that bring what is not built yet."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Requirement:
    """A behaviour the mission asks for, where it says so, and the theme that brings it."""

    source: str
    """Where it is written: `seed §4.3 rule 1`, `decisions §2.3`; several are parted by `; `."""
    text: str
    """The behaviour in our own words."""
    later: str | None = None
    """Why no test shows it yet; None when a test has to."""


CATALOG_SOURCES = "comes with the first source that brings entities; today pushes alone do"
DEPRECATIONS = "comes with the first thing that is deprecated"
