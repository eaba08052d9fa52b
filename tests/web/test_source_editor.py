"""The editor of custom data sources: beginning and saving one."""

import msgspec
import pytest

from factbook.datasources.custom import definition, yaml_text
from factbook.web import data_sources
from tests.api.defining import define, of_entities, shown
from tests.service import Service
from tests.web.editing import EDIT, TEXT, seen, send
from tests.web.visiting import signed_in, words

ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


# Beginning


async def test_each_kind_begins_with_a_definition_that_can_be_saved(
    service: Service, subtests: pytest.Subtests
) -> None:
    visitor = await signed_in(service)
    assert data_sources.SOURCE_TYPES
    for type_ in data_sources.SOURCE_TYPES:
        with subtests.test(type_=type_):
            page = await visitor.text("/data-sources/new")
            assert data_sources.SOURCE_TYPES[type_][1].replace("'", "&#39;") in page
            id_ = f"last-{type_}"
            html = await visitor.text("/data-sources/new", type=type_, id=id_)
            text = definition.write_starter(id_, type_)  # type: ignore[arg-type]
            assert words(text.replace("<", "&lt;")) in words(html)
            done = words(await visitor.done("/data-sources/new", text=text, do="save"))
            assert "The draft is saved." in done
            assert (await shown(service, id_))["handlerDefinition"]["type"] == type_


async def test_an_id_that_cannot_be_is_refused_before_anything_is_written(
    service: Service, subtests: pytest.Subtests
) -> None:
    await define(service, of_entities())
    visitor = await signed_in(service)
    for id_, type_, message in [
        ("a b", "http", "is no id of a source"),
        ("<script>", "http", "is no id of a source"),
        ("techdocs", "http", "is a built-in data source"),
        ("github", "http", "is the id of a built-in data source"),
        ("owners", "http", "There is already a data source owners"),
        ("new", "push", "choose another id"),
        ("more", "other", "Choose where the facts come from."),
    ]:
        with subtests.test(id_=id_, type_=type_):
            html = await visitor.text("/data-sources/new", 400, type=type_, id=id_)
            assert message in words(html)
            assert "<script>" not in html


# Saving


async def test_a_new_source_is_saved_changed_and_published(service: Service) -> None:
    visitor = await signed_in(service)
    html = await visitor.done("/data-sources/new", text=TEXT, do="save")
    assert "This is a draft" in html
    assert "a comment" not in html
    changed = TEXT.replace("title: Owners", "title: Who owns it")
    done = words(await visitor.done(EDIT, text=changed, do="publish", seen=seen(html)))
    assert "Version 1.0.0 is published." in done
    assert "Who owns it" in done
    assert (await shown(service, "owners"))["version"] == "1.0.0"
    rows = await service.state.database.all(
        "SELECT action, actor FROM audit WHERE action LIKE 'data-source%' ORDER BY at, id"
    )
    actions = ["data-source.create", "data-source.replace", "data-source.publish"]
    assert rows == [(action, "user:default/ada") for action in actions]


async def test_json_is_taken_as_well(service: Service) -> None:
    visitor = await signed_in(service)
    text = msgspec.json.format(msgspec.json.encode(of_entities()), indent=2).decode()
    assert "The draft is saved." in await visitor.done("/data-sources/new", text=text, do="save")


async def test_what_says_the_same_as_what_is_published_is_no_draft(service: Service) -> None:
    await define(service, of_entities())
    visitor = await signed_in(service)
    html = await visitor.text(EDIT)
    done = await visitor.done(
        EDIT, text=yaml_text.write_yaml(of_entities()), do="save", seen=seen(html)
    )
    assert "The draft is the same as the published version." in done


async def test_all_problems_are_shown_at_once_and_the_text_is_kept(service: Service) -> None:
    visitor = await signed_in(service)
    text = """\
id: owners
title: Owners </textarea><script>alert(1)</script>
handlerDefinition: {type: entity, config: {id: other, more: 1}}
schema:
  owner: {type: string, extract: {jmespath: "spec.["}, extra: 1}
  second: {type: string}
"""
    answer = await send(visitor, text, path="/data-sources/new")
    assert answer.status_code == 400
    told = words(answer.text)
    for path in (
        "handlerDefinition.config.id",
        "handlerDefinition.config.more",
        "schema.owner.extra",
        "schema.owner.extract",
        "schema.second.extract",
    ):
        assert path in told
    assert "<script>alert" not in answer.text
    assert words(text.replace("<", "&lt;")) in told
    assert await service.state.database.all("SELECT id FROM data_sources") == []


async def test_a_text_that_is_no_definition_is_refused_with_where_it_is_wrong(
    service: Service, subtests: pytest.Subtests
) -> None:
    visitor = await signed_in(service)
    for text, message in [
        ("id: a: b", "line 1 mapping values are not allowed"),
        ("id: a\nid: b", 'line 2 the key "id" is there twice'),
        ("schema:\n  a: {}\n  a: {}", 'line 3 the key "a" is there twice'),
        ('{"id": "a",', "did not find expected"),
        ("- a", "has to be a mapping"),
        ("", "has to be a mapping"),
        ("id: !!python/object:os.system x", "could not determine a constructor"),
        ("a: &a [x, x]\nb: &b [*a, *a, *a]\nc: [*b, *b, *b]", "has an alias, which is not read"),
        ("[" * 5_000, "is nested more than 100 deep"),
        ("{" * 5_000, "is nested more than 100 deep"),
        ("a: " + "x" * 300_000, "has more than 256 KiB"),
        ("version: 1.0.0\nid: a", "title is required"),
        ("---\nid: a\n---\nid: b", "line"),
    ]:
        with subtests.test(text=text):
            answer = await send(visitor, text, path="/data-sources/new")
            assert answer.status_code == 400
            assert message in words(answer.text)


@ON_SQLITE
async def test_a_form_that_is_too_large_is_refused(service: Service) -> None:
    visitor = await signed_in(service)
    answer = await send(visitor, "x" * 600_000, path="/data-sources/new")
    assert answer.status_code == 413


async def test_another_id_than_that_of_the_source_is_refused(service: Service) -> None:
    await define(service, of_entities())
    visitor = await signed_in(service)
    html = await visitor.text(EDIT)
    answer = await send(visitor, TEXT.replace("owners", "others"), seen=seen(html))
    assert answer.status_code == 400
    assert "id has to be owners, as in the address" in words(answer.text)


async def test_an_id_that_is_taken_is_refused_and_the_text_kept(service: Service) -> None:
    await define(service, of_entities())
    visitor = await signed_in(service)
    answer = await send(visitor, TEXT, path="/data-sources/new")
    assert answer.status_code == 409
    assert "There is already a data source owners; choose another id." in words(answer.text)
    assert "a comment" in answer.text
    for id_, told in (("techdocs", "techdocs is a built-in data source"), ("new", "another id")):
        taken = await send(visitor, TEXT.replace("owners", id_), path="/data-sources/new")
        assert taken.status_code == 409
        assert told in words(taken.text)


async def test_builtin_sources_have_no_editor(service: Service) -> None:
    visitor = await signed_in(service)
    assert "built-in" in await visitor.text("/data-sources/techdocs/edit", 409)
