"""Plan of what makes the exemptions of a server match the files, and its execution.

Files ask; they do not decide. Somebody else than who asked approves, by a run of their own.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple

import msgspec

from factbook import clock
from factbook.checks.exemptions import exemption
from factbook.checks.exemptions.exemption import ExemptionRequest
from factbook.cli.checks.files import ReadDocument
from factbook.cli.definition_plan import Action, DefinitionChange, FieldDifference, PlanStep
from factbook.client import Client
from factbook.client.calls import get, segment, send
from factbook.clock import iso
from factbook.schemas.checks import Exemptions, ShownExemption

_PATH: Final = "/api/tech-insights/v1/exemptions"
_OPEN: Final = ("requested", "approved")


class ExemptionOptions(NamedTuple):
    """Steps that are taken only if asked for: to `approve`, and to `revoke`."""

    approve: bool = False
    revoke: bool = False


class ExemptionKey(NamedTuple):
    """An entity, and the check or scorecard that it is exempt from."""

    check: str | None
    scorecard: str | None
    entity: str

    def __str__(self) -> str:
        return f"{self.check or self.scorecard} of {self.entity}"


@dataclass(frozen=True)
class ExemptionChange(PlanStep):
    """Change of one exemption; `there` is the one on the server, if there is one."""

    # Its entity says who may ask, and its check who decides.
    own_statuses: ClassVar[frozenset[int]] = PlanStep.own_statuses | {403}

    there: ShownExemption | None = None

    @property
    def name(self) -> str:
        return f"exemption {self.id}"

    def as_json(self) -> dict[str, Any]:
        return {"kind": "exemption", **super().as_json()}


class ExemptionPlan(NamedTuple):
    """Steps for exemptions, and what to know of files for which nothing is to do."""

    steps: list[ExemptionChange]
    notes: list[str]


def plan(client: Client, read: Sequence[ReadDocument], options: ExemptionOptions) -> ExemptionPlan:
    """The steps from the server to the exemptions of files; nothing is asked if there are none."""
    documents = [one for one in read if one.kind == "exemption"]
    found = ExemptionPlan([], [])
    if not (documents or options.revoke):
        return found
    there = {_key(one): one for one in every_open(client)}
    now = clock.now()
    kept = set()
    for one in documents:
        wanted = exemption.parse(one.document, 0)
        key = ExemptionKey(wanted.check, wanted.scorecard, wanted.entity)
        kept.add(key)
        if wanted.until is not None and wanted.until <= now:
            found.notes.append(f"exemption {key} is over; {one.origin} can go.")
        elif key in there:
            _compare(found, one, key, wanted, there[key], options)
        elif (last := _last(client, key)) and not _differences(last, wanted):
            found.notes.append(f"exemption {key} was {last.state}; a changed file asks anew.")
        else:
            found.steps.append(_step("request", key, one))
    if options.revoke:
        gone = sorted((key for key in there if key not in kept), key=str)
        found.steps.extend(_step("revoke", key, None, there[key]) for key in gone)
    return found


def every_open(client: Client) -> Iterator[ShownExemption]:
    """The exemptions of the server that are asked for or in force."""
    for state in _OPEN:
        yield from _every(client, state=state)


def document(one: ShownExemption) -> dict[str, Any]:
    """The document of a file that asks for an exemption."""
    members = {
        **_key(one)._asdict(),
        "reason": one.reason,
        "link": one.link,
        "from": one.from_,
        "until": one.until,
    }
    return {name: value for name, value in members.items() if value is not None}


def run(step: ExemptionChange, client: Client) -> str:
    """Execute a step, and say what was done."""
    decision = "deny" if step.there and step.there.state == "requested" else "revoke"
    if step.action == "approve":
        _decide(client, step, "approve")
        return "approved"
    if step.action in ("replace", "revoke"):
        _decide(client, step, decision)
    if step.action == "revoke":
        return "denied" if decision == "deny" else "revoked"
    client.send(send("POST", _PATH, ShownExemption, step.document))
    return "asked for; somebody else approves it"


def _compare(
    found: ExemptionPlan,
    one: ReadDocument,
    key: ExemptionKey,
    wanted: ExemptionRequest,
    there: ShownExemption,
    options: ExemptionOptions,
) -> None:
    """Add the step, or the note, for a file whose exemption is open on the server."""
    differences = _differences(there, wanted)
    if differences and options.revoke:
        found.steps.append(_step("replace", key, one, there, differences))
    elif differences:
        names = ", ".join(each.path for each in differences)
        found.notes.append(
            f"exemption {key} has another {names} than {one.origin}; --revoke asks for it anew."
        )
    elif there.state == "requested" and options.approve:
        found.steps.append(_step("approve", key, one, there))
    elif there.state == "requested":
        found.notes.append(f"exemption {key} waits for somebody else to approve it.")


def _step(
    action: Action,
    key: ExemptionKey,
    one: ReadDocument | None,
    there: ShownExemption | None = None,
    differences: Sequence[FieldDifference] = (),
) -> ExemptionChange:
    change = DefinitionChange(action, list(differences))
    if one is None:
        return ExemptionChange(change, str(key), there=there)
    return ExemptionChange(change, str(key), one.origin, one.document, there)


def _decide(client: Client, step: ExemptionChange, decision: str) -> None:
    assert step.there is not None
    path = f"{_PATH}/{segment(step.there.id)}/{decision}"
    client.send(send("POST", path, ShownExemption, {"comment": "By files."}))


def _every(client: Client, **wanted: Any) -> Iterator[ShownExemption]:
    cursor: str | None = None
    while True:
        page = client.send(get(_PATH, Exemptions, cursor=cursor, **wanted))
        yield from page.exemptions
        cursor = page.next_cursor
        if cursor is None:
            return


def _last(client: Client, key: ExemptionKey) -> ShownExemption | None:
    """The newest exemption of the same, if somebody has decided against it."""
    page = client.send(get(_PATH, Exemptions, limit=1, **key._asdict()))
    last = page.exemptions[0] if page.exemptions else None
    return last if last and last.state in ("denied", "revoked") else None


def _key(one: ShownExemption) -> ExemptionKey:
    return ExemptionKey(one.check, one.scorecard, one.entity)


def _differences(there: ShownExemption, wanted: ExemptionRequest) -> list[FieldDifference]:
    """The members that differ; without a start in the file, that of the request stays."""
    until = None if wanted.until is None else iso(wanted.until)
    start = iso(wanted.starts_at) if wanted.starts_at else there.from_
    pairs = {
        "reason": (there.reason, wanted.reason),
        "link": (there.link, wanted.link),
        "from": (there.from_, start),
        "until": (there.until, until),
    }
    return [
        FieldDifference(name, *map(_text, values))
        for name, values in pairs.items()
        if values[0] != values[1]
    ]


def _text(value: str | None) -> str | None:
    return None if value is None else msgspec.json.encode(value).decode()
