"""Code hosts whose repositories, groups and people change names, imported by a running service."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from factbook.clock import HOUR, SECOND
from factbook.importers import registry
from factbook.importers.registry import ImporterRegistry
from factbook.importers.runner import ImportRunner
from factbook.settings import Settings
from tests.fakes.gitea import state as gitea
from tests.fakes.gitea.app import FakeGitea
from tests.fakes.github import state as github
from tests.fakes.github.app import FakeGitHub
from tests.fakes.gitlab import state as gitlab
from tests.fakes.gitlab.app import FakeGitLab
from tests.importers.deliveries import EVENTS, SECRET, push_to, signed
from tests.integrations.asking import Asking
from tests.integrations.gitea import asking as of_gitea
from tests.integrations.github import asking as of_github
from tests.integrations.gitlab import asking as of_gitlab
from tests.service import Service

# What a host has, by number: the name of each.
Things = dict[int, str]


class IdentityHost(ABC):
    """An owner `acme` at a code host; repositories, groups and people are set by their numbers."""

    kind: ClassVar[str]
    group: ClassVar[str] = "group:default/{}"
    owners: ClassVar[str] = "organizations"
    # Whether each person is a member of the group with their number.
    has_members = True

    def __init__(self, service: Service, *owners: str, **options: Any) -> None:
        self.service = service
        self.has_people = options.get("people", True)
        self.fake, collector = self._made()
        self.client = collector.client
        table = {self.owners: list(owners or ["acme"]), "every": "6h", **options}
        accounts = {self.kind: {"default": collector.table}}
        importer = registry.configure_importer(self.kind, "default", table, accounts)
        database = service.state.database
        service.state.importers = ImporterRegistry(
            database, [importer], {}, service.time, lambda: b"a key of tests" * 5
        )
        self.runner = ImportRunner(
            database,
            Settings(),
            service.state.importers,
            lambda integration: self.client,
            service.time,
            "a",
        )

    def refs(self, name: str) -> list[str]:
        """The references of the repository, the group and the person with this name."""
        people = [self.group.format(name), f"user:default/{name}"] if self.has_people else []
        return [f"component:default/{name}", *people]

    @abstractmethod
    def _made(self) -> tuple[Any, Asking]:
        """The fake, and who reads it."""

    @abstractmethod
    def set(self, things: Things) -> None:
        """Have a repository, a group and a person with each of these numbers and names."""

    async def poll(self) -> None:
        """Read everything."""
        self.service.time.advance(7 * HOUR)
        await self.runner.drain()


class GithubHost(IdentityHost):
    """GitHub, which sends events about repositories, too."""

    kind = "github"

    def _made(self) -> tuple[Any, Asking]:
        fake = FakeGitHub((), [github.Token(of_github.TOKEN)], clock=self.service.time)
        self.known: dict[int, github.Repository] = {}
        self.delivery = 0
        return fake, of_github.Collector(fake, self.service.time)

    def set(self, things: Things) -> None:
        self.changed = []
        for number, name in things.items():
            slug = name if "/" in name else f"acme/{name}"
            first = [f"acme/first-{number}"]
            one = self.known.setdefault(number, github.Repository("", first, number=number))
            if one.name != slug:
                self.changed.append(one)
                one.old_names = [*one.old_names, *filter(None, [one.name])]
                one.name = slug
        self.changed += [one for number, one in self.known.items() if number not in things]
        self.fake.repositories[:] = [self.known[number] for number in things]
        plain = {number: name for number, name in things.items() if "/" not in name}
        self.fake.teams[:] = [github.Team(name, n, [name]) for n, name in plain.items()]
        self.fake.members[:] = [github.Member(name, n) for n, name in plain.items()]

    async def events(self, *, backwards: bool) -> None:
        """Deliver the events about repositories, each read before the next one comes."""
        for one in self.changed[::-1] if backwards else self.changed:
            self.delivery += 1
            content = push_to(one)
            headers = signed(content, "repository", SECRET, str(self.delivery))
            async with self.service.client(None) as http:
                answer = await http.post(EVENTS, content=content, headers=headers)
            assert answer.status_code == 202, answer.text
            self.service.time.advance(5 * SECOND)
            await self.runner.drain()


class GitlabHost(IdentityHost):
    """GitLab."""

    kind = "gitlab"
    group = "group:default/g-{}"
    owners = "groups"
    # With some, removals of people are held when a group goes.
    has_members = False

    def _made(self) -> tuple[Any, Asking]:
        token = gitlab.Token(of_gitlab.TOKEN, limit=1_000_000)
        fake = FakeGitLab((), [token], clock=self.service.time)
        return fake, of_gitlab.Collector(fake, self.service.time)

    def set(self, things: Things) -> None:
        slugs = {n: name if "/" in name else f"acme/{name}" for n, name in things.items()}
        self.fake.projects[:] = [gitlab.Project(slug, n) for n, slug in slugs.items()]
        plain = {number: name for number, name in things.items() if "/" not in name}
        tops = [gitlab.Group("acme", 1, [*plain.values()]), gitlab.Group("other", 2)]
        # No group has the path of a project.
        below = [
            gitlab.Group(f"acme/g-{name}", 100 + n, [name] if self.has_members else [])
            for n, name in plain.items()
        ]
        self.fake.groups[:] = [*tops, *below]
        self.fake.accounts[:] = [gitlab.Account(name, 100 + n) for n, name in plain.items()]


class GiteaHost(IdentityHost):
    """Gitea."""

    kind = "gitea"

    def _made(self) -> tuple[Any, Asking]:
        fake = FakeGitea((), [gitea.Token(of_gitea.TOKEN)])
        return fake, of_gitea.Collector(fake, self.service.time)

    def set(self, things: Things) -> None:
        self.fake.repositories[:] = [
            gitea.Repository(f"acme/{name}", number=n) for n, name in things.items()
        ]
        self.fake.teams[:] = [gitea.Team(name, n, [name]) for n, name in things.items()]
        self.fake.accounts[:] = [gitea.Account(name, n) for n, name in things.items()]
