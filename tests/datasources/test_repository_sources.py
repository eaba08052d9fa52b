"""Sources of the files of repositories, as the collector runs them."""

from typing import Any

import pytest

from factbook.datasources.custom import sources as source_sources
from factbook.datasources.registry import HostFiles
from tests.datasources.asking import Custom, Hosts, NoFiles, built, connecting, definition
from tests.integrations.gitlab.asking import APP
from tests.integrations.gitlab.asking import full as project
from tests.integrations.gitlab.asking import started as gitlab
from tests.service import Service


async def test_a_file_of_the_repository_is_the_document(service: Service) -> None:
    repository = project()
    repository.files.append("deploy/app.yaml")
    repository.texts["deploy/app.yaml"] = b"replicas: 3\nimage: registry/app:1.2\n"
    fake, host = gitlab(repository)
    files = HostFiles(service.state.database, [host.integration], lambda _: host.client, host.time)
    source = definition(
        "repository-file",
        path="deploy/{{ metadata.name }}.yaml",
        format="yaml",
        facts={"replicas": ("integer", "replicas"), "tag": ("string", "/app:([0-9.]+)/")},
    )
    found = source_sources.build_integration(source, {}, files)
    world = Custom(service, connecting(service, Hosts()), found)
    slug = {"gitlab.com/project-slug": APP}
    await world.run(
        built("app", **slug),
        built("gone", **slug),
        built("none"),
        built("lost", **{"gitlab.com/project-slug": "acme/no"}),
    )
    assert (await world.latest("app")).facts == {"replicas": 3, "tag": "1.2"}
    reasons = {
        name: (await world.latest(name)).reasons[""].partition(":")[0]
        for name in ("gone", "none", "lost")
    }
    assert reasons == {"gone": "not-found", "none": "no-annotation", "lost": "not-found"}
    assert fake.requests == {"file": 3}


@pytest.mark.parametrize("name", ["..", ".", "a/../b", "a//b"])
def test_a_path_that_an_entity_leads_astray_is_not_asked_for(name: str) -> None:
    source = definition("repository-file", path='{{ metadata.annotations."x" }}/f')
    found = source_sources.build_integration(source, {}, OneFile())
    assert found is not None
    target = found.target({"metadata": {"annotations": {"x": name}}})
    assert not isinstance(target, str)
    assert target.reason.startswith("no-annotation")


class OneFile(NoFiles):
    """Every entity has a repository."""

    def locate(self, entity: Any) -> Any:
        return "host", "acme/app"


async def test_the_files_of_a_directory_are_the_document(service: Service) -> None:
    _, host = gitlab(project())
    files = HostFiles(service.state.database, [host.integration], lambda _: host.client, host.time)
    source = definition(
        "repository-directory",
        path="{{ metadata.annotations.folder }}",
        facts={"count": ("integer", "count"), "files": ("set", "paths")},
    )
    everything = definition("repository-directory", "all", {"count": ("integer", "count")})
    sources = [source_sources.build_integration(one, {}, files) for one in (source, everything)]
    world = Custom(service, connecting(service, Hosts()), *sources)
    slug = {"gitlab.com/project-slug": APP}
    app = built("app", folder="docs", **slug)
    hosts = Custom(service, lambda _: host.client, host.integration)
    await hosts.run(app, built("none", folder="docs"), built("bare", **slug))
    await world.run()
    assert (await world.latest("app")).facts == {"count": 1, "files": ["index.md"]}
    assert (await world.latest("app", "all")).facts == {"count": 6}
    for name in ("none", "bare"):
        assert (await world.latest(name)).reasons[""].startswith("no-annotation")


async def test_files_that_were_not_collected_yet_are_no_empty_list(service: Service) -> None:
    _, host = gitlab(project())
    files = HostFiles(service.state.database, [host.integration], lambda _: host.client, host.time)
    members = {"timeout": {"seconds": 20}}
    facts = {"count": ("integer", "count")}
    source = definition("repository-directory", facts=facts, members=members)
    found = source_sources.build_integration(source, {}, files)
    world = Custom(service, connecting(service, Hosts()), found)
    await world.run(built("app", **{"gitlab.com/project-slug": APP}))
    assert (await world.latest("app")).reasons == {
        "": "upstream-error: the files of the repository were not collected yet"
    }
