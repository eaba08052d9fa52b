"""Every integration keeps the rules that `integration.py` and `configuration.py` state."""

from collections.abc import Mapping
from functools import cache
from typing import Any, get_type_hints

import pytest

from factbook.errors import ConfigurationError
from factbook.facts import datasource
from factbook.integrations import VENDORS, find_vendor, vendors
from factbook.integrations.integration import SOURCE_LOCATION, Collected, Integration
from factbook.outbound.outcomes import Missing, Outcome
from factbook.settings.option_tables import is_web_address
from tests.docs import first_runs
from tests.fakes.fake import Fake
from tests.fakes.faults import saying, unavailable
from tests.integrations.asking import Asking

# It asks no fake, but a program; `tests/integrations/git` collects from one.
GIT = {"host": "git.example.com", "username": "someone", "token": "glpat_a_token_of_tests"}
JUNK: tuple[Any, ...] = (
    {},
    {"metadata": None},
    {"metadata": {"annotations": None}},
    {"metadata": {"annotations": "text"}},
    {"metadata": {"annotations": {"other": "value"}}},
)
VALUES: tuple[Any, ...] = (
    *(None, 7, "", " ", [], {}),
    *("../..", "a b", "https://evil.example.net/x", "é"),
)


def begun(id_: str) -> tuple[Fake, Asking, str]:
    """A fake of a vendor, the integration that asks it, and a target there."""
    begin, annotation, values = first_runs.VENDORS[id_]
    fake, asking = begin()
    found = asking.integration.target(entity(**{annotation: values[0]}))
    assert isinstance(found, str)
    return fake, asking, found


@cache
def table(id_: str) -> Mapping[str, Any]:
    """A table of the settings that configures an instance."""
    return GIT if id_ == "git" else begun(id_)[1].table


def configured(id_: str, name: str = "default") -> Integration:
    """An instance of a vendor."""
    return find_vendor(id_).configured(name, table(id_))


def entity(**annotations: Any) -> dict[str, Any]:
    """A component with these annotations."""
    return {"kind": "Component", "metadata": {"name": "app", "annotations": annotations}}


def keys(integration: Integration) -> list[str]:
    """The annotations of which an entity of the source has one."""
    return [
        name.removeprefix("metadata.annotations.")
        for row in integration.source.entity_filter or ()
        for name in row
    ]


def covers(found: Collected, fact: str) -> bool:
    """True if a fact has a value or is covered by what is missing, and not both."""
    parts = fact.split(".")
    places = {"", *(".".join(parts[:length]) for length in range(1, len(parts) + 1))}
    return (fact in found.values) != bool(places & found.missing.keys())


def test_it_is_a_row_of_the_vendors_with_the_settings_that_it_needs(
    subtests: pytest.Subtests,
) -> None:
    for id_ in VENDORS:
        with subtests.test(id_):
            [row] = [one for one in vendors.VENDORS if one.id == id_]
            made = find_vendor(id_)
            assert (made.id, made.title) == (id_, row.title)
            assert set(row.options) <= set(made.options.__struct_fields__)


def test_every_option_is_described_and_no_secret_is_shown(subtests: pytest.Subtests) -> None:
    for id_ in VENDORS:
        with subtests.test(id_):
            options = find_vendor(id_).options
            hints = get_type_hints(options, include_extras=True)
            described = {
                name: hints[name].__metadata__[0].description for name in options.__struct_fields__
            }
            assert all(text.endswith(".") for text in described.values())
            secrets = {name for name, text in described.items() if text.startswith("Secret.")}
            assert secrets == {
                name for name in described if name.endswith(("token", "password", "_key"))
            } - {"tag_key"}
            values = [str(value) for name, value in table(id_).items() if name in secrets]
            integration = configured(id_)
            shown = f"{options(**table(id_))!r} {integration!r} {integration.source.render()}"
            assert values or id_ == "prometheus"
            assert not [value for value in values if value in shown]


