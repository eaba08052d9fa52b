"""From the paths of a repository's files to its facts."""

from factbook.integrations import file_types as files
from factbook.integrations.file_tree import Paths
from factbook.integrations.integration import Collected
from factbook.outbound.outcomes import Missing


def collected(paths: Paths | Missing) -> Collected:
    """The facts of the repository shape, or why there are none."""
    if isinstance(paths, Missing):
        return Collected(missing={"": paths})
    return Collected({f"repository.{name}": value for name, value in files.facts(paths).items()})
