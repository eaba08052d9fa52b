"""Digests for team channels: cadence, storage, delivery and management.

Each due digest is delivered at least once, by one process at a time. If a process is killed after
the reply and before recording it, another sends the digest again, for the same period and with the
same `Idempotency-Key`.

Known replies: Slack incoming webhooks answer `ok` or an error word; Microsoft Teams workflows
answer 202 without a body, or JSON with an `error`.
"""

import asyncio
import re
import secrets as chance
from collections.abc import Callable, Collection
from datetime import UTC, datetime, time, timedelta, tzinfo
from functools import partial
from time import perf_counter
from typing import Any, Final, NamedTuple, get_args
from zoneinfo import ZoneInfo

import msgspec
import structlog

from factbook.auth import encryption
from factbook.auth.encryption import NotOpenedError
from factbook.catalog import ref
from factbook.checks import digests
from factbook.checks.digests import EVERYTHING, Digest, DigestLevels
from factbook.clock import DAY, HOUR, MINUTE, SECOND, Clock
from factbook.errors import ConflictError, InputError, no_such
from factbook.outbound.client import USER_AGENT
from factbook.outbound.outcomes import HostReply
from factbook.schemas.events import CadenceUnit, DigestForm, Weekday
from factbook.storage import Database, Row, Transaction, Write
from factbook.webhooks import sender, store
from factbook.webhooks.sender import DeliveryResult, Post

WEEKDAYS: Final[tuple[Weekday, ...]] = get_args(Weekday)
LONGEST_ZONE: Final = 64
_WEEK_DAYS: Final = 7

MOST_DIGESTS: Final = 500
_ADDRESS_LABEL: Final = "digest addresses"
# Milliseconds that a claim lasts; then another process may send the digest.
_LEASE_TIME: Final = 10 * 60 * 1000

_ERROR_WORD: Final = re.compile(rb"[A-Za-z][A-Za-z_]{1,59}")
_ACCEPTED: Final = frozenset({b"", b"ok"})
# Error text of Teams connectors, the predecessors of workflows, for undelivered messages.
_FAILURE: Final = re.compile(rb"fail|error", re.IGNORECASE)

log = structlog.get_logger("factbook.webhooks")

OTHER_KEY: Final = "its address was sealed under another token_key"
# Changes become visible shortly after their timestamps.
_SETTLED: Final = MINUTE
# Pauses after failures double up to a day.
_FIRST_PAUSE: Final = HOUR
_DIGESTS_AT_ONCE: Final = 8
_MOST_DOUBLINGS: Final = 5
_HEADERS: Final = {"content-type": "application/json", "user-agent": USER_AGENT}

_OWNER_KINDS: Final = frozenset({"group", "user"})


class DigestCadence(NamedTuple):
    """A daily or weekly cadence; `day` applies to a weekly one."""

    unit: CadenceUnit = "weekly"
    day: Weekday = "monday"
    hour: int = 8
    time_zone: str = "UTC"

    def following(self, after: int) -> int:
        """The first time after `after`; both in milliseconds since the epoch."""
        return next(at for at in self._around(after) if at > after)

    def latest(self, now: int) -> int:
        """The last time up to `now`."""
        return next(at for at in reversed(self._around(now)) if at <= now)

    def _around(self, moment: int) -> list[int]:
        """The scheduled times from a week before a moment to a week after."""
        zone = _find_time_zone(self.time_zone) or UTC  # the zone may be gone by now
        today = datetime.fromtimestamp(moment / SECOND, zone).date()
        days = (today + timedelta(days) for days in range(-_WEEK_DAYS - 1, _WEEK_DAYS + 2))
        # A skipped hour becomes the next hour; of a repeated hour, the first counts.
        return [
            int(datetime.combine(day, time(self.hour), zone).timestamp()) * SECOND
            for day in days
            if self.unit == "daily" or WEEKDAYS[day.weekday()] == self.day
        ]


def check_time_zone(name: str) -> None:
    """Raise InputError unless this is the name of a time zone."""
    if _find_time_zone(name) is None:
        raise InputError(
            "timeZone: has to be the name of a time zone, such as UTC or Europe/Paris."
        )


def _find_time_zone(name: str) -> tzinfo | None:
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name) if len(name) <= LONGEST_ZONE else None
    except (LookupError, ValueError, OSError):
        return None


