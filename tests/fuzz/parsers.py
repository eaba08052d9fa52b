"""Functions whose names say that they read something, and why they need no target."""

from typing import Final

_ROWS: Final = "reads rows of the database, which the service wrote itself"
_FILES: Final = "reads the file, whose content goes to cli.documents.parse"

NO_PARSERS: Final[dict[str, str]] = {
    "catalog.store.subjects.read": _ROWS,
    "collecting.connection_store.read": _ROWS,
    "collecting.defining.read": "calls sources.custom.definition.parse and looks connections up",
    "facts.definitions.read": _ROWS,
    "cli.documents.read": _FILES,
    "cli.sources.files.read": _FILES,
    "doctor.configuration.read": "calls settings.reading.load",
    "doctor.key.read": "looks whether there is a key",
    "sources.git.contents.read": "calls the program git; what that says is read in sources.git",
}
