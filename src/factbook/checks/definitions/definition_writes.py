"""Validation and permissions for writes of checks, scorecards and exemptions.

Checks and scorecards share drafts, versions and tags. Members of the owning groups can write them.
Rules can test any value, so results could disclose values: authors need permission to read every
source that their check reads. Exemption requests and decisions follow the rules in force at the
time.

The starter scorecard is off until someone adopts it; then it becomes ordinary drafts. Code host
checks exist once per configured host and apply to the entities that the host has facts about. So
facts missing at one host don't cause unknown results at another.
"""

import asyncio
import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, partial
from importlib.resources import files
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from factbook.audit.trail import AuditEntry
from factbook.auth import users
from factbook.auth.permissions import (
    CATALOG_READ,
    CHECK_READ,
    CHECK_WRITE,
    EXEMPTION_DECIDE,
    EXEMPTION_REQUEST,
    OWN_WRITE,
    SCORECARD_WRITE,
    SOURCE_READ,
)
from factbook.catalog import people_trust
from factbook.catalog.people_trust import PeopleTrust
from factbook.catalog.store.locks import WriteLocks
from factbook.checks import state
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
from factbook.checks.definitions.scorecard import DEFAULT_DAYS, ExemptionRules, Scorecard
from factbook.checks.document_readers import DefinitionDocument
from factbook.checks.rules import check_definition, language
from factbook.checks.rules.check_definition import Check, parse_check, parse_stored_check
from factbook.checks.rules.check_trial import report_constant
from factbook.checks.rules.language import (
    CHECKS,
    ENTITY,
    OPERATORS,
    FactCondition,
    FactReference,
    Operator,
    Rule,
    ValueForm,
)
from factbook.datasources.registry import Registry
from factbook.definitions import documents
from factbook.definitions.documents import Document, document_owner, version_owners
from factbook.definitions.store import OwnedDefinition, not_own_error
from factbook.errors import (
    ConflictError,
    FactbookError,
    InvalidItemsError,
    NotAllowedError,
    PreconditionFailedError,
    Problem,
    Problems,
    one_of,
    suggestion,
)
from factbook.facts.datasource import DataSource, Report
from factbook.facts.schema import TYPES, Fact, FactType
from factbook.storage import Database, Transaction

_STATES: Final = tuple(word for word in state.WORDS if word != "unknown")
_STATE_OPERATORS: Final = ("equal", "notEqual", "in", "notIn", "isKnown", "isUnknown")
_COLLECTED: Final = ("freshWithin", "reasonIs")
_NUMBERS: Final = frozenset[FactType]({"integer", "float"})
# Value forms whose type must match the fact.
_OF_THE_FACT: Final = (ValueForm.SCALAR, ValueForm.ITEM, ValueForm.LIST)
_PERMISSIONS_OF_SOURCES = {ENTITY: CATALOG_READ, CHECKS: CHECK_READ}
_READS_CHECKS: Final = f'"{CHECKS}"'.encode()


class CheckContext(NamedTuple):
    """Targets of a check's references: data sources and other checks, by id."""

    sources: Mapping[str, DataSource]
    checks: Mapping[str, Check]


def find_check_problems(check: Check, context: CheckContext) -> list[Problem]:
    """Every mistake in the check's references, with its path; empty if there are none."""
    mistakes = Problems()
    for path, rule in check.rules():
        validate_rule(rule, path, context, mistakes.report)
    _validate_cycle(check, context, mistakes.report)
    for path, text in check.templates():
        for fact in check_definition.parse_template(text).facts():
            _find_fact(fact, context, _report_at(path, mistakes.report))
    return mistakes.found


def validate_rule(rule: Rule, path: str, context: CheckContext, report: Report) -> None:
    """Report every mistake in a condition's references, with its path."""
    mistakes = 0

    def report_mistake(where: str, message: str) -> None:
        nonlocal mistakes
        mistakes += 1
        report(where, message)

    def find_type(reference: FactReference) -> FactType | None:
        source = context.sources.get(reference.source)
        if source is None or reference.path is not None:
            return None
        return next((fact.type for fact in source.schema if fact.name == reference.fact), None)

    for where, leaf in language.walk_leaves(rule, path):
        _validate_comparison(leaf, where, context, report_mistake)
    if not mistakes:
        report_constant(rule, path, find_type, report)