class StoredDigest(NamedTuple):
    """A digest without its address; `url` is the masked address, owner "" means everything.

    `failures` counts failures since the last success; `levels` are those last reported.
    """

    id: str
    owner: str
    form: DigestForm
    url: str
    cadence: DigestCadence
    created_at: int
    created_by: str
    told_up_to: int
    next_at: int
    levels: DigestLevels
    failures: int = 0
    sent_at: int | None = None
    failed_at: int | None = None
    error: str | None = None


class ClaimedDigest(NamedTuple):
    """A due digest, with its sealed address and the end of this process's claim."""

    digest: StoredDigest
    address: bytes
    held_until: int


class DigestCounts(NamedTuple):
    """Numbers of digests, by success of the last delivery."""

    arriving: int
    failing: int


def add_digest(transaction: Transaction, digest: StoredDigest, address: bytes) -> None:
    """Store a digest; raises ConflictError when there are too many."""
    transaction.lock("digests")
    [count] = transaction.one("SELECT count(*) FROM digests") or (0,)
    if count >= MOST_DIGESTS:
        raise ConflictError(f"There are already {MOST_DIGESTS} digests, the maximum.")
    levels = _encode_levels(digest.levels)
    transaction.run(_ADD_DIGEST, (*digest[:4], *digest.cadence, *digest[5:9], levels, address))


def update_digest(transaction: Transaction, digest: StoredDigest, address: bytes | None) -> None:
    """Update a digest, and its address if given; the result of a send in progress is ignored."""
    transaction.run(
        _UPDATE_DIGEST,
        (
            *digest[1:4],
            *digest.cadence,
            digest.told_up_to,
            digest.next_at,
            _encode_levels(digest.levels),
            address,
            digest.id,
        ),
    )


async def list_digests(database: Database) -> list[StoredDigest]:
    """Every digest, by owner."""
    return [_make_digest(row) for row in await database.all(_READ_LIST)]


async def get_digest_and_address(database: Database, digest_id: str) -> tuple[StoredDigest, bytes]:
    """A digest and its sealed address; raises NotFoundError."""
    row = await database.one(_READ_DIGEST, (digest_id,))
    if row is None:
        raise no_such("digest", digest_id, [one for (one,) in await database.all(_DIGEST_IDS)])
    return _make_digest(row), bytes(row[-1])


def lock_digest(transaction: Transaction, digest_id: str) -> StoredDigest:
    """A digest, locked against other transactions; raises NotFoundError."""
    transaction.lock("digests")
    row = transaction.one(_READ_DIGEST, (digest_id,))
    if row is None:
        raise no_such("digest", digest_id, [one for (one,) in transaction.all(_DIGEST_IDS)])
    return _make_digest(row)


async def count_digests(database: Database) -> DigestCounts:
    """The number of digests, and of those whose last delivery failed."""
    row = await database.one(_COUNT_DIGESTS)
    return DigestCounts(*(row or (0, 0)))


async def list_sealed_addresses(database: Database) -> dict[str, bytes]:
    """The sealed address of each digest, by its id."""
    return {row[0]: bytes(row[1]) for row in await database.all("SELECT id, address FROM digests")}


def remove_digest(transaction: Transaction, digest_id: str) -> StoredDigest:
    """Delete a digest; raises NotFoundError."""
    found = lock_digest(transaction, digest_id)
    transaction.run("DELETE FROM digests WHERE id = ?", (digest_id,))
    return found


def delete_digests_of(transaction: Transaction, owners: Collection[str]) -> int:
    """Delete the digests of these owners; returns their number."""
    transaction.lock("digests")
    return transaction.run("DELETE FROM digests WHERE owner IN LIST(?)", (sorted(owners),))


async def is_digest_due(database: Database, now: int) -> bool:
    """Return true if a digest is due, or its claim has lapsed."""
    return await database.one(_IS_DUE, (now, now)) is not None


def claim_digest(transaction: Transaction, now: int) -> ClaimedDigest | None:
    """Claim a due digest for a while; None if none is due."""
    transaction.lock("digests")
    row = transaction.one(_READ_DUE, (now, now))
    if row is None:
        return None
    held_until = now + _LEASE_TIME
    transaction.run("UPDATE digests SET held_until = ? WHERE id = ?", (held_until, row[0]))
    return ClaimedDigest(_make_digest(row), bytes(row[-1]), held_until)


