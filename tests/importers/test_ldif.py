"""What the importer makes of the records of an LDIF file, and of a file that is not whole."""

import uuid
from pathlib import Path

import pytest

from factbook.errors import ConfigurationError
from factbook.importers import ldif
from factbook.importers.ldif import (
    WANTED_ATTRIBUTES,
    DistinguishedNameError,
    LdifImportOptions,
    find_relative_name,
    normalize_name,
)
from tests.importers.directories import BASE, LdifFile, entry, group, person, unique


async def test_a_person_is_a_user_with_what_names_it(tmp_path: Path) -> None:
    alice = person(
        "alice",
        7,
        displayName="Alice Müller",
        mail=["alice@example.org", "a@example.org"],
        description="Keeps the books.",
        userPassword="{SSHA}secret",
    )
    file = LdifFile(tmp_path, alice, group("core", "alice"), group("core-admins"))
    dn = f"uid=alice,ou=people,{BASE}"
    assert await file.entities() == {
        "alice": {
            "apiVersion": "backstage.io/v1alpha1",
            "kind": "User",
            "metadata": {
                "name": "alice",
                "description": "Keeps the books.",
                "annotations": {
                    "backstage.io/ldap-dn": dn,
                    "backstage.io/ldap-rdn": "uid=alice",
                    "backstage.io/ldap-uuid": unique(7),
                },
            },
            "spec": {
                "profile": {"displayName": "Alice Müller", "email": "alice@example.org"},
                "memberOf": ["group:default/core"],
            },
        }
    }
    [item] = (await file.part()).items
    assert (item.external_id, item.line) == (f"ldap/{unique(7)}", 3)
    assert item.problem("no").place == f"ldap {dn} people.ldif:3"


async def test_what_a_directory_does_not_say_is_absent(tmp_path: Path) -> None:
    bare = entry(f"cn=Bob Bee,{BASE}", objectClass="person", cn="Bob Bee")
    found = (await LdifFile(tmp_path, bare).entities())["Bob Bee"]
    assert found["spec"] == {"profile": {"displayName": "Bob Bee"}, "memberOf": []}
    assert "backstage.io/ldap-uuid" not in found["metadata"]["annotations"]


async def test_groups_know_the_groups_in_them_and_above_them(tmp_path: Path) -> None:
    inner = f"cn=inner,ou=groups,{BASE}"
    outer = group("outer", "alice", displayName="Outer", member=[inner])
    file = LdifFile(tmp_path, group("inner", "alice"), outer, namespace="staff")
    found = await file.entities("groups")
    assert found["outer"]["spec"] == {
        "type": "team",
        "profile": {"displayName": "Outer"},
        "children": ["group:staff/inner"],
    }
    assert found["inner"]["spec"]["parent"] == "group:staff/outer"
    assert found["inner"]["metadata"]["namespace"] == "staff"


async def test_a_group_below_two_has_no_single_parent(tmp_path: Path) -> None:
    member = [f"cn=inner,ou=groups,{BASE}"]
    file = LdifFile(tmp_path, group("inner"), group("a", member=member), group("b", member=member))
    assert "parent" not in (await file.entities("groups"))["inner"]["spec"]


async def test_groups_of_posix_and_of_active_directory_have_their_members(tmp_path: Path) -> None:
    alice = person("alice", gidNumber="100", memberOf=f"CN=Staff , OU=groups,{BASE.upper()}")
    posix = entry(f"cn=dev,{BASE}", objectClass="posixGroup", cn="dev", memberUid="alice")
    primary = entry(f"cn=users,{BASE}", objectClass="posixGroup", cn="users", gidNumber="100")
    unique_names = group(
        "u", objectClass="groupOfUniqueNames", uniqueMember=f"uid=alice,ou=people,{BASE}"
    )
    active = group("staff", objectClass=["top", "group"])
    file = LdifFile(tmp_path, alice, posix, primary, unique_names, active)
    assert (await file.entities())["alice"]["spec"]["memberOf"] == [
        f"group:default/{name}" for name in ("dev", "staff", "u", "users")
    ]


async def test_the_id_of_active_directory_is_written_as_others_write_it(tmp_path: Path) -> None:
    id_ = uuid.UUID("01234567-89ab-cdef-0123-456789abcdef")
    alice = entry(
        f"cn=alice,{BASE}", objectClass=["person", "user"], sAMAccountName="alice",
        objectGUID=id_.bytes_le,
    )  # fmt: skip
    host = entry(f"cn=host,{BASE}", objectClass=["user", "computer"], cn="host")
    [item] = (await LdifFile(tmp_path, alice, host).part()).items
    assert item.external_id == f"ldap/{id_}"


