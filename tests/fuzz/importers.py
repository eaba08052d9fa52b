"""Parsers of importers: files of directories."""

import msgspec

from factbook.importers.ldif import directory, records
from factbook.importers.ldif.distinguished_names import DistinguishedNameError, normal, relative
from factbook.importers.ldif.options import LdifImportOptions
from factbook.importers.ldif.people import WANTED, LdifDirectory
from tests.fuzz.promises import check_told, lines
from tests.fuzz.target import Target

_OPTIONS = LdifImportOptions(path="people.ldif")


def ldif(data: bytes) -> None:
    """A file is records and problems with their lines; names are the same when read again."""
    content = records.parsed(data, WANTED)
    for record in [*content.records, *content.broken]:
        assert record.line > 0
        assert normal(record.key) == record.key
        assert record.values.keys() <= {form for name in WANTED for form in (name, f"{name};")}
    assert content.complete or content.problems
    assert len(content.problems) >= bool(content.broken)
    assert all(one.message and one.line >= 0 for one in content.problems)
    read = LdifDirectory.of(content.records, _OPTIONS.namespace, 0)
    for part in directory.of_directory(content, _OPTIONS, read).parts:
        assert all(msgspec.json.encode(item.entity) for item in part.items)
    for line in lines(data, 2):
        relative(line)
        try:
            assert normal(found := normal(line)) == found
        except DistinguishedNameError as error:
            check_told(error)


TARGETS = (Target("ldif", ldif, ("importers.ldif.records.parsed",)),)
