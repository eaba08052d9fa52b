"""Writes of checks, scorecards and exemptions by people, held against their rights.

Checks and scorecards have drafts, versions and tags in the same way, and members of the groups that
own them can write them. Requests and decisions on exemptions follow the rules that hold at that
moment.

The starter scorecard is off until somebody adopts it, and then drafts like any others. A check of a
code host is there for each configured one, about the entities whose facts that host has. So what
one host does not know makes nothing unknown at another.
"""

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple, TypeVar

from factbook.audit.trail import AuditEntry
from factbook.auth import users
from factbook.auth.permissions import (
    CHECK_WRITE,
    EXEMPTION_DECIDE,
    EXEMPTION_REQUEST,
    OWN_WRITE,
    SCORECARD_WRITE,
)
from factbook.catalog import people_trust
from factbook.catalog.people_trust import PeopleTrust
from factbook.catalog.store.locks import WriteLocks
from factbook.checks.definitions import (
    definition_versions,
    exemption_store,
    publications,
    scorecard,
)
from factbook.checks.definitions.definition_versions import (
    StagedDefinition,
    StagedStore,
    StoredScorecard,
    check_store,
    scorecard_store,
)
from factbook.checks.definitions.exemption_store import (
    Decision,
    Exemption,
    ExemptionActor,
    ExemptionRequest,
)
from factbook.checks.definitions.scorecard import DEFAULT_DAYS, ExemptionRules
from factbook.checks.document_readers import DefinitionDocument
from factbook.definitions import documents
from factbook.definitions.documents import Document, document_owner, version_owners
from factbook.definitions.store import OwnedDefinition, not_own_error
from factbook.errors import (
    ConflictError,
    InvalidItemsError,
    NotAllowedError,
    PreconditionFailedError,
)
from factbook.facts.datasource import DataSource
from factbook.storage import Transaction

S = TypeVar("S", bound=StagedDefinition)
_WRITE_PERMISSIONS: Final = {"check": CHECK_WRITE, "scorecard": SCORECARD_WRITE}
_FILE: Final = "starter.yaml"
# What says how a check is in the scorecard.
_OF_ENTRY: Final = ("level", "weight", "advisory")
_ANNOTATION: Final = "metadata.annotations."
_LEAF: Final = ("fact", "operator", "value")


def make_tag(stored: StagedDefinition) -> str:
    """A tag of all that its author can change; it stays when a version comes into effect."""
    parts = (stored.id, stored.newest_version, stored.newest, stored.draft)
    return hashlib.blake2b(documents.encode_ordered(parts), digest_size=12).hexdigest()


def make_replacement(
    store: StagedStore[S],
    document: Document,
    actor: str,
    now: int,
    *,
    tags: Collection[str] | None,
    publish: bool,
    permitted: bool = False,
) -> Callable[[Transaction], S]:
    """The work that makes the document the draft of its definition, and may publish it at once.

    It raises PreconditionFailedError unless the definition has one of the tags; None is any.
    """

    def work(transaction: Transaction) -> S:
        if publish:
            publications.lock_definitions(transaction)
        else:
            publications.share_definitions(transaction)
        check_tag(store.read(transaction, document["id"]), tags)
        stored = store.put(transaction, document, actor, now)
        if not publish:
            return stored
        return store.publish(transaction, stored.id, actor, now, permitted=permitted)

    return work


def make_publication(
    store: StagedStore[S],
    id_: str,
    actor: str,
    now: int,
    tags: Collection[str] | None,
    *,
    permitted: bool,
) -> Callable[[Transaction], S]:
    """The work that publishes a draft; without a draft nothing changes."""

    def work(transaction: Transaction) -> S:
        publications.lock_definitions(transaction)
        check_tag(store.read(transaction, id_), tags)
        return store.publish(transaction, id_, actor, now, permitted=permitted)

    return work