async def test_folded_encoded_and_commented_lines_are_read(tmp_path: Path) -> None:
    text = (
        f"# a comment\n#  folded\ndn:: {'dWlkPWFsaWNlLGRjPW9yZw=='}\r\nobjectClass: per\r\n son\r\n"
        "# uid: mallory\n with more\nuid:alice\ncn;lang-de: Alice\ncn;binary:: QWxpY2U=\n"
        "jpegPhoto:< file:///etc/passwd\nmail:   a@example.org\n\n"
    )
    found = (await LdifFile(tmp_path, text).entities())["alice"]
    assert found["metadata"]["annotations"]["backstage.io/ldap-dn"] == "uid=alice,dc=org"
    assert found["spec"]["profile"] == {"displayName": "Alice", "email": "a@example.org"}


async def test_a_byte_order_mark_before_records_is_skipped(tmp_path: Path) -> None:
    file = LdifFile(tmp_path, person("a"))
    [text] = [file.path.read_text()]
    joined = f"\ufeff{text}\ufeff{text.replace('uid=a,', 'uid=b,').replace('uid: a', 'uid: b')}"
    for content, people in (
        (f"\ufeff{text}".encode(), 1),
        (joined.encode(), 2),
        (joined.encode("utf-16"), 2),
    ):
        file.path.write_bytes(content)
        part = await file.part()
        assert (len(part.items), part.complete, part.problems) == (people, True, ())


async def test_members_that_a_directory_sends_in_part_are_members(tmp_path: Path) -> None:
    def big(*lines: str) -> str:
        text = "\n".join(lines)
        return f"dn: cn=big,{BASE}\nobjectClass: group\ncn: big\n{text}\n\n"

    def of(uid: str) -> str:
        return f"uid={uid},ou=people,{BASE}"

    first = f"member;range=0-1499: {of('a')}"
    more = f"cn=all,{BASE}"
    everyone = entry(more, objectClass="group", cn="all", member=f"cn=big,{BASE}")
    file = LdifFile(tmp_path, person("a"), person("b"), big(first), everyone)
    assert (await file.entities())["a"]["spec"]["memberOf"] == ["group:default/big"]
    groups = await file.part("groups")
    assert [str(one) for one in groups.problems] == [
        f"ldap cn=big,{BASE} people.ldif:18: has more values of member than the export, which has "
        "range=0-1499; export the other ranges too, or memberOf of the people"
    ]
    users = await file.part()
    assert (groups.complete, groups.unread, users.problems) == (True, frozenset(), groups.problems)
    assert all(item.tentative for item in (*groups.items, *users.items))
    assert (await file.entities("groups"))["all"]["spec"]["children"] == ["group:default/big"]
    file.write(person("a"), person("b"), big(first, f"member;range=1500-*: {of('b')}"), everyone)
    assert (await file.part("groups")).problems == ()
    assert (await file.entities())["b"]["spec"]["memberOf"] == ["group:default/big"]
    people = [person(uid) for uid in "abc"]
    last = f"member;range=1501-*: {of('c')}"
    for parts in ([big(first), big(last)], [f"dn: cn=big,{BASE}\n{last}\n\n", big(first)]):
        file.write(*people, *parts)
        [problem] = (await file.part("groups")).problems
        assert "range=1501-*" in problem.message
        file.write(*people, *parts, big(f"member;range=1500-1500: {of('b')}"))
        assert (await file.part("groups")).problems == ()
        assert not any(item.tentative for item in (await file.part()).items)
        for user in (await file.entities()).values():
            assert user["spec"]["memberOf"] == ["group:default/big"]


async def test_an_attribute_with_an_option_counts_where_there_is_no_other(tmp_path: Path) -> None:
    text = f"dn: uid=a,{BASE}\nobjectClass: person\nuid: a\ncn;lang-fr: Alix\n\n"
    found = (await LdifFile(tmp_path, text).entities())["a"]
    assert found["spec"]["profile"] == {"displayName": "Alix"}


