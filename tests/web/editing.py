"""The form of the editor of data sources, as a browser sends it."""

from typing import Any

from tests.web.visiting import Browser

TEXT = """\
id: owners
title: Owners
cadence: 0 * * * *  # a comment
handlerDefinition: {type: entity, config: {id: owners}}
schema:
  owner: {type: string, extract: {jmespath: spec.owner}}
  wrong: {type: integer, extract: {jmespath: metadata.name}}
  none: {type: string, extract: {jmespath: spec.none}}
"""
EDIT = "/data-sources/owners/edit"


async def send(browser: Browser, text: str, do: str = "save", path: str = EDIT, **more: str) -> Any:
    """Send the form of the editor as it was opened last."""
    return await browser.send(path, text=text, do=do, **more)


def seen(html: str) -> str:
    """Which draft the form was made of."""
    return html.partition('name="seen" value="')[2].partition('"')[0]