def test_a_mistake_in_its_table_names_the_table_and_no_value(subtests: pytest.Subtests) -> None:
    for id_ in VENDORS:
        with subtests.test(id_):
            for mistake in (
                {"unknown_option": "a_value"},
                {"base_url": 7, "api_url": 7, "host": 7},
            ):
                with pytest.raises(ConfigurationError) as raised:
                    find_vendor(id_).configured("work", {**table(id_), **mistake})
                assert raised.value.message.startswith(f"integrations.{id_}.work: ")
                assert "a_value" not in raised.value.message


def test_its_source_is_named_by_its_table_and_holds_the_facts_of_what_it_fills(
    subtests: pytest.Subtests,
) -> None:
    for id_ in VENDORS:
        with subtests.test(id_):
            made, one, other = find_vendor(id_), configured(id_), configured(id_, "work")
            assert (one.source.id, one.source.title) == (id_, made.title)
            assert (other.source.id, other.source.title) == (f"{id_}-work", f"{made.title} (work)")
            assert one.source.handler is not None
            assert one.source.handler.builtin_id == id_
            assert (one.fills, one.source.schema) == (made.fills, made.facts)
            assert keys(one)
            assert datasource.parse_source(one.source.render()).render() == one.source.render()


def test_each_instance_has_a_queue_of_its_own_and_asks_addresses_of_its_settings(
    subtests: pytest.Subtests,
) -> None:
    for id_ in VENDORS:
        with subtests.test(id_):
            one, other = configured(id_), configured(id_, "work")
            assert one.credential != other.credential
            assert all(map(is_web_address, (one.base_url, *one.further)))
            assert one.at_once >= 1
            assert one.calls_at_once >= 1
            assert all(most > 0 for most in one.pace.values())


def test_an_entity_names_a_target_or_gets_a_reason_without_a_word_of_its_own(
    subtests: pytest.Subtests,
) -> None:
    for id_ in VENDORS:
        with subtests.test(id_):
            integration = configured(id_)
            hostile = (entity(**{key: value}) for key in keys(integration) for value in VALUES)
            for one in (*JUNK, *hostile):
                found = integration.target(one)
                if isinstance(found, Missing):
                    assert found.outcome in {Outcome.NO_ANNOTATION, Outcome.BAD_ANNOTATION}
                    assert "evil" not in found.detail
            for one in JUNK:
                assert isinstance(integration.target(one), Missing)


def test_a_batch_holds_each_target_once(subtests: pytest.Subtests) -> None:
    for id_ in VENDORS:
        with subtests.test(id_):
            batches = configured(id_).batches
            targets = [f"acme/app-{number}" for number in range(250)]
            assert [one for batch in batches([*targets, *targets]) for one in batch] == targets
            assert all(batches(targets))
            assert batches([]) == []


def test_files_are_read_where_targets_are_repositories(subtests: pytest.Subtests) -> None:
    for id_ in VENDORS:
        with subtests.test(id_):
            integration = configured(id_)
            assert (integration.read is not None) == ("repository" in integration.fills)
            assert not integration.read or SOURCE_LOCATION in keys(integration)


def test_a_probe_is_a_path_at_a_host_that_it_asks_and_names_facts_that_it_has(
    subtests: pytest.Subtests,
) -> None:
    for id_ in VENDORS:
        with subtests.test(id_):
            integration = configured(id_)
            names = [fact.name for fact in integration.source.schema or ()]
            for probe in integration.probes:
                url = probe.target.removeprefix(integration.base_url)
                assert url.startswith("/"), probe
                assert not probe.further or probe.further in integration.further
                for place in probe.facts:
                    assert not place or [
                        name for name in names if f"{name}.".startswith(f"{place}.")
                    ]
            assert integration.probes or id_ == "git"


async def test_a_run_brings_a_value_or_a_reason_of_every_fact_for_every_target(
    subtests: pytest.Subtests,
) -> None:
    for id_ in sorted(first_runs.VENDORS):
        with subtests.test(id_):
            fake, asking, target = begun(id_)
            assert fake.requests.total() == 0
            for fault in (None, unavailable, saying(["odd"])):
                if fault:
                    for kind in list(fake.requests):
                        fake.fail(kind, fault, times=1_000)
                found = await asking.collect(target)
                assert found.keys() == {target}
                assert all(covers(found[target], fact.name) for fact in find_vendor(id_).facts)
                assert asking.integration.source.check(found[target].values).reasons == {}
