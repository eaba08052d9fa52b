"""Events from the systems that are imported: hints about what is to be read again."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

# By lower-case name.
Headers = Mapping[bytes, bytes]


class EventRules(NamedTuple):
    """Rules for the events that a system sends to an importer.

    `is_signed` is true for a body that was signed with the secret; `delivery` is the id of a
    delivery, the same when it is sent again. `hints` name what is to be read again, in texts that
    the importer understands; there are none where nothing is.
    """

    is_signed: Callable[[Headers, bytes | bytearray], bool]
    delivery: Callable[[Headers], str]
    hints: Callable[[Headers, bytes | bytearray], frozenset[str]]