def _validate_comparison(
    leaf: FactCondition, path: str, context: CheckContext, report: Report
) -> None:
    operator = OPERATORS[leaf.operator]
    if leaf.fact.source == CHECKS:
        _validate_state(leaf, path, context, report)
        return
    if leaf.fact.source == ENTITY and operator.name in _COLLECTED:
        report(f"{path}.operator", f"{operator.name} is for facts of data sources")
        return
    fact = _find_fact(leaf.fact, context, _report_below(path, report))
    if fact is not None:
        _validate_type(leaf, operator, fact, path, report)
    if isinstance(leaf.value, FactReference):
        _validate_other_fact(leaf, leaf.value, fact, f"{path}.value", context, report)
    elif fact is not None and leaf.fact.path is None:
        _validate_kind(leaf.value, operator, fact, f"{path}.value", report)


def _validate_state(leaf: FactCondition, path: str, context: CheckContext, report: Report) -> None:
    if leaf.operator not in _STATE_OPERATORS:
        words = one_of(leaf.operator, _STATE_OPERATORS)
        report(f"{path}.operator", f"{words} for the state of a check")
    elif leaf.value is not None:
        for one in leaf.value if isinstance(leaf.value, list) else [leaf.value]:
            if one not in _STATES:
                hint = "; ask with isUnknown if it is unknown"
                report(f"{path}.value", f"{one_of(one, _STATES)}{hint}")
    if leaf.fact.fact not in context.checks:
        known = _suggest_near(leaf.fact.fact, list(context.checks))
        report(f"{path}.fact", f"names no check{known}")


def _find_fact(reference: FactReference, context: CheckContext, report: Report) -> Fact | None:
    """The fact of a data source; None for the entity's document and for missing facts.

    Reports mistakes for the members `source` and `fact`.
    """
    if reference.source == ENTITY:
        return None
    source = context.sources.get(reference.source)
    if source is None:
        known = _suggest_near(reference.source, [*context.sources, ENTITY, CHECKS])
        report("source", f"names no data source{known}")
        return None
    facts = {fact.name: fact for fact in source.schema}
    if reference.fact not in facts:
        known = _suggest_near(reference.fact, list(facts))
        report("fact", f"names no fact of {source.id}{known}")
        return None
    return facts[reference.fact]


def _validate_type(
    leaf: FactCondition, operator: Operator, fact: Fact, path: str, report: Report
) -> None:
    if leaf.fact.path is not None:
        if fact.type != "object":
            report(f"{path}.path", f"is for facts of type object; {fact.name} is {fact.type}")
        return
    if fact.type not in operator.types:
        others = [one.name for one in OPERATORS.values() if fact.type in one.types]
        hint = "; give a path into it" if fact.type == "object" else ""
        report(
            f"{path}.operator",
            f"{operator.name} does not take facts of type {fact.type}, as {fact.name} is{hint}; "
            f"these do: {', '.join(others)}",
        )


def _validate_kind(value: Any, operator: Operator, fact: Fact, path: str, report: Report) -> None:
    if operator.form not in _OF_THE_FACT or fact.type not in operator.types or fact.type == "set":
        return
    for one in value if isinstance(value, list) else [value]:
        fits = TYPES["float" if fact.type == "integer" else fact.type].holds(one)
        if not fits:
            wanted = TYPES[fact.type].words
            report(path, f"has to be {wanted}, as {fact.name} is")
            return