def make_removal(
    store: StagedStore[S], id_: str, tags: Collection[str] | None
) -> Callable[[Transaction], None]:
    """The work that deletes a definition; it raises NotFoundError if there is none."""

    def work(transaction: Transaction) -> None:
        publications.lock_definitions(transaction)
        check_tag(store.read(transaction, id_), tags)
        if not store.delete(transaction, id_):
            raise store.missing(transaction, id_)

    return work


def check_tag(stored: StagedDefinition | None, tags: Collection[str] | None) -> None:
    """Raise PreconditionFailedError unless the definition has one of the tags; `*` is any."""
    if tags is None:
        return
    if stored is None or ("*" not in tags and make_tag(stored) not in tags):
        raise PreconditionFailedError("It was changed since; read it again, and build on that.")


class OwnedStaged(OwnedDefinition[StagedDefinition]):
    """A check or scorecard that groups of the actor own: what is in effect, pending and drafted."""

    def __init__(self, store: StagedStore[Any], id_: str, actor: str, trust: PeopleTrust) -> None:
        super().__init__(store, id_, actor, _WRITE_PERMISSIONS[store.noun], trust)

    def begin(self, transaction: Transaction, held: WriteLocks) -> None:
        """Look whose it is, when no definition is changed by others any more.

        Pushes evaluate at their end, while they hold their sets. So those are waited for without
        this lock in hand, and under it they are tried only: `held` begins anew without it.
        """
        publications.lock_definitions(transaction)
        super().begin(transaction, held)

    def owners(self, stored: StagedDefinition) -> frozenset[str]:
        return list_staged_owners(stored)

    def refusal(self) -> NotAllowedError:
        return not_own_error(self._store.noun, self._needed)


def list_staged_owners(stored: StagedDefinition) -> frozenset[str]:
    """The owners of what is in effect, what is pending and the draft; "" for one without."""
    return version_owners(stored.published, stored.pending, stored.draft)


class ExemptionCaller(NamedTuple):
    """A person as it calls: its reference, its permissions, and the sets that name its groups."""

    ref: str
    permissions: Collection[str]
    trust: PeopleTrust


def audit_exemption(action: str) -> Callable[[Exemption], AuditEntry]:
    """Entry of the audit for an exemption that was asked for or decided on."""

    def about(found: Exemption) -> AuditEntry:
        subject = {"check": found.check} if found.check else {"scorecard": found.scorecard}
        return AuditEntry(action, found.id, {"entity": found.entity, **subject})

    return about


def request_exemption(
    transaction: Transaction,
    wanted: ExemptionRequest,
    caller: ExemptionCaller,
    now: int,
    usual_days: int = DEFAULT_DAYS,
) -> Exemption:
    """Store a request; raises the errors of `store_request`.

    It lasts `usual_days` at most unless a scorecard says otherwise.

    Raises NotAllowedError unless the caller may ask, and NotFoundError for an unknown check,
    scorecard or entity.
    """
    publications.share_definitions(transaction)
    groups = people_trust.list_groups(transaction, caller.ref, caller.trust)
    subject, cards = _find_subject(transaction, wanted.check, wanted.scorecard)
    actor = make_exemption_actor(caller, groups, subject)
    owners = people_trust.list_owners(transaction, wanted.entity)
    if users.is_unproven(transaction, caller.ref):
        owners -= {caller.ref}
    exemption_store.check_requester(actor, owners)
    rules = list_counting_rules(subject, cards)
    return exemption_store.store_request(transaction, wanted, rules, actor, now, usual_days)


