"""Audit entries for writes over HTTP, shared by all interfaces."""

from http import HTTPStatus
from typing import TYPE_CHECKING

from factbook.audit.trail import About, AuditEntry, Caller, audit_writes
from factbook.http.context import HandlerContext
from factbook.http.requests import Request, get_client_address
from factbook.storage import Write

if TYPE_CHECKING:
    from factbook.auth.tokens import StoredToken
    from factbook.catalog.sets import PreparedPush
    from factbook.catalog.store.stored_sets import PushResult
    from factbook.checks.definitions.definition_versions import StagedDefinition
    from factbook.datasources.stores import StoredConnection, StoredSource
    from factbook.facts.pushed_facts import FactItemResult
    from factbook.importers.importer_store import StoredImporter
    from factbook.scheduling.run_queue import Begun
    from factbook.webhooks.digests import StoredDigest
    from factbook.webhooks.store import StoredWebhook


def make_request_caller(request: Request, state: HandlerContext) -> Caller:
    """Build the audit caller of a request with a valid token."""
    assert request.token is not None
    address = get_client_address(request.scope, state.proxies)
    return Caller(request.actor, state.clock(), address, request.token.id, "token")


def audit_request_writes(
    request: Request, state: HandlerContext, about: AuditEntry | About, status: int = HTTPStatus.OK
) -> Write:
    """Transaction runner that records the request in the audit, in the same transaction."""
    return audit_writes(state.database, make_request_caller(request, state), about, status)


def make_set_entry(action: str, name: str) -> About:
    """Entry for a push of a whole set; None for a dry run."""

    def about(outcome: "PushResult") -> AuditEntry | None:
        if outcome.written is None:
            return None
        return AuditEntry(action, name, _count_changes(outcome), outcome.grant)

    return about


def make_import_entry(action: str, name: str) -> About:
    """Entry for a decision on held removals of an imported set."""
    return lambda _: AuditEntry(action, name)


def make_restored_entry(name: str, number: int) -> About:
    """Entry for a set restored to a revision."""

    def about(result: "tuple[PreparedPush, PushResult]") -> AuditEntry:
        outcome = result[1]
        detail = {"restored": number, **_count_changes(outcome)}
        return AuditEntry("set.restore", name, detail, outcome.grant)

    return about


def make_entity_entry(action: str) -> About:
    """Entry for a change to one entity; None if there was no entity to remove."""

    def about(outcome: "PushResult | None") -> AuditEntry | None:
        if outcome is None:
            return None
        plan = outcome.plan
        prepared = [*plan.added, *(item for item, _ in (*plan.taken, *plan.updated))]
        [ref] = [item.ref for item in prepared] or [
            item.ref for item in (*plan.removed, *plan.unchanged)
        ]
        inside = {"set": plan.set.name} if plan.set else {}
        return AuditEntry(action, ref, {**inside, **_count_changes(outcome)}, outcome.grant)

    return about


def _count_changes(outcome: "PushResult") -> dict[str, int]:
    """Set revision, and number of entities by kind of change."""
    revision = outcome.written.revision if outcome.written else 0
    return {"revision": revision, **outcome.plan.changes}


def make_refresh_entry(ref: str) -> About:
    """Entry for a request to refresh an entity's facts; None for an unknown entity."""

    def about(known: bool) -> AuditEntry | None:
        return AuditEntry("entity.refresh", ref) if known else None

    return about


def make_token_entry(action: str) -> About:
    """Entry for a created or revoked token."""

    def about(token: "StoredToken") -> AuditEntry:
        detail: dict[str, object] = {
            "name": token.name,
            "owner": token.owner,
            "permissions": sorted(token.permissions),
        }
        if token.narrowing is not None:
            detail["narrowing"] = token.narrowing.given
        return AuditEntry(action, token.id, detail)

    return about


def make_source_entry(action: str, now: int) -> About:
    """Entry for a data source write; `changed` is false if nothing changed at `now`."""

    def about(stored: "StoredSource") -> AuditEntry:
        at = stored.published_at if action == "data-source.publish" else stored.updated_at
        return AuditEntry(action, stored.id, {"version": stored.version, "changed": at == now})

    return about


def make_definition_entry(action: str, now: int) -> About:
    """Entry for a check or scorecard write; `changed` is false if nothing changed at `now`."""

    def about(stored: "StagedDefinition") -> AuditEntry:
        changed = now in (stored.updated_at, stored.published_at)
        detail = {"version": stored.newest_version, "changed": changed}
        return AuditEntry(action, stored.id, detail)

    return about


def make_facts_entry(source_id: str) -> About:
    """Entry for pushed facts: the source version and the number of items sent and accepted."""

    def about(result: "tuple[str, list[FactItemResult]]") -> AuditEntry:
        version, outcomes = result
        accepted = sum(outcome.accepted for outcome in outcomes)
        detail = {"version": version, "items": len(outcomes), "accepted": accepted}
        return AuditEntry("facts.push", source_id, detail)

    return about


def make_connection_entry(*, deleted: bool = False) -> About:
    """Entry for a connection change: address, header names and owners, but no header values."""

    def about(stored: "StoredConnection") -> AuditEntry:
        options, new = stored.options, stored.created_at == stored.updated_at
        action = f"connection.{'delete' if deleted else 'create' if new else 'replace'}"
        detail = {"baseUrl": options.base_url, "headers": sorted(options.headers)}
        if options.shared_with:
            detail["sharedWith"] = list(options.shared_with)
        return AuditEntry(action, stored.name, detail)

    return about


def make_importer_entry(*, deleted: bool = False) -> About:
    """Entry for a created, changed or deleted importer: its option names, but no values."""

    def about(stored: "StoredImporter") -> AuditEntry:
        new = stored.created_at == stored.updated_at
        action = f"importer.{'delete' if deleted else 'create' if new else 'replace'}"
        names = sorted({*stored.options.values, *stored.options.secrets})
        return AuditEntry(action, stored.id, {"kind": stored.kind, "options": names})

    return about


def make_webhook_entry(action: str) -> About:
    """Entry for a webhook change: its address and event types."""

    def about(webhook: "StoredWebhook") -> AuditEntry:
        return AuditEntry(action, webhook.id, {"url": webhook.url, "types": list(webhook.types)})

    return about


def make_digest_entry(action: str) -> About:
    """Entry for a digest change: its owner, format and address as shown."""

    def about(digest: "StoredDigest") -> AuditEntry:
        detail = {"owner": digest.owner or None, "form": digest.form, "url": digest.url}
        return AuditEntry(action, digest.id, detail)

    return about


def make_run_entry(source_id: str, entity: str | None) -> About:
    """Entry for a started run of a data source, for all entities or one."""

    def about(begun: "Begun") -> AuditEntry:
        one = {} if entity is None else {"entity": entity}
        return AuditEntry("data-source.run", source_id, {"run": begun.run_id, **one})

    return about