def _validate_other_fact(
    leaf: FactCondition,
    other: FactReference,
    fact: Fact | None,
    path: str,
    context: CheckContext,
    report: Report,
) -> None:
    if other == leaf.fact:
        report(path, "is the compared fact itself")
        return
    if other.source == CHECKS:
        report(f"{path}.source", "cannot be the state of a check")
        return
    bound = _find_fact(other, context, _report_below(path, report))
    if bound is None or fact is None or leaf.fact.path or other.path:
        return
    are_numbers = {fact.type, bound.type} <= _NUMBERS
    if OPERATORS[leaf.operator].form is ValueForm.LIST:
        is_comparable = bound.type == "set"
    elif fact.type == "set":
        is_comparable = bound.type in _NUMBERS or bound.type == "string"
    else:
        is_comparable = fact.type == bound.type or are_numbers
    if not is_comparable:
        report(path, f"is of type {bound.type}, which can't be compared with {fact.type}")
    elif fact.unit != bound.unit and are_numbers:
        report(path, f"is in {bound.unit or 'no unit'}, and {fact.name} in {fact.unit or 'none'}")


def _validate_cycle(check: Check, context: CheckContext, report: Report) -> None:
    checks = {**context.checks, check.id: check}

    def reads(check_id: str) -> Iterable[str]:
        return check_definition.list_checks_read(checks[check_id]) if check_id in checks else ()

    for path, rule in check.rules():
        for where, leaf in language.walk_leaves(rule, path):
            if leaf.fact.source == CHECKS:
                way = check_definition.find_way_back(check.id, leaf.fact.fact, reads)
                if way:
                    report(f"{where}.fact", f"makes a cycle: {' → '.join(way)}")


def _report_at(path: str, report: Report) -> Report:
    return lambda _, message: report(path, message)


def _report_below(path: str, report: Report) -> Report:
    return lambda member, message: report(f"{path}.{member}", message)


def _suggest_near(name: str, names: Sequence[str]) -> str:
    return f".{suggestion(name, names)}".rstrip(".")


def list_needed_permissions(check: Check) -> tuple[str, ...]:
    """The permissions needed to read the sources of the check, sorted."""
    sources = {fact.source for _, rule in check.rules() for fact in language.walk_references(rule)}
    for _, text in check.templates():
        sources |= check_definition.parse_template(text).sources()
    permissions = {_PERMISSIONS_OF_SOURCES.get(source, SOURCE_READ) for source in sources}
    if check.applies_to is not None:
        permissions.add(CATALOG_READ)
    return tuple(sorted(permissions))


CheckDocument = dict[str, Any]


async def read_check_document(
    document: CheckDocument,
    database: Database,
    registry: Registry,
    max_depth: int,
    check_id: str | None = None,
    authorize: Callable[[Check], None] = lambda _: None,
) -> Check:
    """The check in a document; raises the errors of `documents.read`.

    Calls `authorize` before any error discloses something about the check's references.
    """
    context = await _read_check_context(document, database, registry)
    parse = partial(_parse_valid_check, context=context, authorize=authorize)
    return await documents.read_definition(document, parse, max_depth, check_id)


async def read_scorecard_document(
    document: CheckDocument, database: Database, max_depth: int, scorecard_id: str | None = None
) -> Scorecard:
    """The scorecard in a document; raises the errors of `documents.read`."""
    known = {one.id for one in await check_store.everything(database)}
    parse = partial(scorecard.parse_scorecard, checks=known)
    return await documents.read_definition(document, parse, max_depth, scorecard_id)


def _parse_valid_check(
    document: CheckDocument, context: CheckContext, authorize: Callable[[Check], None]
) -> Check:
    found = parse_check(document)
    authorize(found)
    if problems := find_check_problems(found, context):
        raise InvalidItemsError(problems)
    return found


async def _read_check_context(
    document: CheckDocument, database: Database, registry: Registry
) -> CheckContext:
    """Sources that the document may refer to; other checks only if it can name one."""
    known = await registry.latest()
    if _READS_CHECKS not in msgspec.json.encode(document):
        return CheckContext(known.sources, {})
    stored = await check_store.everything(database)
    written = [one.written for one in stored]
    return CheckContext(known.sources, await asyncio.to_thread(_parse_written, written))


def _parse_written(written: list[CheckDocument]) -> Mapping[str, Check]:
    found: dict[str, Check] = {}
    for document in written:
        try:
            check = parse_stored_check(document)
        except FactbookError:
            continue  # an older release accepted it; its sources are unknown
        found[check.id] = check
    return found