def finish_digest(
    transaction: Transaction,
    claimed: ClaimedDigest,
    told_up_to: int,
    levels: DigestLevels,
    next_at: int,
    sent_at: int | None,
) -> None:
    """Record that a digest was sent, or, with None, that nothing had changed."""
    row = (
        told_up_to,
        _encode_levels(levels),
        next_at,
        sent_at,
        claimed.digest.id,
        claimed.held_until,
    )
    transaction.run(_FINISH_DIGEST, row)


def fail_digest(
    transaction: Transaction, claimed: ClaimedDigest, error: str, now: int, again_at: int
) -> None:
    """Record that a digest could not be sent; its changes are reported later."""
    transaction.run(_FAIL_DIGEST, (again_at, now, error, claimed.digest.id, claimed.held_until))


def seal_digest_address(key: bytes, digest_id: str, url: str) -> bytes:
    """The address as it is stored."""
    return encryption.seal_secret(key, _ADDRESS_LABEL, digest_id, url.encode())


def open_digest_address(key: bytes, digest_id: str, address: bytes) -> str:
    """The address; raises NotOpenedError."""
    return encryption.open_secret(key, _ADDRESS_LABEL, digest_id, address).decode()


def _make_digest(row: Row) -> StoredDigest:
    levels = msgspec.json.decode(row[12], type=dict[str, dict[str, int]])
    return StoredDigest._make([*row[:4], DigestCadence(*row[4:8]), *row[8:12], levels, *row[13:-1]])


def _encode_levels(levels: DigestLevels) -> str:
    return msgspec.json.encode(levels).decode()


def explain_refusal(reply: HostReply, form: DigestForm, url: str) -> str | None:
    """The reason why a message did not arrive, revealing nothing of the address; None if it did."""
    if reply.failure:
        return reply.failure
    body = reply.body.strip()
    good = 200 <= reply.status < 300
    if form == "slack":
        accepted = body.lower() in _ACCEPTED
    elif isinstance(answer := _decode_reply(body), dict):
        accepted = "error" not in answer
    else:
        accepted = _FAILURE.search(body) is None
    if good and accepted:
        return None
    word = _find_error_word(body, form)
    detail = f": {word}" if word and word not in url else " without accepting it" if good else ""
    return f"answered {reply.status}{detail}"


def _find_error_word(body: bytes, form: DigestForm) -> str | None:
    if form == "slack":
        return body.decode() if _ERROR_WORD.fullmatch(body) else None
    found = _decode_reply(body)
    error = found.get("error") if isinstance(found, dict) else None
    code = error.get("code") if isinstance(error, dict) else error
    if not isinstance(code, str):
        return None
    return code if _ERROR_WORD.fullmatch(code.encode(errors="replace")) else None


