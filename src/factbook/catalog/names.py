"""Names of entities made of names that other systems give."""

import re
import unicodedata
from typing import Final

_LONGEST: Final = 63
_FOREIGN: Final = re.compile(r"[^A-Za-z0-9._-]+")
_ENDS: Final = "-._"


def entity_name(text: str) -> str:
    """The text as a name that every rule of names allows; empty if nothing of it is left.

    Letters lose their accents, and what is neither a letter of a-z, a digit nor one of `-_.`
    becomes a hyphen: `Équipe Achats (EU)` is `Equipe-Achats-EU`. It is cut after 63 characters.
    """
    decomposed = unicodedata.normalize("NFKD", text[: 4 * _LONGEST])
    letters = "".join(one for one in decomposed if not unicodedata.combining(one))
    return _FOREIGN.sub("-", letters).strip(_ENDS)[:_LONGEST].strip(_ENDS)