S = TypeVar("S", bound=StagedDefinition)
_WRITE_PERMISSIONS: Final = {"check": CHECK_WRITE, "scorecard": SCORECARD_WRITE}
_FILE: Final = "starter.yaml"
# Members that belong to the scorecard entry.
_OF_ENTRY: Final = ("level", "weight", "advisory")
_ANNOTATION: Final = "metadata.annotations."
_LEAF: Final = ("fact", "operator", "value")


def make_tag(stored: StagedDefinition) -> str:
    """A tag of everything an author can change; putting a version into effect keeps the tag."""
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
    """A function that stores the document as the draft, and publishes it if `publish`.

    It raises PreconditionFailedError unless the definition has one of the tags; None accepts any.
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
    """A function that publishes a draft, or does nothing without a draft."""

    def work(transaction: Transaction) -> S:
        publications.lock_definitions(transaction)
        check_tag(store.read(transaction, id_), tags)
        return store.publish(transaction, id_, actor, now, permitted=permitted)

    return work


def make_removal(
    store: StagedStore[S], id_: str, tags: Collection[str] | None
) -> Callable[[Transaction], None]:
    """A function that deletes a definition; it raises NotFoundError if there is none."""

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
        raise PreconditionFailedError("It has changed since you read it; read it again.")


class OwnedStaged(OwnedDefinition[StagedDefinition]):
    """A check or scorecard owned by groups of the actor in every version and draft."""

    def __init__(self, store: StagedStore[Any], id_: str, actor: str, trust: PeopleTrust) -> None:
        super().__init__(store, id_, actor, _WRITE_PERMISSIONS[store.noun], trust)

    def begin(self, transaction: Transaction, held: WriteLocks) -> None:
        """Check ownership while no other transaction can change definitions.

        Pushes hold the locks of their sets when they evaluate. So this waits for set locks before
        it takes the definitions lock, and only tries them under the lock: `held` starts over
        without the lock.
        """
        publications.lock_definitions(transaction)
        super().begin(transaction, held)

    def owners(self, stored: StagedDefinition) -> frozenset[str]:
        return list_staged_owners(stored)

    def refusal(self) -> NotAllowedError:
        return not_own_error(self._store.noun, self._needed)


def list_staged_owners(stored: StagedDefinition) -> frozenset[str]:
    """The owners of the published, pending and draft versions; "" for a version without owner."""
    return version_owners(stored.published, stored.pending, stored.draft)


class ExemptionCaller(NamedTuple):
    """The calling person: its reference, permissions, and the sets that define its groups."""

    ref: str
    permissions: Collection[str]
    trust: PeopleTrust


def audit_exemption(action: str) -> Callable[[Exemption], AuditEntry]:
    """Audit entry for an exemption request or decision."""

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

    Exemptions last `usual_days` at most unless a scorecard says otherwise.

    Raises NotAllowedError unless the caller may request it, and NotFoundError for an unknown check,
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
    """Store a decision; `own` allows decisions on the caller's own requests.

    Approval follows the current rules, which may differ from those at the time of the request.
    Raises the errors of `store_decision`, and ConflictError for requests that the rules forbid by
    now.
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
    """Raise ConflictError if the rules no longer allow the request."""
    asked = (found.check, found.scorecard, found.entity, found.reason, found.starts_at)
    try:
        exemption_store.check_exemption_rules(
            ExemptionRequest(*asked, found.until), rules, usual_days
        )
    except InvalidItemsError as error:
        told = "; ".join(f"{one['path']} {one['message']}" for one in error.problem_list)
        raise ConflictError(f"The rules have changed since the request: {told}.") from None


def make_exemption_actor(
    caller: ExemptionCaller, groups: frozenset[str], subject: StagedDefinition
) -> ExemptionActor:
    """The caller as an actor on exemptions from this check or scorecard."""
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
    """The exemption rules that count for a check, or for a scorecard itself.

    `cards` are the scorecards that name the check. For a scorecard, all rules count.
    """
    return [
        scorecard.parse_scorecard(card.newest or card.current).exemptions
        for card in cards
        if isinstance(subject, StoredScorecard) or do_rules_count(card, subject)
    ]


