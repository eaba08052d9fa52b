"""Creation, change, test and removal of digests."""

import secrets as chance
import time
from typing import Final, NamedTuple

from factbook.auth.encryption import NotOpenedError
from factbook.catalog import ref
from factbook.checks.digests import digest_figures
from factbook.checks.digests.digest import EVERYTHING
from factbook.errors import ConflictError, InputError
from factbook.schemas.events import DigestForm
from factbook.storage import Database, Transaction, Write
from factbook.webhooks import digest_cadence, digest_sender, digest_store, secrets
from factbook.webhooks.digest_cadence import DigestCadence
from factbook.webhooks.digest_store import StoredDigest
from factbook.webhooks.management import DeliveryResult
from factbook.webhooks.transport import Post

_OWNERS: Final = frozenset({"group", "user"})


class WantedDigest(NamedTuple):
    """A digest as it is wanted; without an owner it is about everybody.

    Without an address or a form the one that it has stays.
    """

    owner: str | None
    form: DigestForm | None
    cadence: DigestCadence
    url: str | None = None

    def __repr__(self) -> str:
        """Representation without the address."""
        return f"WantedDigest(owner={self.owner!r}, form={self.form!r})"


async def create(
    database: Database,
    post: Post,
    key: bytes,
    wanted: WantedDigest,
    *,
    actor: str,
    now: int,
    write: Write,
) -> StoredDigest:
    """Send digests of an owner to an address from now on, which is never shown again.

    Raises InputError for what does not fit or an address that may not be called, ConflictError.
    """
    url, owner = wanted.url or "", _owner(wanted)
    digest_cadence.check_zone(wanted.cadence.time_zone)
    await post.check(url)
    id_ = chance.token_hex(8)
    levels = await digest_figures.levels_of(database, owner, now)
    next_at = wanted.cadence.following(now)
    made = StoredDigest(
        id_,
        owner,
        wanted.form or "slack",
        secrets.shown(url),
        wanted.cadence,
        now,
        actor,
        now,
        next_at,
        levels,
    )
    address = digest_store.sealed(key, id_, url)

    def work(transaction: Transaction) -> StoredDigest:
        digest_store.add(transaction, made, address)
        return made

    return await write(work)


async def one(database: Database, digest_id: str) -> StoredDigest:
    """A digest; raises NotFoundError."""
    return (await digest_store.one(database, digest_id))[0]


async def replace(
    database: Database,
    post: Post,
    key: bytes,
    digest_id: str,
    wanted: WantedDigest,
    *,
    now: int,
    write: Write,
) -> StoredDigest:
    """Change a digest; one of another owner tells of changes from now on.

    Raises NotFoundError, and InputError for an address that may not be called.
    """
    digest_cadence.check_zone(wanted.cadence.time_zone)
    await digest_store.one(database, digest_id)
    if wanted.url is not None:
        await post.check(wanted.url)
    owner, url = _owner(wanted), wanted.url
    levels = await digest_figures.levels_of(database, owner, now)
    address = None if url is None else digest_store.sealed(key, digest_id, url)

    def work(transaction: Transaction) -> StoredDigest:
        before = digest_store.within(transaction, digest_id)
        after = before._replace(
            owner=owner,
            form=wanted.form or before.form,
            url=before.url if url is None else secrets.shown(url),
            cadence=wanted.cadence,
            next_at=wanted.cadence.following(now),
            failures=0,
            failed_at=None,
            error=None,
        )
        if owner != before.owner:
            after = after._replace(told_up_to=now, levels=levels)
        digest_store.replace(transaction, after, address)
        return after

    return await write(work)


async def remove(digest_id: str, *, write: Write) -> None:
    """Remove a digest; raises NotFoundError."""
    await write(lambda transaction: digest_store.remove(transaction, digest_id))


async def try_out(
    database: Database,
    post: Post,
    key: bytes,
    digest_id: str,
    now: int,
    public_url: str | None = None,
) -> DeliveryResult:
    """Send what the next digest would tell by now, once, also if that is nothing.

    It is told again in its time. Raises NotFoundError, ConflictError.
    """
    stored, address = await digest_store.one(database, digest_id)
    try:
        url = digest_store.opened(key, digest_id, address)
    except NotOpenedError:
        raise ConflictError(
            "The address of this digest was sealed under another token_key. Give it again."
        ) from None
    content, _ = await digest_figures.of_owner(
        database, stored.owner, stored.told_up_to, now, stored.levels, now, public_url
    )
    started = time.perf_counter()
    mark = f"test-{chance.token_hex(8)}"
    sent = await digest_sender.send(post, url, stored.form, content._replace(is_test=True), mark)
    spent = round((time.perf_counter() - started) * 1000)
    return DeliveryResult(sent.status, spent, sent.error)


def _owner(wanted: WantedDigest) -> str:
    if wanted.owner is None:
        return EVERYTHING
    owner = ref.parse(wanted.owner, kind="group")
    if owner.kind not in _OWNERS:
        raise InputError("owner: has to be a group or a user.")
    return str(owner)