@pytest.mark.parametrize(
    ("broken", "line", "word"),
    [
        ("changetype: modify\nreplace: mail\nmail: x\n-\n", 8, "is a change"),
        ("control: 1.2.3 true\n", 8, "is a change"),
        ("uid:< file:///etc/passwd\n", 8, "which is not read"),
        ("uid:: not base64!\n", 8, "is not base64"),
        ("no attribute\n", 8, "is not `attribute: value`"),
    ],
)
async def test_a_broken_record_keeps_what_it_brought_before(
    tmp_path: Path, broken: str, line: int, word: str
) -> None:
    bad = f"dn: uid=bob,{BASE}\nobjectClass: person\n{broken}\n"
    part = await LdifFile(
        tmp_path, entry("dc=org", objectClass="domain"), bad, person("alice")
    ).part()
    [problem] = part.problems
    assert (problem.file, problem.line) == ("people.ldif", line)
    assert word in problem.message
    assert (part.complete, sorted(part.unread)) == (True, [f"ldap uid=bob,{BASE}"])
    assert [item.tentative for item in part.items] == [False]


async def test_where_a_group_is_broken_nobodys_groups_change(tmp_path: Path) -> None:
    bad = f"dn: cn=core,{BASE}\nobjectClass: groupOfNames\nmember\n\n"
    part = await LdifFile(tmp_path, bad, person("alice")).part()
    assert [item.tentative for item in part.items] == [True]


@pytest.mark.parametrize(
    "text",
    [
        "dn: no name\nobjectClass: person\n\n",
        "objectClass: person\ndn: uid=a,dc=org\n\n",
        "version: 2\ndn: uid=a,dc=org\n\n",
        "search: 2\nresult: 4 Size limit exceeded\n\n",
        "garbage\n\n",
    ],
)
async def test_where_any_record_may_be_missing_the_parts_are_incomplete(
    tmp_path: Path, text: str
) -> None:
    part = await LdifFile(tmp_path, person("alice"), text).part()
    assert (part.complete, len(part.items), len(part.problems)) == (False, 1, 1)
    assert [item.tentative for item in part.items] == [True]


def test_a_file_that_was_cut_off_is_not_complete(subtests: pytest.Subtests) -> None:
    whole = person("alice", 1) + person("bob", 2)
    assert ldif.parse_ldif(whole.encode(), WANTED_ATTRIBUTES).complete
    for cut in range(1, 40):
        with subtests.test(cut=cut):
            assert not ldif.parse_ldif(whole[:-cut].encode(), WANTED_ATTRIBUTES).complete


@pytest.mark.parametrize(
    ("end", "complete"),
    [
        ("search: 2\nresult: 0 Success\n\n# numEntries: 2\n", True),
        ("search: 2\nresult: 0 Success\n\n# numEntries: 8\n", False),
        ("", False),
    ],
)  # fmt: skip
def test_a_search_says_how_many_entries_it_found(end: str, complete: bool) -> None:
    whole = "# extended LDIF\n#\n# LDAPv3\n\n" + person("alice") + person("bob") + end
    assert ldif.parse_ldif(whole.encode(), WANTED_ATTRIBUTES).complete is complete


async def test_a_file_that_is_not_there_removes_nothing(tmp_path: Path) -> None:
    file = LdifFile(tmp_path, person("alice"))
    file.path.unlink()
    assert [(part.complete, part.items) for part in (await file.read()).parts] == [(False, ())] * 2
    assert "cannot be read" in (await file.part()).problems[0].message


async def test_a_file_that_is_too_large_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ldif, "LARGEST_LDIF_FILE", 100)
    part = await LdifFile(tmp_path, person("alice")).part()
    assert (part.complete, part.items) == (False, ())


async def test_a_record_with_too_many_lines_is_a_problem_and_leaves_the_others_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ldif, "MOST_LINES", 20)
    long = group("all", *(f"u{number}" for number in range(40)))
    file = LdifFile(tmp_path, person("alice"), long, group("core", "alice"))
    part = await file.part(ldif.GROUPS_PART)
    assert [item.entity["metadata"]["name"] for item in part.items] == ["core"]
    [problem] = part.problems
    assert (problem.line, problem.message) == (9, "has more than 20 lines")


async def test_people_or_groups_alone_are_read_as_chosen(tmp_path: Path) -> None:
    given = person("alice"), group("core")
    only = [part.key for part in (await LdifFile(tmp_path, *given, groups=False).read()).parts]
    other = [part.key for part in (await LdifFile(tmp_path, *given, people=False).read()).parts]
    assert (only, other) == ([ldif.PEOPLE_PART], [ldif.GROUPS_PART])