def do_rules_count(card: StoredScorecard, check: StagedDefinition) -> bool:
    """Return true if the exemption rules of a scorecard count for one of its checks.

    The check's owner must own the scorecard, or someone with the permission to write scorecards
    published the rules: otherwise any scorecard owner could decide on other people's checks.
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
    """The owner in the newest version, or in a first draft; empty without an owner."""
    return document_owner(stored.newest or stored.current)


class Adoption(NamedTuple):
    """Ids of new drafts, and of existing definitions that stay unchanged."""

    made: tuple[str, ...]
    kept: tuple[str, ...]


class MissingFact(NamedTuple):
    """A code host check that is left out because no data source has its fact."""

    check: str
    title: str
    fact: str


def list_starter_documents(sources: Iterable[DataSource]) -> list[DefinitionDocument]:
    """The starter checks for the catalog and these code hosts, and the scorecard."""
    starter = _load_starter()
    templates = [*starter["catalog"]]
    for source in sorted(sources, key=lambda source: source.id):
        facts = {fact.name for fact in source.schema}
        templates += [
            _make_host_check(template, source)
            for template in starter["codeHost"]
            if template["fact"] in facts
        ]
    checks, entries = list[DefinitionDocument](), list[dict[str, Any]]()
    for template in templates:
        id_ = template["check"]
        entries.append(
            {"check": id_, **{name: template[name] for name in _OF_ENTRY if name in template}}
        )
        rest = {
            name: value for name, value in template.items() if name not in {"check", *_OF_ENTRY}
        }
        check = {"id": id_, "appliesTo": starter["scorecard"]["appliesTo"], **rest}
        checks.append(DefinitionDocument("check", check))
    card = {**starter["scorecard"], "entries": entries}
    return [*checks, DefinitionDocument("scorecard", card)]


def list_missing_facts(sources: Iterable[DataSource]) -> list[MissingFact]:
    """The code host checks that are left out."""
    known = {fact.name for source in sources for fact in source.schema}
    return [
        MissingFact(one["check"], one["title"], one["fact"])
        for one in _load_starter()["codeHost"]
        if one["fact"] not in known
    ]


def adopt_starter(
    transaction: Transaction, wanted: Iterable[DefinitionDocument], actor: str, now: int
) -> Adoption:
    """Create drafts of the documents whose ids are free."""
    made, kept = [], []
    for kind, document in wanted:
        store = check_store if kind == "check" else scorecard_store
        if store.read(transaction, document["id"]) is None:
            store.create(transaction, document, actor, now)
            made.append(document["id"])
        else:
            kept.append(document["id"])
    return Adoption(tuple(made), tuple(kept))


def _make_host_check(one: Mapping[str, Any], source: DataSource) -> dict[str, Any]:
    leaf = {"source": source.id, **{name: one[name] for name in _LEAF}}
    rest = {name: value for name, value in one.items() if name not in {"check", "title", *_LEAF}}
    about = [{"kind": "component", **conditions} for conditions in source.entity_filter or [{}]]
    sample = one["value"]
    if isinstance(sample, bool):
        good, bad = sample, not sample
    else:
        good, bad = (
            sample,
            sample - 1 if one["operator"].startswith("greater") else sample + 1,
        )
    keys = [key.removeprefix(_ANNOTATION) for key in about[0] if key.startswith(_ANNOTATION)]
    annotations = dict.fromkeys(keys, "example")
    entity = {"kind": "Component", "metadata": {"name": "example", "annotations": annotations}}
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


@cache
def _load_starter() -> dict[str, Any]:
    # Imported late: the starter is rarely read, and startup needs no YAML otherwise.
    from factbook import safe_yaml  # noqa: PLC0415

    text = files("factbook.checks.definitions").joinpath(_FILE).read_text("utf-8")
    found: dict[str, Any] = safe_yaml.load(text)
    return found
