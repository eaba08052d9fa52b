"""Importer of AWS Organizations: accounts as resources, organizational units as systems.

Requests are signed (signature version 4, by its published description) with the keys of the
settings, the environment or a role, and repeated when throttled.
"""

import asyncio
import hashlib
import hmac
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final, Generic, Literal, NamedTuple, TypeVar
from urllib.parse import quote, urlsplit

import msgspec
import stamina

from factbook import clock
from factbook.catalog import ref
from factbook.catalog.ref import DEFAULT_NAMESPACE
from factbook.catalog.validation import valid_namespace
from factbook.clock import SECOND, Clock
from factbook.errors import InputError
from factbook.importers.importer import (
    NO_NAMESPACE,
    Access,
    ImporterKind,
    ImporterOptions,
    ReadingContext,
    Show,
)
from factbook.importers.snapshot import (
    GENERATED,
    ImportedItem,
    ReadingProblem,
    Snapshot,
    SnapshotPart,
    make_unique_names,
    remember_names,
)
from factbook.outbound.cache import Memory
from factbook.outbound.client import ANONYMOUS, HttpClient
from factbook.outbound.outcomes import REPEATED, UNUSABLE, Answer, Missing, Outcome, read_as
from factbook.settings.option_tables import about, is_web_address

_ROLE: Final = re.compile(r"arn:aws[a-z-]*:iam::\d{12}:role/[\w+=,.@/-]{1,576}", re.ASCII)
_REGION: Final = re.compile(r"[a-z]{2}(-[a-z]+){1,3}-\d{1,2}", re.ASCII)

# The home region of AWS Organizations in each partition, and the domain of its hosts.
_PARTITIONS: Final = {
    "aws": ("us-east-1", "amazonaws.com"),
    "aws-cn": ("cn-northwest-1", "amazonaws.com.cn"),
    "aws-us-gov": ("us-gov-west-1", "amazonaws.com"),
}

_ALGORITHM: Final = "AWS4-HMAC-SHA256"

_SESSION: Final = "factbook"
_STS_VERSION: Final = "2011-06-15"

NO_KEYS: Final = Missing(
    Outcome.REFUSED,
    "there is no credential: neither keys in the settings, nor AWS_ACCESS_KEY_ID and "
    "AWS_SECRET_ACCESS_KEY, nor AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN",
)
_NO_FILE: Final = Missing(Outcome.REFUSED, "AWS_WEB_IDENTITY_TOKEN_FILE cannot be read")
_NO_ROLE: Final = "the role cannot be assumed"

T = TypeVar("T")

_SERVICE: Final = "AWSOrganizationsV20161128"
_MOST_PAGES: Final = 10_000
_MOST_ATTEMPTS: Final = 6
_LONGEST_PAUSE: Final = 10.0

