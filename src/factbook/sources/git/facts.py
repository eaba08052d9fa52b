"""From the paths of a repository's files to its facts."""

from factbook.outbound.outcomes import Missing
from factbook.sources import files
from factbook.sources.integration import Collected
from factbook.sources.trees import Paths


def collected(paths: Paths | Missing) -> Collected:
    """The facts of the repository shape, or why there are none."""
    if isinstance(paths, Missing):
        return Collected(missing={"": paths})
    return Collected({f"repository.{name}": value for name, value in files.facts(paths).items()})