async def test_an_entry_that_is_written_as_an_addition_is_read(tmp_path: Path) -> None:
    given = person("alice").replace("\n", "\r\nchangetype: add\r\n", 1)
    file = LdifFile(tmp_path, given, person("bob").replace("\n", "\nchangetype: delete\n", 1))
    part = await file.part()
    assert [item.entity["metadata"]["name"] for item in part.items] == ["alice"]
    [problem] = part.problems
    assert "is a change" in problem.message


def test_passwords_are_not_kept(tmp_path: Path) -> None:
    given = person("alice", userPassword="{SSHA}secret")
    assert "secret" not in repr(ldif.parse_ldif(given.encode(), WANTED_ATTRIBUTES))


def test_names_are_the_same_however_they_are_written(subtests: pytest.Subtests) -> None:
    cases = [
        ("UID=Alice, DC=example", "uid=alice,dc=example"),
        (r"cn=Doe\, Jane,dc=x", r"CN=doe\2C jane,DC=X"),
        ("cn=a+sn=b,dc=x", "sn=B + cn=A,dc=x"),
        (r"cn=\C3\A9t\C3\A9", "cn=ÉTÉ"),
        ("cn=a;dc=x", "cn=a,dc=x"),
        ("cn=a=b", r"cn=a\=b"),
    ]
    for one, other in cases:
        with subtests.test(one=one, other=other):
            assert normalize_name(one) == normalize_name(other)


def test_what_is_no_name_is_refused(subtests: pytest.Subtests) -> None:
    for text in ("", "alice", "=a", "cn=", "cn=a,", "cn=a+", "cn=a\\", r"cn=\FF"):
        with subtests.test(text=text), pytest.raises(DistinguishedNameError):
            normalize_name(text)


def test_the_first_part_of_a_name_ends_at_its_own_comma() -> None:
    assert find_relative_name(r"cn=Doe\, Jane,dc=x") == r"cn=Doe\, Jane"


def test_a_namespace_that_is_none_is_a_mistake() -> None:
    with pytest.raises(ConfigurationError):
        LdifImportOptions(path="x", namespace="Not one")


def of_unit(cn: str, unit: str, number: int, **values: str | bytes | list[str]) -> str:
    """A group in a unit."""
    given = {"objectClass": "groupOfNames", "cn": cn, "entryUUID": unique(number), **values}
    return entry(f"cn={cn},ou={unit},{BASE}", **given)


async def test_groups_of_one_name_are_two_and_keep_their_names(tmp_path: Path) -> None:
    a, b = (f"uid={uid},ou=people,{BASE}" for uid in "ab")
    west = of_unit("ops", "west", 1, member=a)
    east = of_unit("ops", "east", 2, member=b)
    file = LdifFile(tmp_path, person("a"), person("b"), west, east)
    for groups in ([west, east], [east, west], [east]):
        file.write(person("a"), person("b"), *groups)
        people = await file.entities()
        assert people["b"]["spec"]["memberOf"] == ["group:default/ops-00000002"]
        if west in groups:
            assert people["a"]["spec"]["memberOf"] == ["group:default/ops"]
            assert {*await file.entities("groups")} == {"ops", "ops-00000002"}


async def test_a_number_or_uid_of_two_entries_makes_nobody_a_member(tmp_path: Path) -> None:
    first = entry(f"uid=a,ou=east,{BASE}", objectClass="posixAccount", uid="a", gidNumber="7")
    second = entry(f"uid=a,ou=west,{BASE}", objectClass="posixAccount", uid="a")
    staff = of_unit("staff", "groups", 1, memberUid="a", gidNumber="7")
    other = of_unit("other", "groups", 2, gidNumber="7")
    file = LdifFile(tmp_path, first, second, staff, other)
    people = await file.entities()
    assert [one["spec"]["memberOf"] for one in people.values()] == [[], []]
    groups = (await file.read()).parts[1]
    assert [problem.message for problem in groups.problems] == [
        f"gidNumber 7 is both cn=staff,ou=groups,{BASE} and cn=other,ou=groups,{BASE}: "
        "it makes nobody a member",
        f"memberUid a is both uid=a,ou=east,{BASE} and uid=a,ou=west,{BASE}: neither is a member",
    ]
