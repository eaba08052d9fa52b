"""GraphQL documents about the files of projects. Paths, ids and branches are variables."""

from functools import lru_cache
from typing import Final

_BLOBS: Final = "{ nodes { path rawTextBlob size } }"

ROOTS: Final = f"""query Roots($group: ID!, $ids: [ID!], $paths: [String!]!) {{
  group(fullPath: $group) {{
    projects(includeSubgroups: true, ids: $ids, first: 100) {{
      nodes {{
        id
        languages {{ name share }}
        repository {{
          empty rootRef tree {{ lastCommit {{ sha }} }}
          blobs(paths: $paths, first: 20) {_BLOBS}
        }}
      }}
    }}
  }}
}}
"""


@lru_cache(maxsize=64)
def files(count: int) -> str:
    """Query for files of projects b0, b1 …; variables: p0, the paths f0 and the branch r0, …"""
    given = " ".join(f"$p{i}: ID! $f{i}: [String!]! $r{i}: String" for i in range(count))
    blobs = "\n".join(
        f"  b{i}: project(fullPath: $p{i}) "
        f"{{ repository {{ blobs(paths: $f{i}, ref: $r{i}, first: 20) {_BLOBS} }} }}"
        for i in range(count)
    )
    return f"query Files({given}) {{\n{blobs}\n}}\n"