def _decode_reply(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


class DeliveredDigest(NamedTuple):
    """Result of a message: the error if it failed, the status, and the requested pause."""

    error: str | None
    status: int = 0
    pause: int = 0


class DigestSender:
    """Sends due digests that no other process has claimed."""

    def __init__(
        self,
        database: Database,
        post: Post,
        key: Callable[[], bytes],
        clock: Clock,
        public_url: str | None = None,
    ) -> None:
        """`key` returns the key that seals addresses; messages link to pages at `public_url`."""
        self._database = database
        self._post = post
        self._key = key
        self._clock = clock
        self._public_url = public_url

    async def tick(self) -> int:
        """Send due digests, several at once, to keep a slow receiver from delaying others.

        Returns the number of digests, including those without changes.
        """
        if not await is_digest_due(self._database, self._clock()):
            return 0
        ended = await asyncio.gather(
            *(self._send_some() for _ in range(_DIGESTS_AT_ONCE)), return_exceptions=True
        )
        count = 0
        for one in ended:
            if isinstance(one, BaseException):
                raise one
            count += one
        return count

    async def _send_some(self) -> int:
        """Send one after the other until none is left."""
        count = 0
        while found := await self._database.write(partial(claim_digest, now=self._clock())):
            count += 1
            await self._send(found)
        return count

    async def stop(self) -> None:
        """Close the connections."""
        await self._post.aclose()

    async def _send(self, claimed: ClaimedDigest) -> None:
        stored, now = claimed.digest, self._clock()
        # A repeated digest has the same end of its period.
        end = max(stored.next_at, stored.cadence.latest(now)) - _SETTLED
        until = max(end, stored.told_up_to)
        content, levels = await digests.read_digest_of(
            self._database,
            stored.owner,
            stored.told_up_to,
            until,
            stored.levels,
            now,
            self._public_url,
        )
        sent = None
        if not content.is_empty:
            sent = await self._posted(claimed, content)
        if sent is not None and sent.error is not None:
            error = sent.error
            log.warning("digest.failed", digest=stored.id, owner=stored.owner, reason=error)
            pause = min(_FIRST_PAUSE << min(stored.failures, _MOST_DOUBLINGS), DAY)
            again_at = now + max(pause, min(sent.pause, DAY))
            await self._database.write(lambda tx: fail_digest(tx, claimed, error, now, again_at))
            return
        next_at, sent_at = stored.cadence.following(now), None if sent is None else now
        await self._database.write(
            lambda tx: finish_digest(tx, claimed, until, levels, next_at, sent_at)
        )

    async def _posted(self, claimed: ClaimedDigest, content: Digest) -> DeliveredDigest:
        id_ = claimed.digest.id
        try:
            url = open_digest_address(self._key(), id_, claimed.address)
        except NotOpenedError:
            return DeliveredDigest(OTHER_KEY)
        key = f"{id_}.{content.until}"
        return await send_digest(self._post, url, claimed.digest.form, content, key)


async def send_digest(
    post: Post, url: str, form: DigestForm, content: Digest, key: str
) -> DeliveredDigest:
    """Send a digest once."""
    body = msgspec.json.encode(digests.render_digest(content, form))
    reply = await post(url, {**_HEADERS, "idempotency-key": key}, body)
    error = explain_refusal(reply, form, url)
    return DeliveredDigest(error, reply.status, sender.find_retry_after(reply))


class WantedDigest(NamedTuple):
    """The requested form of a digest; without an owner, the digest covers everything.

    Without an address or a form, the current one stays.
    """

    owner: str | None
    form: DigestForm | None
    cadence: DigestCadence
    url: str | None = None

    def __repr__(self) -> str:
        """Representation without the address."""
        return f"WantedDigest(owner={self.owner!r}, form={self.form!r})"


async def create_digest(
    database: Database,
    post: Post,
    key: bytes,
    wanted: WantedDigest,
    *,
    actor: str,
    now: int,
    write: Write,
) -> StoredDigest:
    """Send digests of an owner to an address from now on; the address is never shown again.

    Raises InputError for invalid input or an address that may not be called, and ConflictError.
    """
    url, owner = wanted.url or "", _parse_owner(wanted)
    check_time_zone(wanted.cadence.time_zone)
    await post.check(url)
    id_ = chance.token_hex(8)
    levels = await digests.read_digest_levels(database, owner, now)
    next_at = wanted.cadence.following(now)
    made = StoredDigest(
        id_,
        owner,
        wanted.form or "slack",
        store.mask_address(url),
        wanted.cadence,
        now,
        actor,
        now,
        next_at,
        levels,
    )
    address = seal_digest_address(key, id_, url)

    def work(transaction: Transaction) -> StoredDigest:
        add_digest(transaction, made, address)
        return made

    return await write(work)


async def get_digest(database: Database, digest_id: str) -> StoredDigest:
    """A digest; raises NotFoundError."""
    return (await get_digest_and_address(database, digest_id))[0]


async def change_digest(
    database: Database,
    post: Post,
    key: bytes,
    digest_id: str,
    wanted: WantedDigest,
    *,
    now: int,
    write: Write,
) -> StoredDigest:
    """Change a digest; a new owner's changes are reported from now on.

    Raises NotFoundError, and InputError for an address that may not be called.
    """
    check_time_zone(wanted.cadence.time_zone)
    await get_digest_and_address(database, digest_id)
    if wanted.url is not None:
        await post.check(wanted.url)
    owner, url = _parse_owner(wanted), wanted.url
    levels = await digests.read_digest_levels(database, owner, now)
    address = None if url is None else seal_digest_address(key, digest_id, url)

    def work(transaction: Transaction) -> StoredDigest:
        before = lock_digest(transaction, digest_id)
        after = before._replace(
            owner=owner,
            form=wanted.form or before.form,
            url=before.url if url is None else store.mask_address(url),
            cadence=wanted.cadence,
            next_at=wanted.cadence.following(now),
            failures=0,
            failed_at=None,
            error=None,
        )
        if owner != before.owner:
            after = after._replace(told_up_to=now, levels=levels)
        update_digest(transaction, after, address)
        return after

    return await write(work)


async def delete_digest(digest_id: str, *, write: Write) -> None:
    """Remove a digest; raises NotFoundError."""
    await write(lambda transaction: remove_digest(transaction, digest_id))


async def send_test_digest(
    database: Database,
    post: Post,
    key: bytes,
    digest_id: str,
    now: int,
    public_url: str | None = None,
) -> DeliveryResult:
    """Send the next digest as of now, once, even without changes.

    The regular digest repeats these changes. Raises NotFoundError, ConflictError.
    """
    stored, address = await get_digest_and_address(database, digest_id)
    try:
        url = open_digest_address(key, digest_id, address)
    except NotOpenedError:
        raise ConflictError(
            "The address of this digest was sealed under another token_key. Give it again."
        ) from None
    content, _ = await digests.read_digest_of(
        database, stored.owner, stored.told_up_to, now, stored.levels, now, public_url
    )
    started = perf_counter()
    mark = f"test-{chance.token_hex(8)}"
    sent = await send_digest(post, url, stored.form, content._replace(is_test=True), mark)
    spent = round((perf_counter() - started) * 1000)
    return DeliveryResult(sent.status, spent, sent.error)


def _parse_owner(wanted: WantedDigest) -> str:
    if wanted.owner is None:
        return EVERYTHING
    owner = ref.parse_ref(wanted.owner, kind="group")
    if owner.kind not in _OWNER_KINDS:
        raise InputError("owner: has to be a group or a user.")
    return str(owner)


_DIGEST_IDS: Final = "SELECT id FROM digests ORDER BY id"

_READ_DIGESTS: Final = """
SELECT id, owner, form, url, cadence, day, hour, time_zone, created_at, created_by, told_up_to,
    next_at, levels, failures, sent_at, failed_at, error, address
FROM digests {}
"""

_COUNT_DIGESTS: Final = """
SELECT COALESCE(SUM(CASE WHEN failures = 0 THEN 1 ELSE 0 END), 0),
    COALESCE(SUM(CASE WHEN failures > 0 THEN 1 ELSE 0 END), 0)
FROM digests
"""

_READ_LIST: Final = _READ_DIGESTS.replace("{}", "ORDER BY owner, id")

_READ_DIGEST: Final = _READ_DIGESTS.replace("{}", "WHERE id = ?")

_READ_DUE: Final = _READ_DIGESTS.replace(
    "{}", "WHERE next_at <= ? AND held_until <= ? ORDER BY next_at, id LIMIT 1"
)

_IS_DUE: Final = "SELECT 1 FROM digests WHERE next_at <= ? AND held_until <= ? LIMIT 1"

_ADD_DIGEST: Final = """
INSERT INTO digests (id, owner, form, url, cadence, day, hour, time_zone, created_at, created_by,
    told_up_to, next_at, levels, address)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""

_UPDATE_DIGEST: Final = """
UPDATE digests SET owner = ?, form = ?, url = ?, cadence = ?, day = ?, hour = ?, time_zone = ?,
    told_up_to = ?, next_at = ?, levels = ?, address = COALESCE(?, address), held_until = 0,
    failures = 0, failed_at = NULL, error = NULL
WHERE id = ?
"""

# Claims from before a change of the digest, and lapsed claims, don't match.
_FINISH_DIGEST: Final = """
UPDATE digests SET told_up_to = ?, levels = ?, next_at = ?, sent_at = COALESCE(?, sent_at),
    held_until = 0, failures = 0, failed_at = NULL, error = NULL
WHERE id = ? AND held_until = ?
"""

_FAIL_DIGEST: Final = """
UPDATE digests SET held_until = ?, failed_at = ?, error = ?, failures = failures + 1
WHERE id = ? AND held_until = ?
"""
