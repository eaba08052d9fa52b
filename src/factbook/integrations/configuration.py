"""From a table of the settings to an integration: its options, the instance, and the vendor."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, Protocol, TypeVar, get_type_hints

import msgspec

from factbook.clock import Clock, now
from factbook.errors import ConfigurationError
from factbook.facts.datasource import DataSource, Handler, Lifecycle
from factbook.facts.schema import Fact
from factbook.facts.shapes import SHAPES
from factbook.integrations.integration import Integration, facts_of
from factbook.outbound.client import Credential, HttpClient
from factbook.settings import option_tables

_CONFIDENTIAL: Final = re.compile(r"secret|password|token|key", re.IGNORECASE)
_SHAPES: Final = {shape.name: shape for shape in SHAPES}

Options = TypeVar("Options", bound="InstanceOptions")


class InstanceOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Table of the settings that configures one instance of a vendor.

    Each field is described by `about`; the description of a secret begins with `Secret.`. Where
    the options are shown, fields are left out whose name or description could be of a secret, and
    those without a description.
    """

    def __post_init__(self) -> None:
        for problem in self.problems():
            raise ConfigurationError(problem)

    def problems(self) -> Iterable[str]:
        """The mistakes in the table, of which the first is reported. None contains a value."""
        return ()

    def __repr__(self) -> str:
        """Without the secrets."""
        hints = get_type_hints(type(self), include_extras=True)
        shown = [
            f"{name}={getattr(self, name)!r}"
            for name in self.__struct_fields__
            if _is_public(name, getattr(hints[name], "__metadata__", ()))
        ]
        return f"{type(self).__name__}({', '.join(shown)})"


def _is_public(name: str, described: Iterable[Any]) -> bool:
    texts = [text for meta in described if (text := getattr(meta, "description", None))]
    return bool(texts) and not any(map(_CONFIDENTIAL.search, (name, *texts)))


class Configure(Protocol):
    """Makes an integration from the name and the values of a table of the settings."""

    def __call__(self, name: str, values: Mapping[str, Any], *, clock: Clock = now) -> Integration:
        """The integration; raises ConfigurationError, whose text never contains a value."""
        ...


@dataclass(frozen=True, kw_only=True)
class Vendor:
    """Type of integration, exported by its folder as INTEGRATION.

    `options` is the type of its table in the settings; `configured` reads such a table.
    """

    id: str
    title: str
    options: type[msgspec.Struct]
    facts: tuple[Fact, ...]
    fills: tuple[str, ...]
    configured: Configure


@dataclass(frozen=True, kw_only=True)
class Instance(Generic[Options]):
    """Table `[integrations.<vendor>.<name>]` of the settings, once read.

    `id` and `title` are those of its data source: `github` if it is named `default`, otherwise
    `github-<name>`. `facts` are those of the vendor.
    """

    vendor: str
    id: str
    title: str
    facts: tuple[Fact, ...]
    options: Options
    clock: Clock

    def source(
        self, description: str, annotations: Iterable[str], *, minutes: int = 30
    ) -> DataSource:
        """The data source, for entities that have one of the annotations.

        Runs every six hours; results are kept for 90 days. `minutes` is the time limit of a run.
        """
        return DataSource(
            id=self.id,
            title=self.title,
            description=description,
            cadence="0 */6 * * *",
            lifecycle=Lifecycle(time_to_live={"days": 90}),
            handler=Handler("builtin", self.id, builtin_id=self.vendor),
            timeout={"minutes": minutes},
            entity_filter=[
                {f"metadata.annotations.{key}": {"exists": True}} for key in annotations
            ],
            schema=self.facts,
        )

    def credential(
        self, headers: Mapping[str, str], of: str = ""
    ) -> Callable[[HttpClient], Credential]:
        """The function that makes a credential of headers that never change."""
        fixed = Credential.fixed(f"{self.id} {of}" if of else self.id, headers)
        return lambda _: fixed


def vendor(
    id_: str,
    title: str,
    options: type[Options],
    configured: Callable[[Instance[Options]], Integration],
    fills: tuple[str, ...] = (),
    *,
    facts: tuple[Fact, ...] = (),
) -> Vendor:
    """A vendor whose integrations `configured` makes, all but `fills`.

    Its facts are those of the shapes that it `fills`, and `facts` of its own.
    """
    brought = (*(fact for place in fills for fact in _filling(place)), *facts)

    def configure(name: str, values: Mapping[str, Any], *, clock: Clock = now) -> Integration:
        instance = Instance(
            vendor=id_,
            id=option_tables.source_id(id_, name),
            title=option_tables.instance_title(title, name),
            facts=brought,
            options=option_tables.read_options(id_, name, values, options),
            clock=clock,
        )
        return replace(configured(instance), fills=fills)

    return Vendor(
        id=id_, title=title, options=options, facts=brought, fills=fills, configured=configure
    )


def _filling(place: str) -> tuple[Fact, ...]:
    """The facts of a shape (`codehost`), or of a member (`security.dependencyAlerts`)."""
    shape, _, member = place.partition(".")
    return facts_of(_SHAPES[shape], *filter(None, (member,)))
