"""The examples with which new checks and scorecards begin."""

from typing import Final

CHECK: Final = """\
id: has-owner          # it stays: results are kept under it
title: A group owns it
description: Somebody has to be asked, and told.
owner: group:default/platform
appliesTo: {kind: component}
rule:                  # all, any or not, and comparisons of facts
  all:
    - {source: entity, fact: spec.owner, operator: isKnown}
    - {source: entity, fact: spec.owner, operator: startsWith, value: "group:"}
messages: {fail: "No group owns {{ metadata.name }}."}
fix:
  instructions: Set spec.owner to a group in the catalog file.
tests:                 # tried with every preview
  - entity: {kind: Component, spec: {owner: "group:default/shop"}}
    expect: pass
  - entity: {kind: Component, spec: {owner: "user:default/mary"}}
    expect: fail
"""
SCORECARD: Final = """\
id: readiness          # it stays: levels are kept under it
title: Readiness
description: What has to be there before somebody is on call for it.
owner: group:default/platform
appliesTo: {kind: component}
levels: [bronze, silver, gold]   # the lowest first
entries:
  - {check: has-owner, level: bronze}
target: {level: bronze, by: "2027-06-30"}
"""