def decide_exemption(
    transaction: Transaction,
    exemption_id: str,
    decision: Decision,
    caller: ExemptionCaller,
    now: int,
    comment: str | None = None,
    own: bool = False,
    usual_days: int = DEFAULT_DAYS,
) -> Exemption:
    """Store a decision, with `own` also on what the caller asked for.

    What is approved is by the rules of that moment, which may be others than when it was asked for.
    Raises the errors of `store_decision`, and ConflictError for what they forbid by now.
    """
    publications.share_definitions(transaction)
    found = exemption_store.get_exemption_within(transaction, exemption_id)
    subject, cards = _find_subject(transaction, found.check, found.scorecard)
    rules = list_counting_rules(subject, cards)
    actor = make_exemption_actor(
        caller, people_trust.list_groups(transaction, caller.ref, caller.trust), subject
    )
    decided = exemption_store.store_decision(
        transaction, exemption_id, decision, rules, actor, now, comment=comment, own=own
    )
    if decision == "approve":
        _check_still_allowed(found, rules, usual_days)
    transaction.evaluate_checks()
    return decided


def _check_still_allowed(
    found: Exemption, rules: Collection[ExemptionRules], usual_days: int
) -> None:
    """Raise ConflictError if the rules forbid by now what they allowed to ask for."""
    asked = (found.check, found.scorecard, found.entity, found.reason, found.starts_at)
    try:
        exemption_store.check_exemption_rules(
            ExemptionRequest(*asked, found.until), rules, usual_days
        )
    except InvalidItemsError as error:
        told = "; ".join(f"{one['path']} {one['message']}" for one in error.problem_list)
        raise ConflictError(f"The rules have changed since it was asked for: {told}.") from None


def make_exemption_actor(
    caller: ExemptionCaller, groups: frozenset[str], subject: StagedDefinition
) -> ExemptionActor:
    """The actor towards a check or scorecard that exemptions are about."""
    return ExemptionActor(
        caller.ref,
        groups,
        may_request=EXEMPTION_REQUEST in caller.permissions,
        may_decide=EXEMPTION_DECIDE in caller.permissions,
        owns_subject=OWN_WRITE in caller.permissions and _find_newest_owner(subject) in groups,
    )


def list_counting_rules(
    subject: StagedDefinition, cards: Iterable[StoredScorecard]
) -> list[ExemptionRules]:
    """The exemption rules that count for a check or scorecard, of the scorecards that are about it.

    All of them, for a scorecard itself.
    """
    return [
        scorecard.parse_scorecard(card.newest or card.current).exemptions
        for card in cards
        if isinstance(subject, StoredScorecard) or do_rules_count(card, subject)
    ]


def do_rules_count(card: StoredScorecard, check: StagedDefinition) -> bool:
    """Return true if the exemption rules of a scorecard count for one of its checks.

    The owner of the check has to own the scorecard, or the rules were published with the permission
    to write scorecards: else anyone who owns a scorecard could decide on the checks of others.
    """
    owner = _find_newest_owner(check)
    return check.id in card.ruled_checks or (owner != "" and owner == _find_newest_owner(card))


def _find_subject(
    transaction: Transaction, check: str | None, scorecard_id: str | None
) -> tuple[StagedDefinition, list[StoredScorecard]]:
    """The check with the scorecards that name it, or the scorecard; raises NotFoundError."""
    if check is None:
        card = scorecard_store.existing_within(transaction, scorecard_id or "")
        return card, [card]
    found = check_store.existing_within(transaction, check)
    stored = scorecard_store.all_within(transaction)
    named = set(definition_versions.list_naming(stored, [check]))
    return found, [card for card in stored if card.id in named]


def _find_newest_owner(stored: StagedDefinition) -> str:
    """The owner that was published last, or that of a first draft; empty without one."""
    return document_owner(stored.newest or stored.current)


class Adoption(NamedTuple):
    """Ids of new drafts, and of those that were there before and stay as they are."""

    made: tuple[str, ...]
    kept: tuple[str, ...]


class MissingFact(NamedTuple):
    """A check of code hosts that is left out, as no data source has its fact."""

    check: str
    title: str
    fact: str


