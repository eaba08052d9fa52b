"""The file that `factbook checks new` writes."""

from typing import Final

from factbook.checks import document_readers
from factbook.errors import InputError


def skeleton(name: str) -> str:
    """A check with comments that say how to go on, and tests that hold."""

    def refuse(path: str, message: str) -> None:
        raise InputError(f'"{name}" {message}.')

    document_readers.read_identifier(name, "", refuse)
    title = name.replace("-", " ").replace("_", " ").replace(".", " ").strip()
    return _SKELETON.format(name=name, title=f"{title[:1].upper()}{title[1:]}")


_SKELETON: Final = """\
check: {name}
title: {title}
description: >-
  What is asked of an entity, and what it is good for.
# Who answers for the check:
# owner: group:default/platform

# The entities that it is about, by paths of the catalog; without it, all of them.
appliesTo: {{kind: component}}

# `all`, `any` or `not` over comparisons of facts. A fact that is missing neither passes nor fails.
rule:
  all:
    - {{source: entity-ownership, fact: hasGroupOwner, operator: equal, value: true}}
    - {{source: entity-metadata, fact: hasDescription, operator: equal, value: true}}

# With values of the entity, {{{{ metadata.name }}}}, and of facts, {{{{ facts.SOURCE['FACT'] }}}}.
messages:
  fail: "{{{{ metadata.name }}}} has no group as its owner, or no description."
# fix: {{link: "https://wiki.example.com/owners#{{{{ metadata.name }}}}"}}

# `factbook checks test {name}.yaml` runs them: at least a pass, a fail and an unknown.
tests:
  - facts:
      entity-ownership: {{hasGroupOwner: true}}
      entity-metadata: {{hasDescription: true}}
    expect: pass
  - facts:
      entity-ownership: {{hasGroupOwner: false}}
    expect: fail
  - facts: {{}}
    expect: unknown
"""
