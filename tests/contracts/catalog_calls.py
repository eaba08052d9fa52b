"""What the programs of @backstage/catalog-client are asked, and what they have to find."""

import json
from pathlib import Path
from typing import Any, NamedTuple

from tests.api import query_oracle
from tests.api.oracle import index, ref
from tests.contracts import node
from tests.contracts.sample_catalog import Entity, Sample, plain

EXISTS = "CATALOG_FILTER_EXISTS"

Call = list[Any]


class Answer(NamedTuple):
    """What one call gave; `value` is None when it threw `error`."""

    requests: list[str]
    value: Any = None
    error: dict[str, Any] | None = None
    memory: Any = None


class Catalog(NamedTuple):
    """The client, and what it has to find."""

    sample: Sample
    folder: Path

    def calls(self, *calls: Call, remember: bool = False) -> list[Answer]:
        """What the client answers to each of the calls."""
        file = self.folder / "calls.json"  # too long for an argument
        file.write_text(json.dumps({"calls": calls, "remember": remember}))
        url, token = self.sample.server.url, self.sample.token
        said = node.run("catalog-client.mjs", url, token, str(file))
        return [Answer(**one) for one in json.loads(said)]

    def call(self, *call: Any) -> Any:
        """The value of one call that succeeds."""
        [answer] = self.calls(list(call))
        assert answer.error is None, answer
        return answer.value

    @property
    def entities(self) -> list[Entity]:
        return self.sample.entities

    @property
    def by_ref(self) -> dict[str, Entity]:
        return self.sample.by_ref

    def found(self, filter: Any = None, orders: tuple[str, ...] = ()) -> list[Entity]:
        """The entities that pass a filter of the client, in order."""
        return self.sample.found(texts(filter or []), orders)

    def meeting(self, predicate: dict[str, Any]) -> list[Entity]:
        """The entities that meet a predicate, by reference."""
        return [one for one in self.entities if query_oracle.fits(index(one), predicate)]


def texts(filter: Any) -> list[str]:
    """A filter of the client as the texts of the catalog API."""
    return [
        ",".join(
            key if one == EXISTS else f"{key}={one}"
            for key, values in alternative.items()
            for one in (values if isinstance(values, list) else [values])
        )
        for alternative in (filter if isinstance(filter, list) else [filter])
    ]


def whole(items: list[Entity]) -> list[Entity]:
    return [plain(item) for item in items]


def refs(items: list[Entity]) -> list[str]:
    return [ref(item) for item in items]
