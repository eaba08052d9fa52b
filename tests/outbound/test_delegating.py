"""Calls that another program makes for a client."""

from factbook.clock import MINUTE
from factbook.outbound.client import ANONYMOUS, Credential, HostRoute, HttpClient
from factbook.outbound.network import Network
from factbook.outbound.outcomes import HostReply, Outcome
from tests.outbound.asking import Host, Sleeps, asking, json, naming, network
from tests.service import NOON, Time

SECRET = "a secret of tests"
TOKEN = Credential.fixed("acme", {"authorization": SECRET})
PUBLIC = naming(api_example="8.8.8.8", proxy_example="127.0.0.1")


class Program:
    """Another program that brings these replies in turn, the last one for ever."""

    def __init__(self, *replies: HostReply) -> None:
        self.replies = list(replies)
        self.routes: list[HostRoute] = []

    async def __call__(self, route: HostRoute) -> HostReply:
        self.routes.append(route)
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]


def client(url: str, through: Network, credential: Credential = ANONYMOUS) -> HttpClient:
    time = Time()
    sender = through.sender(url)
    return HttpClient(url, sender, credential=credential, clock=time, sleep=Sleeps(time))


async def test_a_program_is_told_the_checked_addresses_and_who_asks() -> None:
    program = Program(HostReply(200, body=b"found"))
    asker = client("https://api.example:8443/v1", network(resolver=PUBLIC), TOKEN)
    answer = await asker.delegate(program)
    assert (answer.outcome, answer.body, asker.health.calls) == (Outcome.OK, b"found", 1)
    [route] = program.routes
    assert (route.url, route.proxy) == ("https://api.example:8443/v1", "")
    assert (route.name, route.port, list(route.addresses)) == ("api.example", 8443, ["8.8.8.8"])
    assert route.headers == {"authorization": SECRET}
    assert route.authorities.startswith("-----BEGIN CERTIFICATE-----")
    assert SECRET not in repr(route)


async def test_behind_a_proxy_the_route_is_the_proxys() -> None:
    program = Program(HostReply(200))
    through = network(resolver=PUBLIC, outgoing_proxy="http://me:secret@proxy.example")
    await client("https://unknown.example", through).delegate(program)
    [route] = program.routes
    assert (route.name, route.port, list(route.addresses)) == ("proxy.example", 80, ["127.0.0.1"])
    assert route.proxy == "http://me:secret@proxy.example:80"
    assert "secret" not in repr(route)


async def test_without_an_allowed_address_no_program_is_run() -> None:
    program = Program(HostReply(200))
    inner = naming(api_example=["8.8.8.8", "10.0.0.1"])
    refused = network(resolver=inner, outgoing_networks=[])
    for asker, detail in (
        (client("https://api.example", refused), "outgoing_networks can allow it"),
        (client("https://10.0.0.1", refused), "outgoing_networks can allow it"),
        (client("https://nobody.example", refused), "no connection"),
        (asking(Host(json(200, {}))), "other programs cannot reach it"),
    ):
        answer = await asker.delegate(program)
        assert answer.outcome is Outcome.TRANSIENT
        assert detail in answer.detail
    assert program.routes == []


async def test_a_programs_reply_is_told_apart_repeated_and_held_as_any_other() -> None:
    asker = client("https://api.example", network(resolver=PUBLIC))
    denied = await asker.delegate(Program(HostReply(403)))
    assert (denied.outcome, denied.detail) == (Outcome.DENIED, "api.example: answered 403")
    broken = Program(
        HostReply(0, failure="no connection", repeatable=True), HostReply(503), HostReply(200)
    )
    assert (await asker.delegate(broken)).ok
    assert len(broken.routes) == 3
    assert (await asker.delegate(Program(HostReply(503)), attempts=1)).status == 503
    limited = await asker.delegate(Program(HostReply(429)))
    assert (limited.outcome, limited.retry_at) == (Outcome.RATE_LIMITED, NOON + MINUTE)
    waiting = Program(HostReply(200))
    assert (await asker.delegate(waiting)).outcome is Outcome.RATE_LIMITED
    assert waiting.routes == []
    assert (asker.health.calls, asker.health.held) == (6, 1)
