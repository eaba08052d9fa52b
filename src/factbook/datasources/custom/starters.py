"""Starter definitions: valid as they are, with comments on the parts to edit."""

import json
import re
from typing import Final

from factbook.datasources.custom.definition import Type
from factbook.errors import InputError

_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
# What YAML reads as a text without quotes; `true`, `null` and numbers are others.
_PLAIN: Final = re.compile(r"[a-z][a-z0-9]*([-_][a-z0-9]+)+|[a-z]+[0-9]+")


def skeleton(name: str, type_: Type, owner: str | None = None) -> str:
    """A definition with this id, and of this owner; raises InputError for an invalid id."""
    if not _ID.fullmatch(name):
        raise InputError(
            f'"{name}" is no id of a source: 1 to 100 letters, digits, dots, dashes or '
            "underscores, the first of them a letter or digit."
        )
    id_ = name if _PLAIN.fullmatch(name) else f'"{name}"'
    words = re.sub(r"[._-]+", " ", name).strip()
    title = f'"{words[:1].upper()}{words[1:]}"'
    head = _HEAD + (_OWNER if owner else "")
    text = head + _CADENCE[type_ == "push"] + _TARGETS + _HANDLERS[type_] + _FACTS[type_]
    text = text.replace("<id>", id_).replace("<title>", title)
    # Last, as a reference may have the other marks in it.
    return text.replace("<owner>", json.dumps(owner, ensure_ascii=False))


_HEAD = """\
id: <id>
title: <title>
# What an agent reads before it asks for these facts.
description: What the facts say, in a sentence.
"""

_OWNER = """
# The group whose members manage it. It is about entities of this group alone.
owner: <owner>
"""

_CADENCE = {
    False: """
# When to collect, in UTC: minute, hour, day of the month, month, day of the week.
cadence: "0 * * * *"

# How long one collection may take.
timeout: {minutes: 20}
""",
    True: "",
}

_TARGETS = """
# Which entities have these facts; all of them when this is left out. Of several list entries one
# has to hold, in one entry all conditions. A list of values is "one of them".
entityFilter:
  - kind: component

# How much history is kept: so long, or {maxItems: 100}.
lifecycle: {timeToLive: {days: 90}}
"""

_HANDLERS: dict[Type, str] = {
    "http": """
handlerDefinition:
  type: http
  config:
    id: <id>
    # A connection that an administrator configured. It holds the address and the secrets.
    connection: ci
    method: GET
    # Appended to the address of the connection. Between braces stand JMESPath expressions on the
    # entity; an entity that lacks the value is not asked about.
    path: /jobs/{{ metadata.name }}/last
    # query: {branch: main}
    # headers: {x-team: "{{ spec.owner }}"}
    # body: {job: "{{ metadata.name }}"}    # for method POST
    # What comes back: json, yaml or text.
    format: json
    extractor: jmespath/1
""",
    "repository-file": """
handlerDefinition:
  type: repository-file
  config:
    id: <id>
    # A file of the default branch of the entity's repository. `{{ metadata.name }}` and other
    # JMESPath expressions on the entity can stand in it.
    path: package.json
    # What the file is: json, yaml or text.
    format: json
    extractor: jmespath/1
""",
    "repository-directory": """
handlerDefinition:
  type: repository-directory
  config:
    id: <id>
    # A directory of the default branch of the entity's repository; the whole of it without a path.
    # The document is {"paths": [...], "count": N}: every file below it, however deep.
    path: docs
    extractor: jmespath/1
""",
    "entity": """
handlerDefinition:
  type: entity
  config:
    id: <id>
    # The document is the entity itself, as the catalog shows it.
    extractor: jmespath/1
""",
    "push": """
handlerDefinition:
  type: push
  config:
    id: <id>
""",
}

_EXTRACTED = """
# The facts. A type is integer, float, string, boolean, datetime, set or object. A value comes from
# the document by a JMESPath expression, {jmespath: ...}, or by a regular expression, {regex: ...}.
schema:
"""

_FACTS: dict[Type, str] = {
    "http": _EXTRACTED
    + """\
  passed:
    type: boolean
    description: The last build passed.
    extract: {jmespath: "result && result == 'success'"}
  duration:
    type: float
    unit: seconds
    description: How long it took.
    extract: {jmespath: duration}
""",
    "repository-file": _EXTRACTED
    + """\
  version:
    type: string
    description: The version that the file says.
    extract: {jmespath: version}
  usesReact:
    type: boolean
    description: React is among the dependencies.
    extract: {regex: '"react"\\s*:'}
""",
    "repository-directory": _EXTRACTED
    + """\
  pages:
    type: integer
    description: How many pages of documentation there are.
    extract: {jmespath: "length(paths[?ends_with(@, '.md')])"}
""",
    "entity": _EXTRACTED
    + """\
  hasRunbook:
    type: boolean
    description: A link of the entity has the title Runbook.
    extract: {jmespath: "length((metadata.links || `[]`)[?title == 'Runbook']) > `0`"}
""",
    "push": """
# The facts. A type is integer, float, string, boolean, datetime, set or object.
#   factbook push-facts <id> --entity REF coverage=81.5 reportedAt=2026-01-31T12:00:00Z
schema:
  coverage:
    type: float
    unit: percent
    description: How much of the code the tests run.
  reportedAt:
    type: datetime
    description: When it was measured.
""",
}
