"""Imports that people reported in public, with the organizations in tests/data/reports."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.cli.imported_catalog import Catalog, catalog
from tests.fakes import faults
from tests.fakes.fake import Fake
from tests.fakes.gitea import state as gitea
from tests.fakes.gitlab.state import Account
from tests.importers import scenarios
from tests.importers.gitea_organization import GiteaOwner, own
from tests.importers.gitlab_group import GitlabGroup, project
from tests.importers.organization import CATALOG, Organization, file, repository
from tests.importers.scenarios import scenario

__all__ = ["catalog"]


def gitlab_owned(codeowners: str) -> Fake:
    group = GitlabGroup(project("shop", texts={"CODEOWNERS": codeowners}))
    group.people(Account("member-a", 2), platform=["member-a"], docs=[])
    return group.fake


def gitea_owned(codeowners: str) -> Fake:
    owner = GiteaOwner(own("shop", texts={"CODEOWNERS": codeowners}))
    owner.fake.accounts = [gitea.Account("member-a", 1)]
    owner.fake.teams = [gitea.Team("platform", 1, ["member-a"]), gitea.Team("docs", 2)]
    return owner.fake


def github_owned(codeowners: str) -> Fake:
    given = scenario("11-codeowners-of-the-root-folder")
    given["repositories"][0]["files"]["CODEOWNERS"] = codeowners
    return scenarios.github(given)


OWNED: Mapping[str, Callable[[str], Fake]] = {
    "github": github_owned,
    "gitlab": gitlab_owned,
    "gitea": gitea_owned,
}


@pytest.mark.parametrize("host", list(OWNED))
def test_the_files_of_the_root_folder_are_not_everything(catalog: Catalog, host: str) -> None:
    [files] = [one["files"] for one in scenario("11-codeowners-of-the-root-folder")["repositories"]]
    catalog.take(host, OWNED[host](files["CODEOWNERS"]))
    assert catalog.owners() == {"shop": "group:default/platform"}


@pytest.mark.parametrize("host", list(OWNED))
def test_a_byte_order_mark_before_owners_is_no_part_of_a_pattern(
    catalog: Catalog, host: str
) -> None:
    catalog.take(host, OWNED[host]("\ufeff* @acme/docs\n\ufeff* @acme/platform\n"))
    assert catalog.owners() == {"shop": "group:default/platform"}


@pytest.mark.parametrize("host", list(OWNED))
@pytest.mark.parametrize(
    ("codeowners", "owner"),
    [
        ("* @left @acme/platform\n", "group:default/platform"),
        ("* @left @member-a\n", "user:default/member-a"),
    ],
)
def test_somebody_who_left_owns_nothing(
    catalog: Catalog, host: str, codeowners: str, owner: str
) -> None:
    catalog.take(host, OWNED[host](codeowners))
    assert catalog.owners() == {"shop": owner}


def test_an_entity_in_a_file_comes_before_one_that_the_import_made_up(catalog: Catalog) -> None:
    written = repository("other", 2, texts={CATALOG: file("shop")})
    one = Organization(repository("shop", 1), written)
    report = catalog.take("github", one.fake)
    assert catalog.owners() == {"shop": "team-a"}
    [problem] = report["parts"][0]["problems"]
    assert problem["origin"] == "github.com/acme/shop"
    assert "comes from github.com/acme/other catalog-info.yaml:1 too" in problem["message"]


def test_a_team_of_a_code_host_is_no_owner_of_an_entity_in_a_file(catalog: Catalog) -> None:
    text = file("shop").replace("owner: team-a", "owner: '@acme/platform'")
    report = catalog.take("github", Organization(repository("shop", 1, texts={CATALOG: text})).fake)
    assert catalog.owners() == {"shop": "@acme/platform"}
    [problem] = report["parts"][0]["problems"]
    assert (problem["file"], problem["line"]) == (CATALOG, 5)
    assert problem["message"] == (
        'spec.owner: No entity can have the reference "@acme/platform": write it like '
        "group:default/platform."
    )


def test_what_is_marked_for_deletion_is_gone(catalog: Catalog) -> None:
    given = scenario("22-marked-for-deletion")
    before = scenario("22-marked-for-deletion")
    for one in (*before["groups"], *before["projects"]):
        one["path"] = one["path"].partition("-deletion_scheduled")[0]
        one["fields"] = {}
    catalog.take("gitlab", scenarios.gitlab(before))
    assert list(catalog.owners()) == ["live", "old"]
    report = catalog.take("gitlab", scenarios.gitlab(given))
    assert list(catalog.entities) == ["component:default/live", "group:default/acme"]
    assert report["leftOut"] == {
        "groups marked for deletion": 1,
        "projects marked for deletion": 1,
    }


def test_projects_in_a_group_that_is_marked_for_deletion_are_gone_with_it(
    catalog: Catalog,
) -> None:
    group = GitlabGroup(project("gone/below/shop", 1), project("live", 2))
    group.people(Account("member-a", 2), **{"gone": ["member-a"], "gone/below": ["member-a"]})
    group.fake.groups[1].marked_for_deletion_on = "2026-11-20"
    catalog.take("gitlab", group.fake)
    assert list(catalog.entities) == ["component:default/live", "group:default/acme"]


# The attributes by which directories say who can sign in, with both answers.
PEOPLE = {
    "active": "userAccountControl: 512",
    "disabled": "userAccountControl: 514",
    "trust": "userAccountControl: 2080",
    "krbtgt": "isCriticalSystemObject: TRUE",
    "expired": "accountExpires: 133000000000000000",
    "later": "accountExpires: 2650467743990000000",
    "never": "accountExpires: 9223372036854775807",
    "ad-lds": "msDS-UserAccountDisabled: TRUE",
    "locked": "nsAccountLock: TRUE",
    "unlocked": "nsAccountLock: false",
    "managed": "nsRoleDN: cn=nsManagedDisabledRole,dc=example,dc=com",
    "in-a-role": "nsRoleDN: cn=Staff,dc=example,dc=com",
    "principal-expired": "krbPrincipalExpiration: 20200101000000Z",
    "principal-later": "krbPrincipalExpiration: 20990101000000Z",
    "ping": "ds-pwp-account-disabled: true",
    "ping-enabled": "ds-pwp-account-disabled: false",
    "ping-expired": "ds-pwp-account-expiration-time: 20200101000000Z",
    "oracle": "orclIsEnabled: DISABLED",
    "oracle-enabled": "orclIsEnabled: ENABLED",
    "oracle-past": "orclActiveEndDate: 202001010000Z",
    "locked-for-good": "pwdAccountLockedTime: 000001010000Z",
    "locked-for-a-while": "pwdAccountLockedTime: 20261122110000Z",
    "ended": "pwdEndTime: 20200101000000Z",
    "edirectory-past": "loginExpirationTime: 20200101000000Z",
    "ibm": "ibm-pwdAccountLocked: TRUE",
    "aix": "isAccountEnabled: false",
    "samba": "sambaAcctFlags: [UD         ]",
    "samba-enabled": "sambaAcctFlags: [U          ]",
    "inactive": "inetUserStatus: inactive",
    "switched-off": "loginDisabled: TRUE",
    "past": "shadowExpire: 1",
    "unreadable": "userAccountControl: many",
}


def test_a_directory_brings_people_who_can_sign_in(catalog: Catalog, tmp_path: Path) -> None:
    text = (scenarios.DATA / "reports/26-range-of-members/people.ldif").read_text()
    for name, line in PEOPLE.items():
        text += (
            f"dn: CN={name},OU=People,DC=example,DC=com\nobjectClass: user\ncn: {name}\n"
            f"sAMAccountName: {name}\n{line}\n\n"
        )
    file = tmp_path / "people.ldif"
    file.write_text(text)
    report = catalog.run("ldif", str(file))
    users = {ref.partition("/")[2] for ref in catalog.entities if ref.startswith("user:")}
    enabled = {"active", "later", "never", "unreadable", "unlocked", "in-a-role", "samba-enabled"}
    enabled |= {"principal-later", "ping-enabled", "oracle-enabled", "locked-for-a-while"}
    assert users == {"member-a", *enabled}
    disabled = len(PEOPLE) - len(enabled) - 2
    assert report["leftOut"] == {"disabled accounts": disabled, "service accounts": 2}


def test_a_range_that_is_cut_off_takes_nobody_out_of_a_group(
    catalog: Catalog, tmp_path: Path
) -> None:
    text = (scenarios.DATA / "reports/26-range-of-members/people.ldif").read_text()
    member = "CN=member-a,OU=People,DC=example,DC=com"
    file = tmp_path / "people.ldif"
    file.write_text(text.replace(f"range=0-1499: {member}", f"range=0-*: {member}"))
    catalog.run("ldif", str(file))
    before = catalog.entities
    assert before["user:default/member-a"]["spec"]["memberOf"] == ["group:default/Big"]
    file.write_text(text.replace(f"range=0-1499: {member}", "range=0-1499: CN=x,DC=example"))
    report = catalog.run("ldif", str(file))
    assert catalog.entities == before
    assert [len(part["problems"]) for part in report["parts"]] == [1, 1]


def test_members_of_gitea_who_cannot_sign_in_are_left_out(catalog: Catalog) -> None:
    owner = GiteaOwner(own("shop", texts={"CODEOWNERS": "* @gone @acme/web\n"}))
    owner.fake.accounts = [gitea.Account("alice", 1), gitea.Account("gone", 2, may_sign_in=False)]
    owner.fake.teams = [gitea.Team("web", 1, ["alice", "gone"])]
    report = catalog.take("gitea", owner.fake)
    assert [ref for ref in catalog.entities if ref.startswith("user:")] == ["user:default/alice"]
    assert report["leftOut"] == {"disabled accounts": 1}
    assert catalog.owners() == {"shop": "group:default/web"}


def test_members_of_gitlab_who_cannot_sign_in_are_left_out(catalog: Catalog) -> None:
    group = GitlabGroup(project("shop", texts={"CODEOWNERS": "* @gone @acme/web\n"}))
    accounts = [
        Account("alice", 2),
        Account("gone", 3, state="deactivated"),
        Account("service_account_group_345_6018816a18e515214e0c34c2b33523fc", 4),
    ]
    group.people(*accounts, web=[one.username for one in accounts])
    report = catalog.take("gitlab", group.fake)
    assert [ref for ref in catalog.entities if ref.startswith("user:")] == ["user:default/alice"]
    assert report["leftOut"] == {"disabled accounts": 1, "service accounts": 1}
    assert catalog.owners() == {"shop": "group:default/web"}


NO_TARGETS = ["{targets: []}", "{}", "{targets: ['./none/*.yaml']}"]


def location(spec: str) -> str:
    return f"apiVersion: v1\nkind: Location\nmetadata: {{name: all}}\nspec: {spec}\n"


@pytest.mark.parametrize("spec", NO_TARGETS)
def test_a_location_without_targets_takes_nothing_away(catalog: Catalog, spec: str) -> None:
    texts = {CATALOG: location("{targets: [x.yaml, y.yaml]}"), "x.yaml": file("x")}
    one = Organization(repository("shop", 1, texts={**texts, "y.yaml": file("y")}))
    catalog.take("github", one.fake)
    [shop] = one.fake.repositories
    shop.commits, shop.texts[CATALOG] = 2, location(spec).encode()
    for _ in range(2):
        report = catalog.take("github", one.fake)
        assert catalog.owners() == {"x": "team-a", "y": "team-a"}
        [problem] = report["parts"][0]["problems"]
        assert problem["message"].startswith("has locations that lead to no entity")


def test_a_file_that_is_commented_out_takes_nothing_away(catalog: Catalog) -> None:
    fake = scenarios.github(scenario("17-commented-out-catalog-file", "before.json"))
    catalog.take("github", fake)
    before = catalog.entities["component:default/pay"]
    scenarios.become(fake, scenario("17-commented-out-catalog-file", "after.json"))
    for one in fake.repositories:
        one.commits += 1
    report = catalog.take("github", fake)
    assert catalog.entities["component:default/pay"] == before
    [problem] = report["parts"][0]["problems"]
    assert (problem["origin"], problem["file"]) == ("github.com/acme/pay", CATALOG)
    assert problem["message"].startswith("holds no entity")


def test_a_file_without_an_entity_is_reported_and_its_repository_is_a_component(
    catalog: Catalog,
) -> None:
    files = sorted((scenarios.DATA / "vendors").glob("02-*.yaml"))
    texts = [one.read_text() for one in files]
    assert len(texts) == 2
    texts += ["---\n", "---\n...\n", "null\n", "\ufeff", " \n\n", "...\n", " \t\n", "{}\n", "[]\n"]
    texts += ["a: [\n", *map(location, NO_TARGETS)]
    one = Organization(
        *(
            repository(f"r{n}", n, texts={CATALOG: text.replace("all", f"l{n}")})
            for n, text in enumerate(texts, 1)
        )
    )
    report = catalog.take("github", one.fake)
    assert catalog.owners() == {f"r{n}": None for n in range(1, len(texts) + 1)}
    assert report["parts"][0]["problemCount"] == len(texts)


def test_a_target_without_an_entity_takes_nothing_away(catalog: Catalog) -> None:
    root = location("{target: x.yaml}")
    one = Organization(repository("shop", 1, texts={CATALOG: root, "x.yaml": file("x")}))
    catalog.take("github", one.fake)
    [shop] = one.fake.repositories
    shop.commits, shop.texts["x.yaml"] = 2, b"# nothing yet"
    report = catalog.take("github", one.fake)
    assert catalog.owners() == {"x": "team-a"}
    [problem] = report["parts"][0]["problems"]
    assert (problem["file"], problem["message"][:15]) == ("x.yaml", "holds no entity")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("metadata:", "metadata:\n  annotations: {a/b: 'run ${{ github.sha }}'}", ""),
        ("metadata:", "metadata:\n  a/b: {{ $labels.x }}", "is not valid YAML"),
        ("name: svc", "name: {{ values.name }}", "is a template"),
        ("owner: team-a", "owner: ${{ values.owner }}", "is a template"),
    ],
)
def test_a_placeholder_in_a_file_takes_nothing_away(
    catalog: Catalog, old: str, new: str, problem: str
) -> None:
    root = location("{targets: [x.yaml, y.yaml]}")
    texts = {CATALOG: root, "x.yaml": file("svc"), "y.yaml": file("other")}
    one = Organization(repository("shop", 1, texts=texts))
    catalog.take("github", one.fake)
    [shop] = one.fake.repositories
    shop.texts["x.yaml"] = shop.texts["x.yaml"].replace(old.encode(), new.encode())
    for commits in (2, 3):
        shop.commits = commits
        report = catalog.take("github", one.fake)
        assert catalog.owners() == {"svc": "team-a", "other": "team-a"}
        told = [each["message"] for each in report["parts"][0]["problems"]]
        assert (len(told), "".join(told)[: len(problem)]) == (bool(problem), problem)
    shop.commits = 4
    shop.files.remove("x.yaml")
    del shop.texts["x.yaml"]
    shop.texts[CATALOG] = shop.texts[CATALOG].replace(b"x.yaml, ", b"")
    catalog.take("github", one.fake)
    assert catalog.owners() == {"other": "team-a"}


def test_another_name_in_a_file_that_is_commented_out_stays(catalog: Catalog) -> None:
    texts = {CATALOG: file("payments-api") + "---\n" + file("payments-worker")}
    one = Organization(repository("pay", 1, texts=texts))
    catalog.take("github", one.fake)
    [pay] = one.fake.repositories
    pay.commits, pay.texts[CATALOG] = 2, b"# " + pay.texts[CATALOG].replace(b"\n", b"\n# ")
    catalog.take("github", one.fake)
    assert list(catalog.owners()) == ["payments-api", "payments-worker"]


@pytest.mark.slow
def test_an_import_that_could_read_no_file_is_not_complete(catalog: Catalog) -> None:
    given = json.loads((scenarios.DATA / "vendors/09-no-file-read-is-complete.json").read_text())
    assert "every POST to GraphQL answers 500" in given["GitLab"]
    group = GitlabGroup(*(project(f"p{n}", n) for n in range(1, 13)))
    catalog.take("gitlab", group.fake)
    group.fake.fail("graphql", faults.saying({}, 500), times=99)
    report = catalog.take("gitlab", group.fake, code=1)
    states = {part["part"]: part["state"] for part in report["parts"]}
    assert states == {
        "gitlab/acme.projects": "partial",
        "gitlab/acme.groups": "complete",
        "gitlab/acme.members": "complete",
    }
    assert len(catalog.owners()) == 12


def test_an_import_that_may_read_no_file_is_not_complete(catalog: Catalog) -> None:
    group = GitlabGroup(project("a", 1), project("b", 2))
    group.token.reads_repository = False
    report = catalog.take("gitlab", group.fake, code=1)
    assert report["parts"][0]["state"] == "partial"
