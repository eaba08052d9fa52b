"""Git commands for one repository, with their configuration and environment."""

import asyncio
import os
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from factbook.outbound.calls import HostRoute
from factbook.outbound.client import HttpClient
from factbook.outbound.git.program import Bounds, run
from factbook.outbound.git.replies import reply_of
from factbook.outbound.outcomes import Answer, HostReply

MIB: Final = 1024 * 1024
HEAD_SECONDS: Final = 30.0
_MOST_MEMORY: Final = str(256 * MIB)

# Nothing is run, followed, unpacked one by one, or fetched later than with the clone.
_CONFIG: Final = (
    ("protocol.allow", "never"),
    ("protocol.version", "2"),
    ("http.followRedirects", "false"),
    ("http.sslVerify", "true"),
    ("http.proxyAuthMethod", "basic"),
    # It ends by itself, too, should its parent be killed.
    ("http.lowSpeedLimit", "1"),
    ("http.lowSpeedTime", "240"),
    ("credential.helper", ""),
    ("core.askPass", ""),
    ("core.hooksPath", os.devnull),
    ("core.fsmonitor", "false"),
    ("core.bigFileThreshold", "1m"),
    ("fetch.unpackLimit", "1"),
    # Objects are only read for names, which are data here, so odd ones of old times may stay.
    ("fetch.fsckObjects", "false"),
    ("fetch.recurseSubmodules", "false"),
    ("submodule.recurse", "false"),
    ("transfer.bundleURI", "false"),
    ("pack.threads", "1"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
)


class Limits(NamedTuple):
    """Limits of a repository: seconds in all, MiB to download, and files."""

    seconds: int = 120
    megabytes: int = 100
    files: int = 200_000

    def __str__(self) -> str:
        """The limits of size for messages; time is reported apart from them."""
        return f"{self.megabytes} MiB or {self.files} files"


class Git:
    """Commands for one repository, with a folder of their own and one time limit."""

    def __init__(self, program: str, limits: Limits, client: HttpClient, folder: str) -> None:
        self._program = program
        self.limits = limits
        self._client = client
        self._folder = folder
        self._deadline = asyncio.get_running_loop().time() + limits.seconds

    async def heads(self, url: str) -> Answer:
        """The lines for HEAD, as the answer to one call."""
        call = partial(self._call, ["ls-remote", "--quiet", "--", url, "HEAD"], HEAD_SECONDS)
        return await self._client.delegate(call)

    async def clone(self, url: str) -> Answer:
        """Clone the newest commit and its trees, without file contents; the answer has no body."""
        arguments = (
            *("clone", "--quiet", "--bare", "--depth=1", "--filter=blob:none", "--no-tags"),
            *("--single-branch", "--template=", "--", url, "repository"),
        )
        call = partial(self._call, arguments, float(self.limits.seconds))
        return await self._client.delegate(call, attempts=1)

    async def tree(self, commit: str) -> HostReply:
        """All entries below the commit, each ended by NUL; makes no call.

        `<mode> <type> <id>`, a tab and the path: with a custom format, Git would quote paths.
        """
        arguments = ("--git-dir=repository", "ls-tree", "-r", "-z", "--full-tree", commit)
        return await self._run(arguments, (), float(self.limits.seconds))

    async def entry(self, commit: str, file: str) -> HostReply:
        """The entry at a path of the commit, in the form of `tree`; empty if there is none."""
        arguments = (
            *("--literal-pathspecs", "--git-dir=repository", "ls-tree", "-z", "--full-tree"),
            *(commit, "--", file),
        )
        return await self._run(arguments, (), float(self.limits.seconds))

    async def blob(self, id_: str) -> Answer:
        """The contents of one file, which Git fetches on demand."""
        arguments = ("--git-dir=repository", "cat-file", "blob", id_)
        call = partial(self._call, arguments, float(self.limits.seconds), fetches=True)
        return await self._client.delegate(call, attempts=1)

    async def _call(
        self, arguments: Sequence[str], seconds: float, route: HostRoute, *, fetches: bool = False
    ) -> HostReply:
        config = route_config(route, self._folder)
        return await self._run(arguments, config, seconds, fetches=fetches)

    async def _run(
        self,
        arguments: Sequence[str],
        config: Iterable[tuple[str, str]],
        seconds: float,
        *,
        fetches: bool = False,
    ) -> HostReply:
        limits = self.limits
        left = self._deadline - asyncio.get_running_loop().time()
        bounds = Bounds(max(0.0, min(seconds, left)), limits.megabytes * MIB, limits.files)
        ended = await run(
            [self._program, *arguments],
            environment(self._folder, [*_CONFIG, *config], fetches=fetches),
            self._folder,
            bounds,
        )
        return reply_of(ended, limits=str(limits), seconds=min(seconds, limits.seconds))


def route_config(route: HostRoute, folder: str) -> list[tuple[str, str]]:
    """The options that confine Git to the route's addresses; writes its authorities to a file."""
    scheme = route.url.partition(":")[0]
    addresses = ",".join(f"[{one}]" if ":" in one else one for one in route.addresses)
    config = [(f"protocol.{scheme}.allow", "always"), ("http.proxy", route.proxy)]
    if ":" not in route.name:
        config.append(("http.curloptResolve", f"{route.name}:{route.port}:{addresses}"))
    if route.authorities:
        file = Path(folder, "authorities.pem")
        file.write_text(route.authorities)
        config += [("http.sslCAInfo", str(file)), ("http.proxySSLCAInfo", str(file))]
    config += [
        (f"http.{route.url}.extraHeader", f"{name}: {value}")
        for name, value in route.headers.items()
    ]
    return config


def environment(
    folder: str, config: Sequence[tuple[str, str]], *, fetches: bool = False
) -> dict[str, str]:
    """The whole environment of the program; secrets are nowhere else, hidden from other processes.

    Its home is the folder, or it would read a `.netrc`. `fetches`: it may fetch missing objects.
    """
    pairs: dict[str, str] = {}
    for i, (key, value) in enumerate(config):
        pairs |= {f"GIT_CONFIG_KEY_{i}": key, f"GIT_CONFIG_VALUE_{i}": value}
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": folder,
        "LC_ALL": "C",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        # No repository around the folder is read.
        "GIT_CEILING_DIRECTORIES": str(Path(folder).parent),
        "GIT_NO_LAZY_FETCH": "0" if fetches else "1",
        # What is packed small may be large: no object may take more memory.
        "GIT_ALLOC_LIMIT": _MOST_MEMORY,
        "GIT_CONFIG_COUNT": str(len(config)),
        **pairs,
    }