_THROTTLED: Final = frozenset(
    {"TooManyRequestsException", "ThrottlingException", "Throttling", "RequestLimitExceeded"}
)
_DENIED: Final = frozenset(
    {"AccessDeniedException", "AccessDenied", "AccessDeniedForDependencyException"}
)
_REFUSED: Final = frozenset(
    {
        "ExpiredTokenException",
        "IncompleteSignature",
        "IncompleteSignatureException",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "MissingAuthenticationTokenException",
        "NotAuthorized",
        "OptInRequired",
        "RequestExpired",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)
_NO_ORGANIZATION: Final = "AWSOrganizationsNotInUseException"

_API_VERSION: Final = "backstage.io/v1alpha1"
_PREFIX: Final = "amazonaws.com"
ACCOUNT_ID: Final = f"{_PREFIX}/account-id"
ARN: Final = f"{_PREFIX}/arn"
ORGANIZATION_ID: Final = f"{_PREFIX}/organization-id"
UNIT_ID: Final = f"{_PREFIX}/organizational-unit-id"
UNIT_PATH: Final = f"{_PREFIX}/organizational-unit-path"
STATE: Final = f"{_PREFIX}/state"

CLOSED: Final = frozenset({"SUSPENDED", "PENDING_CLOSURE", "CLOSED"})

Entity = dict[str, Any]
_Id = Annotated[str, msgspec.Meta(pattern=r"^\d{12}$")]

ACCOUNTS_PART: Final = "accounts"
UNITS_PART: Final = "units"
_ORIGIN: Final = "amazonaws.com"
_NAMES: Final = "names of accounts"
_UNIT_NAMES: Final = "names of units"

# Calls are signed before they wait in the queue, and signatures are valid for five minutes.
_AT_ONCE: Final = 4

# Without rights, requests for each of a thousand accounts would be useless.
_FUTILE: Final = frozenset({Outcome.DENIED, Outcome.REFUSED})


# Half of the AWS limit, since other clients share it.
_CALLS_A_MINUTE: Final = 300


class AwsImportOptions(ImporterOptions, frozen=True, kw_only=True):
    """An organization, the credential to read it, and the parts to import."""

    access_key_id: Annotated[
        str, about("Secret. An access key; without one, the environment's credentials are used.")
    ] = ""
    secret_access_key: Annotated[str, about("Secret. The other half of the access key.")] = ""
    session_token: Annotated[str, about("Secret. The token of temporary keys.")] = ""
    role: Annotated[
        str,
        about(
            "Role to assume, e.g. `arn:aws:iam::111122223333:role/factbook`: of the management "
            "account, or of one that administers AWS Organizations for it."
        ),
    ] = ""
    external_id: Annotated[str, about("External id that the role asks for.")] = ""
    partition: Annotated[
        Literal["aws", "aws-cn", "aws-us-gov"], about("Partition of AWS that has the organization.")
    ] = "aws"
    region: Annotated[
        str, about("Region whose STS is asked for a role; by default that of AWS Organizations.")
    ] = ""
    closed: Annotated[bool, about("Import accounts that are suspended or closed, too.")] = False
    owner_tags: Annotated[
        tuple[str, ...],
        about("Tags of an account that name its owner, the first one first. Empty: not read."),
    ] = ("owner", "team")
    units: Annotated[
        bool, about("Import organizational units as systems that the accounts are part of.")
    ] = False
    namespace: Annotated[str, about("Namespace of the resources and systems.")] = DEFAULT_NAMESPACE
    url: Annotated[str, about("Another address of AWS Organizations.")] = ""
    sts_url: Annotated[str, about("Another address of STS.")] = ""

    def problems(self) -> Iterable[str]:
        """The mistakes in the table."""
        yield from super().problems()
        if bool(self.access_key_id) != bool(self.secret_access_key):
            yield "access_key_id and secret_access_key belong together"
        if self.role and not _ROLE.fullmatch(self.role):
            yield "role has to be like arn:aws:iam::111122223333:role/factbook"
        if self.region and not _REGION.fullmatch(self.region):
            yield "region has to be like us-east-1"
        if not valid_namespace(self.namespace):
            yield NO_NAMESPACE
        if not all(is_web_address(url) for url in (self.url, self.sts_url) if url):
            yield "url and sts_url have to be like https://host"

    @property
    def home(self) -> str:
        """The region in signatures for AWS Organizations."""
        return _PARTITIONS[self.partition][0]

    @property
    def base_url(self) -> str:
        """The address of AWS Organizations."""
        region, domain = _PARTITIONS[self.partition]
        return self.url or f"https://organizations.{region}.{domain}"

    @property
    def sts_region(self) -> str:
        """The region of STS."""
        return self.region or self.home

    @property
    def sts_base_url(self) -> str:
        """The address of STS."""
        return self.sts_url or f"https://sts.{self.sts_region}.{_PARTITIONS[self.partition][1]}"


class AwsKeys(NamedTuple):
    """Pair of keys for signing requests; temporary keys have a token."""

    id: str
    secret: str
    token: str = ""

    def __repr__(self) -> str:
        """Without the secrets."""
        return "AwsKeys(…)"


class Scope(NamedTuple):
    """Service and region that a signature is valid for."""

    service: str
    region: str


class AwsRequest(NamedTuple):
    """Request to sign; `query` comes from `make_canonical_query`."""

    method: str
    url: str
    query: str = ""
    headers: Mapping[str, str] = {}
    content: bytes = b""


def sign_request(request: AwsRequest, keys: AwsKeys, scope: Scope, now: int) -> dict[str, str]:
    """The headers of the request, including the signature."""
    moment = datetime.fromtimestamp(now // SECOND, UTC).strftime("%Y%m%dT%H%M%SZ")
    given = {name.lower(): " ".join(value.split()) for name, value in request.headers.items()}
    headers = {**given, "x-amz-date": moment}
    if keys.token:
        headers["x-amz-security-token"] = keys.token
    elements = (moment[:8], scope.region, scope.service, "aws4_request")
    place = "/".join(elements)
    canonical, names = _make_canonical_request(
        request, {**headers, "host": urlsplit(request.url).netloc}
    )
    text = "\n".join([_ALGORITHM, moment, place, _hash_content(canonical.encode())])
    key = f"AWS4{keys.secret}".encode()
    for element in elements:
        key = hmac.new(key, element.encode(), hashlib.sha256).digest()
    signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    proof = f"Credential={keys.id}/{place}, SignedHeaders={names}, Signature={signature}"
    return {**headers, "authorization": f"{_ALGORITHM} {proof}"}


def make_canonical_query(parameters: Mapping[str, str]) -> str:
    """The URL query in the canonical form that signatures require."""
    pairs = sorted((quote(k, safe="-_.~"), quote(v, safe="-_.~")) for k, v in parameters.items())
    return "&".join(f"{name}={value}" for name, value in pairs)


def _make_canonical_request(request: AwsRequest, headers: Mapping[str, str]) -> tuple[str, str]:
    """The canonical request, and the names of its signed headers."""
    names = ";".join(sorted(headers))
    lines = [f"{name}:{headers[name]}" for name in sorted(headers)]
    path = quote(urlsplit(request.url).path or "/", safe="/-_.~")
    body = _hash_content(request.content)
    return "\n".join([request.method, path, request.query, *lines, "", names, body]), names


def _hash_content(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class StsCredentials(msgspec.Struct, rename="pascal"):
    """Temporary keys in an answer of STS."""

    access_key_id: str
    secret_access_key: str
    session_token: str

    def __repr__(self) -> str:
        """Without the secrets."""
        return "StsCredentials(…)"


class _AssumedRole(msgspec.Struct, rename="pascal"):
    credentials: StsCredentials


async def find_keys(
    options: AwsImportOptions,
    environment: Mapping[str, str],
    sts: HttpClient,
    now: int,
) -> AwsKeys | Missing:
    """The keys for reading the organization, or the reason for missing ones.

    Keys in the settings take precedence over the environment. With a role, the keys only assume it.
    """
    own = _read_configured_keys(options, environment) or await _assume_by_web_identity(
        options, environment, sts
    )
    if isinstance(own, Missing) or not options.role:
        return own
    parameters = {"RoleArn": options.role, "RoleSessionName": _SESSION}
    if options.external_id:
        parameters["ExternalId"] = options.external_id
    return await _assume_role(options, "AssumeRole", parameters, sts, own, now)


def _read_configured_keys(
    options: AwsImportOptions, environment: Mapping[str, str]
) -> AwsKeys | None:
    if options.access_key_id:
        return AwsKeys(options.access_key_id, options.secret_access_key, options.session_token)
    id_, secret = (
        environment.get(f"AWS_{name}", "") for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY")
    )
    return (
        AwsKeys(id_, secret, environment.get("AWS_SESSION_TOKEN", "")) if id_ and secret else None
    )


async def _assume_by_web_identity(
    options: AwsImportOptions, environment: Mapping[str, str], sts: HttpClient
) -> AwsKeys | Missing:
    """The keys of the role that a Kubernetes service account may assume."""
    file = environment.get("AWS_WEB_IDENTITY_TOKEN_FILE", "")
    role = environment.get("AWS_ROLE_ARN", "")
    if not file or not role:
        return NO_KEYS
    try:
        token = await asyncio.to_thread(Path(file).read_text)
    except (OSError, ValueError):
        return _NO_FILE
    parameters = {"RoleArn": role, "RoleSessionName": _SESSION, "WebIdentityToken": token.strip()}
    return await _assume_role(options, "AssumeRoleWithWebIdentity", parameters, sts, None, 0)


async def _assume_role(
    options: AwsImportOptions,
    action: str,
    parameters: Mapping[str, str],
    sts: HttpClient,
    own: AwsKeys | None,
    now: int,
) -> AwsKeys | Missing:
    """The keys of a role, requested with the current keys, if any."""
    query = make_canonical_query({**parameters, "Action": action, "Version": _STS_VERSION})
    headers = {"accept": "application/json"}
    if own is not None:
        request = AwsRequest("GET", f"{sts.base_url}/", query, headers)
        headers = sign_request(request, own, Scope("sts", options.sts_region), now)
    answer = await sts.get(f"/?{query}", headers=headers)
    if not answer.ok:
        if answer.status in {400, 401, 403}:
            return Missing(Outcome.REFUSED, f"{_NO_ROLE}: STS answered {answer.status}")
        return answer.missing
    found = answer.data.get(f"{action}Response", {}) if isinstance(answer.data, dict) else {}
    result = (
        read_as(found.get(f"{action}Result"), _AssumedRole) if isinstance(found, dict) else None
    )
    if not isinstance(result, _AssumedRole):
        return Missing(Outcome.TRANSIENT, f"{_NO_ROLE}: STS answered in an unknown format")
    temporary = result.credentials
    return AwsKeys(temporary.access_key_id, temporary.secret_access_key, temporary.session_token)


class _ThrottledError(Exception):
    """The host asked to wait."""


@dataclass
class AwsListing(Generic[T]):
    """Items of every page, and the reason for any unread pages."""

    items: list[T] = field(default_factory=list)
    missing: Missing | None = None

    def take(self, page: list[Any] | Missing, type_: type[T]) -> None:
        """Add the items of a page; an invalid item makes the listing incomplete."""
        if isinstance(page, Missing):
            self.missing = page
            return
        for one in page:
            item = read_as(one, type_)
            if isinstance(item, Missing):
                self.missing = item
            else:
                self.items.append(item)


class OrganizationsApi:
    """Client of AWS Organizations with one pair of keys."""

    def __init__(self, client: HttpClient, keys: AwsKeys, region: str, clock: Clock) -> None:
        self._client = client
        self._keys = keys
        self._scope = Scope("organizations", region)
        self._clock = clock

    async def listing(
        self,
        action: str,
        member: str,
        type_: type[T],
        show: Callable[[int], None] = lambda count: None,
        **arguments: Any,
    ) -> AwsListing[T]:
        """The items of all pages; `member` is the answer's field with the items."""
        found, given, seen = AwsListing[T](), dict(arguments), set[str]()
        for _ in range(_MOST_PAGES):
            page = await self.call(action, given)
            if isinstance(page, Missing):
                found.missing = page
                return found
            found.take(read_as(page.get(member), list[Any]), type_)
            show(len(found.items))
            token = page.get("NextToken")
            if token is None or found.missing:
                return found
            if not isinstance(token, str) or token in seen:
                break
            seen.add(token)
            given["NextToken"] = token
        found.missing = REPEATED
        return found

    async def call(self, action: str, arguments: Mapping[str, Any]) -> dict[str, Any] | Missing:
        """The answer to one call, or the reason for a missing one."""
        answer = await self._repeated(action, arguments)
        if not answer.ok:
            return _explain_answer(action, answer)
        if not isinstance(answer.data, dict):
            return UNUSABLE
        return answer.data

    async def _repeated(self, action: str, arguments: Mapping[str, Any]) -> Answer:
        try:
            async for attempt in stamina.retry_context(
                on=_ThrottledError, attempts=_MOST_ATTEMPTS, timeout=None, wait_max=_LONGEST_PAUSE
            ):
                with attempt:
                    answer = await self._once(action, arguments)
                    if _read_error_code(answer) in _THROTTLED:
                        raise _ThrottledError
        except _ThrottledError:
            pass
        return answer

    async def _once(self, action: str, arguments: Mapping[str, Any]) -> Answer:
        headers = {
            "content-type": "application/x-amz-json-1.1",
            "x-amz-target": f"{_SERVICE}.{action}",
        }
        content = msgspec.json.encode(arguments)
        request = AwsRequest("POST", f"{self._client.base_url}/", "", headers, content)
        proven = sign_request(request, self._keys, self._scope, self._clock())
        return await self._client.post("/", arguments, headers=proven)


def _explain_answer(action: str, answer: Answer) -> Missing:
    """The reason given by AWS, or derived from the HTTP status."""
    code, host = _read_error_code(answer), answer.detail.partition(":")[0]
    if code in _THROTTLED:
        return Missing(Outcome.RATE_LIMITED, f"{host}: asks to call less often")
    if code in _DENIED:
        return Missing(Outcome.DENIED, f"needs organizations:{action}")
    if code in _REFUSED:
        return Missing(Outcome.REFUSED, "the keys are not accepted: wrong, expired or revoked")
    if code == _NO_ORGANIZATION:
        return Missing(Outcome.NOT_FOUND, "the account is not in an organization")
    return answer.missing


def _read_error_code(answer: Answer) -> str:
    """The name of an error: `TooManyRequestsException`."""
    if answer.ok or not isinstance(answer.data, dict):
        return ""
    found = answer.data.get("__type") or answer.data.get("code")
    return found.rpartition("#")[2].partition(":")[0] if isinstance(found, str) else ""


class AwsAccount(msgspec.Struct, rename="pascal", frozen=True):
    """Account in a listing; `paths` lead to it from the root of its organization."""

    id: _Id
    arn: str
    name: str = ""
    state: str = ""
    paths: tuple[str, ...] = ()

    @property
    def organization(self) -> str:
        """The id of its organization; empty in an ARN of another form."""
        parts = self.arn.rpartition(":")[2].split("/")
        return parts[1] if len(parts) == 3 and parts[0] == "account" else ""

    @property
    def units(self) -> tuple[str, ...]:
        """The ids of the root and the organizational units above the account, the root first."""
        parts = self.paths[0].split("/") if self.paths else ()
        return tuple(part for part in parts if part.startswith(("r-", "ou-")))


class AwsTag(msgspec.Struct, rename="pascal", frozen=True):
    """Tag of an account."""

    key: str
    value: str


class AwsUnit(msgspec.Struct, rename="pascal", frozen=True):
    """Organizational unit, or the root of the organization."""

    id: str
    arn: str
    name: str = ""


def make_account_resource(
    account: AwsAccount, name: str, owner: str | None, system: str | None
) -> Entity:
    """The resource of an account."""
    given = {ACCOUNT_ID: account.id, ARN: account.arn, ORGANIZATION_ID: account.organization}
    given[UNIT_PATH] = "/".join(account.units)
    metadata: Entity = {"name": name}
    if account.name.strip() not in {"", name}:
        metadata["title"] = account.name.strip()
    metadata["annotations"] = {key: value for key, value in given.items() if value}
    if account.state:
        metadata["labels"] = {STATE: account.state}
    spec = {"type": "cloud-account"}
    spec |= {"owner": owner} if owner else {}
    spec |= {"system": system} if system else {}
    return {"apiVersion": _API_VERSION, "kind": "Resource", "metadata": metadata, "spec": spec}


def make_unit_system(unit: AwsUnit, name: str, path: Sequence[str]) -> Entity:
    """The system of an organizational unit; `path` has the names of its ancestors."""
    metadata: Entity = {"name": name, "description": " / ".join([*path, unit.name])}
    metadata["annotations"] = {UNIT_ID: unit.id, ARN: unit.arn}
    return {"apiVersion": _API_VERSION, "kind": "System", "metadata": metadata, "spec": {}}


def find_tagged_owner(tags: Iterable[AwsTag], keys: Sequence[str]) -> str | None:
    """The owner named by the first of these tags, in any case; a group unless the tag has a kind.

    None if there is no such tag. Raises InputError for an invalid reference.
    """
    values = {tag.key.lower(): tag.value.strip() for tag in tags}
    value = next(filter(None, (values.get(key.lower()) for key in keys)), None)
    if value is None:
        return None
    return ref.canonicalize_target(value, kind="group")


@dataclass
class UnitTree:
    """Organizational units by id, each with the names from the root to it.

    `missing` is the reason for any unread units.
    """

    units: dict[str, AwsUnit] = field(default_factory=dict)
    paths: dict[str, list[str]] = field(default_factory=dict)
    missing: Missing | None = None
    parents: set[str] = field(default_factory=set)

    @property
    def rights(self) -> frozenset[str]:
        """The units with children, as rights: a list that is suddenly empty is not trusted."""
        return frozenset(f"units below {parent}" for parent in self.parents)


def make_unread_snapshot(missing: Missing, options: AwsImportOptions) -> Snapshot:
    """The snapshot of an organization that cannot be read."""
    problem = ReadingProblem(_ORIGIN, missing.reason)
    keys = [ACCOUNTS_PART, UNITS_PART] if options.units else [ACCOUNTS_PART]
    return Snapshot(tuple(SnapshotPart(key, False, problems=(problem,)) for key in keys))


async def read_aws(
    api: OrganizationsApi, options: AwsImportOptions, memory: Memory, show: Show
) -> Snapshot:
    """A snapshot of the organization: parts for its accounts and, if wanted, its units."""
    listed: AwsListing[AwsAccount] = await api.listing(
        "ListAccounts", "Accounts", AwsAccount, lambda count: show(f"Read {count:,} accounts")
    )
    every = {account.id: account for account in listed.items}
    wanted = [one for one in every.values() if options.closed or one.state not in CLOSED]
    left_out = Counter({"suspended and closed accounts": len(every) - len(wanted)})
    show("Reading the organizational units" if options.units else "Reading the tags")
    tree = await _read_units(api) if options.units else None
    tags = await _read_tags(api, wanted, options)
    complete = listed.missing is None
    given = {id_: account.name for id_, account in every.items()}
    names = make_unique_names(await remember_names(memory, _NAMES, given, complete=complete))
    making = _OrganizationParts(options, tree, await _name_systems(tree, memory), tags)
    parts = [making.accounts(wanted, names, listed.missing)]
    if tree is not None:
        parts.append(making.units(tree))
    return Snapshot(tuple(parts), +left_out)


async def _read_tags(
    api: OrganizationsApi, wanted: Iterable[AwsAccount], options: AwsImportOptions
) -> dict[str, list[AwsTag] | Missing]:
    """The tags of each account, or the reason for unknown ones."""
    waiting = [account.id for account in wanted] if options.owner_tags else []
    found: dict[str, list[AwsTag] | Missing] = {}
    turns = asyncio.Semaphore(_AT_ONCE)

    async def one(id_: str) -> None:
        async with turns:
            tags = await api.listing("ListTagsForResource", "Tags", AwsTag, ResourceId=id_)
        found[id_] = tags.missing or tags.items

    if waiting:
        await one(first := waiting[0])
        told = found[first]
        if isinstance(told, Missing) and told.outcome in _FUTILE:
            return dict.fromkeys(waiting, told)
        async with asyncio.TaskGroup() as group:
            for id_ in waiting[1:]:
                group.create_task(one(id_))
    return found


async def _name_systems(tree: UnitTree | None, memory: Memory) -> dict[str, str]:
    """The names of the systems by the id of the unit."""
    if tree is None:
        return {}
    given = {unit.id: unit.name for unit in tree.units.values()}
    complete = tree.missing is None
    return make_unique_names(await remember_names(memory, _UNIT_NAMES, given, complete=complete))


class _OrganizationParts:
    """Maker of the parts of one organization."""

    def __init__(
        self,
        options: AwsImportOptions,
        tree: UnitTree | None,
        systems: Mapping[str, str],
        tags: Mapping[str, list[AwsTag] | Missing],
    ) -> None:
        self._options = options
        self._tree = tree
        self._systems = systems
        self._tags = tags
        self._problems: list[ReadingProblem] = []

    def accounts(
        self, wanted: Sequence[AwsAccount], names: Mapping[str, str], missing: Missing | None
    ) -> SnapshotPart:
        """The part of the accounts.

        Names are unique among all accounts, so a closed account does not rename another.
        """
        if missing:
            self._problems.append(ReadingProblem(_ORIGIN, f"accounts: {missing.reason}"))
        items = [self._account(account, names[account.id]) for account in wanted]
        unknown = [one for one in self._tags.values() if isinstance(one, Missing)]
        reasons = dict.fromkeys(one.reason for one in unknown)
        self._problems += [ReadingProblem(_ORIGIN, f"tags: {reason}") for reason in reasons]
        none = bool(unknown) and len(unknown) == len(self._tags)
        return SnapshotPart(
            ACCOUNTS_PART,
            missing is None,
            tuple(items),
            tuple(self._problems),
            rights=frozenset(
                f"organization {one.organization}" for one in wanted if one.organization
            ),
            failed=none or any(one.passing for one in unknown),
        )

    def units(self, tree: UnitTree) -> SnapshotPart:
        """The part of the organizational units."""
        place = self._options.namespace
        items = [
            _make_aws_item(
                _place_entity(make_unit_system(unit, self._systems[id_], tree.paths[id_]), place),
                id_,
                unit,
            )
            for id_, unit in tree.units.items()
        ]
        missing = tree.missing
        problems = [ReadingProblem(_ORIGIN, f"units: {missing.reason}")] if missing else []
        return SnapshotPart(
            UNITS_PART, missing is None, tuple(items), tuple(problems), rights=tree.rights
        )

    def _account(self, account: AwsAccount, name: str) -> ImportedItem:
        """The item of an account; without its tags or unit, the item is tentative."""
        tags, owner, uncertain = self._tags.get(account.id, []), None, False
        known: list[AwsTag] = []
        if isinstance(tags, Missing):
            uncertain = True
        else:
            known = tags
            try:
                owner = find_tagged_owner(tags, self._options.owner_tags)
            except InputError:
                text = "the tag that names its owner is not a reference such as group:payments"
                self._problems.append(ReadingProblem(_make_aws_origin(account.id), text))
        system = None
        if self._tree is not None and account.units:
            unit = account.units[-1]
            name_of_unit = self._systems.get(unit) if unit in self._tree.units else None
            system = name_of_unit and f"system:{self._options.namespace}/{name_of_unit}"
            # A unit missing from the tree was created meanwhile, or could not be read.
            uncertain |= system is None and unit.startswith("ou-")
        entity = _place_entity(
            make_account_resource(account, name, owner, system), self._options.namespace
        )
        raw = msgspec.to_builtins(account) | {"Tags": {tag.key: tag.value for tag in known}}
        return _make_aws_item(entity, account.id, raw, tentative=uncertain)


def _place_entity(entity: Entity, namespace: str) -> Entity:
    if namespace != DEFAULT_NAMESPACE:
        entity["metadata"]["namespace"] = namespace
    return entity


def _make_aws_item(entity: Entity, id_: str, raw: Any, *, tentative: bool = False) -> ImportedItem:
    place = _make_aws_origin(id_)
    return ImportedItem(entity, place, place, tentative=tentative, marks=GENERATED, raw=raw)


def _make_aws_origin(id_: str) -> str:
    kind = "organizational-unit" if id_.startswith("ou-") else "account"
    return f"{_ORIGIN}/{kind}/{id_}"


async def _read_units(api: OrganizationsApi) -> UnitTree:
    """Every organizational unit."""
    tree = UnitTree()
    roots = await api.listing("ListRoots", "Roots", AwsUnit)
    tree.missing = roots.missing
    waiting = [(root.id, [root.name]) for root in roots.items]
    while waiting:
        parent, path = waiting.pop()
        found = await api.listing(
            "ListOrganizationalUnitsForParent", "OrganizationalUnits", AwsUnit, ParentId=parent
        )
        tree.missing = tree.missing or found.missing
        tree.parents |= {parent} if found.items else set()
        for unit in found.items:
            if unit.id in tree.units:
                tree.missing = tree.missing or REPEATED
                continue
            tree.units[unit.id], tree.paths[unit.id] = unit, path
            waiting.append((unit.id, [*path, unit.name]))
    return tree


async def _read_aws_snapshot(
    context: ReadingContext, options: AwsImportOptions, show: Show
) -> Snapshot:
    sts = context.client.further[options.sts_base_url]
    found = await find_keys(options, os.environ, sts, clock.now())
    if isinstance(found, Missing):
        return make_unread_snapshot(found, options)
    # Signed per call: reading a large organization takes longer than a signature is valid.
    api = OrganizationsApi(context.client, found, options.home, clock.now)
    return await read_aws(api, options, context.memory, show)


IMPORTER: Final = ImporterKind(
    id="aws",
    title="AWS Organizations",
    options=AwsImportOptions,
    makes=("resource", "system"),
    read=_read_aws_snapshot,
    access=lambda options: Access(
        base_url=options.base_url,
        pace={"": _CALLS_A_MINUTE},
        further={options.sts_base_url: lambda _: ANONYMOUS},
    ),
)