def list_starter_documents(sources: Iterable[DataSource]) -> list[DefinitionDocument]:
    """The checks of the catalog and of the code hosts among the sources, and the scorecard."""
    given = _load_starter()
    found = [*given["catalog"]]
    for source in sorted(sources, key=lambda one: one.id):
        known = {fact.name for fact in source.schema}
        found += [
            _make_host_check(one, source) for one in given["codeHost"] if one["fact"] in known
        ]
    card = {**given["scorecard"], "entries": [_make_entry(one) for one in found]}
    return [
        *(DefinitionDocument("check", _make_check(one, card["appliesTo"])) for one in found),
        DefinitionDocument("scorecard", card),
    ]


def list_missing_facts(sources: Iterable[DataSource]) -> list[MissingFact]:
    """The checks of code hosts that are left out."""
    known = {fact.name for source in sources for fact in source.schema}
    return [
        MissingFact(one["check"], one["title"], one["fact"])
        for one in _load_starter()["codeHost"]
        if one["fact"] not in known
    ]


def adopt_starter(
    transaction: Transaction, wanted: Iterable[DefinitionDocument], actor: str, now: int
) -> Adoption:
    """Make drafts of the documents whose ids are not taken yet."""
    made, kept = [], []
    for kind, document in wanted:
        store = check_store if kind == "check" else scorecard_store
        if store.read(transaction, document["id"]) is None:
            store.create(transaction, document, actor, now)
            made.append(document["id"])
        else:
            kept.append(document["id"])
    return Adoption(tuple(made), tuple(kept))


def _make_check(one: Mapping[str, Any], applies_to: Any) -> dict[str, Any]:
    rest = {name: value for name, value in one.items() if name not in {"check", *_OF_ENTRY}}
    return {"id": one["check"], "appliesTo": applies_to, **rest}


def _make_entry(one: Mapping[str, Any]) -> dict[str, Any]:
    return {"check": one["check"], **{name: one[name] for name in _OF_ENTRY if name in one}}


def _make_host_check(one: Mapping[str, Any], source: DataSource) -> dict[str, Any]:
    """A check of one code host."""
    leaf = {"source": source.id, **{name: one[name] for name in _LEAF}}
    rest = {name: value for name, value in one.items() if name not in {"check", "title", *_LEAF}}
    about = [{"kind": "component", **conditions} for conditions in source.entity_filter or [{}]]
    good, bad = _make_examples(one)
    entity = _make_example_entity(about[0])
    return {
        "check": f"{source.id}-{one['check']}",
        "title": f"{one['title']} ({source.title})",
        **rest,
        "appliesTo": about,
        "rule": leaf,
        "tests": [
            {"entity": entity, "facts": {source.id: {one["fact"]: good}}, "expect": "pass"},
            {"entity": entity, "facts": {source.id: {one["fact"]: bad}}, "expect": "fail"},
            {"entity": entity, "facts": {source.id: {}}, "expect": "unknown"},
        ],
    }


def _make_example_entity(conditions: Mapping[str, Any]) -> dict[str, Any]:
    """An entity with the annotations that have to exist."""
    keys = [key.removeprefix(_ANNOTATION) for key in conditions if key.startswith(_ANNOTATION)]
    annotations = dict.fromkeys(keys, "example")
    return {"kind": "Component", "metadata": {"name": "example", "annotations": annotations}}


def _make_examples(one: Mapping[str, Any]) -> tuple[Any, Any]:
    """A value that passes, and one that fails."""
    value = one["value"]
    if isinstance(value, bool):
        return value, not value
    return value, value - 1 if one["operator"].startswith("greater") else value + 1


@cache
def _load_starter() -> dict[str, Any]:
    # Not with the service: few ask for the starter, and nothing else of it reads YAML so early.
    from factbook import safe_yaml  # noqa: PLC0415

    text = files("factbook.checks.definitions").joinpath(_FILE).read_text("utf-8")
    found: dict[str, Any] = safe_yaml.load(text)
    return found
