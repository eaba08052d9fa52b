"""The files that `factbook sources new` writes: a definition, and which commands are for it."""

from factbook.cli.sources.types import Type
from factbook.datasources.custom import starters as skeletons


def skeleton(name: str, type_: Type) -> str:
    """A file with a definition of this id; raises InputError for what no id can be."""
    text = skeletons.skeleton(name, type_)
    head = _HEAD.replace("<test>", "" if type_ == "push" else _TEST)
    return head.replace("<file>", f"{name}.yaml") + text


_HEAD = """\
# A data source of Factbook.
<test>#   factbook sources plan <file>                 shows what differs from the server
#   factbook sources apply <file>                publishes it
"""

_TEST = "#   factbook sources test <file> --entity REF    tries it on one entity\n"
