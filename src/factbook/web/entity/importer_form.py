"""Form of an importer: a field for each option of its kind; secrets are taken and never shown."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Self

from factbook.importers import option_fields
from factbook.importers.importer import ImporterKind
from factbook.importers.importer_store import ImporterInput, StoredImporter
from factbook.importers.option_fields import ACCOUNT, INTEGRATION, OptionField
from factbook.settings.option_tables import DEFAULT
from factbook.web.site.forms import Form

# What a select has for credentials of its own.
OWN: Final = ""
_NEEDED: Final = re.compile(r"(Secret\. )?Needed\.")
_NEEDED_OF_OWN: Final = "is needed with a credential of its own"
_NAMES: Final = re.compile(r"[a-z_]+")
_SPELLINGS: Final = {"Api": "API", "Graphql": "GraphQL", "url": "URL", "Id": "ID", "id": "ID"}


class FormProblem(NamedTuple):
    """Problem with a field, by the path of its option; "" if no field has it."""

    path: str
    message: str


@dataclass(frozen=True, kw_only=True)
class ImporterForm:
    """Values of the form's fields by path, as typed: lists have a line for each text.

    `integration` is the table of the settings with the credential, "" for an account of its own.
    """

    kind: ImporterKind[Any]
    name: str = DEFAULT
    integration: str = OWN
    values: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    removed: frozenset[str] = frozenset()

    @classmethod
    def new(cls, kind: ImporterKind[Any], integration: str = OWN) -> Self:
        """Form of a new importer, with the defaults of its options."""
        values = {one.path: _typed(one.default) for one in cls._public(kind)}
        return cls(kind=kind, integration=integration, values=values)

    @classmethod
    def shown(cls, kind: ImporterKind[Any], stored: StoredImporter) -> Self:
        """Form of a stored importer."""
        kept = stored.options.values
        values = {one.path: _typed(kept.get(one.path, one.default)) for one in cls._public(kind)}
        integration = kept.get(INTEGRATION, OWN)
        return cls(kind=kind, name=stored.name, integration=integration, values=values)

    @classmethod
    def of(cls, kind: ImporterKind[Any], sent: Form, name: str | None = None) -> Self:
        """Form as sent; with `name`, that of the importer with this name."""
        every = option_fields.fields(kind)
        return cls(
            kind=kind,
            name=sent.one("name") if name is None else name,
            integration=sent.one(INTEGRATION),
            values={one.path: sent.one(one.path) for one in every if not one.is_secret},
            secrets={one.path: sent.one(one.path) for one in every if one.is_secret},
            removed=frozenset(sent.all("remove")),
        )

    @property
    def fields(self) -> list[OptionField]:
        """The fields, those of the account last."""
        return option_fields.fields(self.kind)

    def label(self, path: str) -> str:
        """The label of a field."""
        words = path.rpartition(".")[2].replace("_", " ").capitalize().split()
        return " ".join(_SPELLINGS.get(word, word) for word in words)

    def lacking(self, kept: Iterable[str] = ()) -> list[FormProblem]:
        """The fields that have to have a value and have none; `kept` secrets have one."""
        stays = set(kept) - self.removed
        return [
            FormProblem(one.path, _NEEDED_OF_OWN if one.path == self.kind.owners else "is needed")
            for one in self.fields
            if self._counts(one) and self._needs(one) and one.path not in stays
            if not (self.secrets if one.is_secret else self.values).get(one.path, "").strip()
        ]

    def placed(self, problems: Iterable[Mapping[str, str]]) -> list[FormProblem]:
        """Problems at their fields: one without a path is that of the first option it names."""
        paths = {one.path.rpartition(".")[2]: one.path for one in self.fields} | {"name": "name"}
        found = []
        for one in problems:
            words = _NAMES.findall(one["message"])
            path = one["path"] or next((paths[word] for word in words if word in paths), "")
            found.append(FormProblem(path, one["message"]))
        return found

    def wanted(self) -> ImporterInput:
        """Importer from the form; an empty secret keeps the stored one."""
        every = [one for one in self.fields if self._counts(one)]
        values = {one.path: value for one in every for value in self._values(one)}
        if self.kind.vendor and self.integration:
            values[INTEGRATION] = self.integration
        secrets = {
            one.path: self.secrets.get(one.path) or None
            for one in every
            if one.is_secret and one.path not in self.removed
        }
        return ImporterInput(kind=self.kind.id, name=self.name, values=values, secrets=secrets)

    def _counts(self, one: OptionField) -> bool:
        """False for an option of an account that is not used."""
        return not (self.integration and one.path.startswith(f"{ACCOUNT}."))

    def _needs(self, one: OptionField) -> bool:
        """True for an option that has to have a value; an account of its own names no owners."""
        is_owners = one.path == self.kind.owners and not self.integration
        return is_owners or bool(_NEEDED.match(one.about))

    def _values(self, one: OptionField) -> Iterator[Any]:
        """The value of a field; none where it is empty, which has the default."""
        text = self.values.get(one.path, "")
        if one.is_secret:
            return
        if one.type == "switch":
            yield text == "yes"
        elif one.type == "list":
            if lines := [line.strip() for line in text.splitlines() if line.strip()]:
                yield lines
        elif text:
            yield text

    @staticmethod
    def _public(kind: ImporterKind[Any]) -> Iterator[OptionField]:
        return (one for one in option_fields.fields(kind) if not one.is_secret)


def _typed(value: Any) -> str:
    """A value as a person types it."""
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, list | tuple):
        return "\n".join(map(str, value))
    return "" if value is None else str(value)
