"""Parsers of importers: files of directories."""

import msgspec

from factbook.importers import ldif as ldif_importer
from factbook.importers.ldif import (
    WANTED_ATTRIBUTES,
    DistinguishedNameError,
    LdifDirectory,
    LdifImportOptions,
    find_relative_name,
    normalize_name,
)
from tests.fuzz.promises import check_told, lines
from tests.fuzz.target import Target

_OPTIONS = LdifImportOptions(path="people.ldif")


def ldif(data: bytes) -> None:
    """A file is records and problems with their lines; names are the same when read again."""
    content = ldif_importer.parse_ldif(data, WANTED_ATTRIBUTES)
    for record in [*content.records, *content.broken]:
        assert record.line > 0
        assert normalize_name(record.key) == record.key
        assert record.values.keys() <= {
            form for name in WANTED_ATTRIBUTES for form in (name, f"{name};")
        }
    assert content.complete or content.problems
    assert len(content.problems) >= bool(content.broken)
    assert all(one.message and one.line >= 0 for one in content.problems)
    read = LdifDirectory.of(content.records, _OPTIONS.namespace, 0)
    for part in ldif_importer.make_directory_snapshot(content, _OPTIONS, read).parts:
        assert all(msgspec.json.encode(item.entity) for item in part.items)
    for line in lines(data, 2):
        find_relative_name(line)
        try:
            assert normalize_name(found := normalize_name(line)) == found
        except DistinguishedNameError as error:
            check_told(error)


TARGETS = (Target("ldif", ldif, ("importers.ldif.parse_ldif",)),)
