"""GraphQL documents of an organization. Logins, paths and cursors are variables."""

from functools import lru_cache
from typing import Final

CODEOWNERS: Final = (".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS")
PAGE: Final = "page"

_INFO: Final = "pageInfo { hasNextPage endCursor }"
_LIMIT: Final = "rateLimit { cost remaining resetAt nodeCount }"
_BLOB: Final = "{ ... on Blob { text isTruncated byteSize } }"
_REPOSITORY: Final = (
    "id databaseId nameWithOwner isArchived isFork isEmpty visibility description url"
)
_TEAM_MEMBERS: Final = f"nodes {{ login }} {_INFO}"
_TEAM_REPOSITORIES: Final = f"edges {{ permission node {{ databaseId }} }} {_INFO}"


@lru_cache(maxsize=8)
def repositories(files: int) -> str:
    """Query for a page of repositories, with `files` catalog files and the CODEOWNERS of each.

    Variables: login, size, after; e0, e1 … for the catalog files; c0, c1 and c2 for the others.
    """
    given, fields = _fields(files)
    return f"""query Repositories($login: String!, $size: Int!, $after: String, {given}) {{
  organization(login: $login) {{
    viewerIsAMember viewerCanAdminister
    {PAGE}: repositories(
      first: $size, after: $after, orderBy: {{field: CREATED_AT, direction: ASC}}
    ) {{
      totalCount {_INFO}
      nodes {{
{fields}
      }}
    }}
  }}
  {_LIMIT}
}}
"""


@lru_cache(maxsize=8)
def some_repositories(files: int) -> str:
    """Query for the same of single repositories. Variables: ids, and those for the files."""
    given, fields = _fields(files)
    return f"""query Nodes($ids: [ID!]!, {given}) {{
  nodes(ids: $ids) {{
    ... on Repository {{
{fields}
    }}
  }}
  {_LIMIT}
}}
"""


def _fields(files: int) -> tuple[str, str]:
    """The variables for the files of a repository, and its fields."""
    names = [*(f"e{i}" for i in range(files)), *(f"c{i}" for i in range(len(CODEOWNERS)))]
    given = " ".join(f"${name}: String!" for name in names)
    blobs = "\n".join(f"        {name}: object(expression: ${name}) {_BLOB}" for name in names)
    return (
        given,
        f"""        {_REPOSITORY}
        primaryLanguage {{ name }}
        repositoryTopics(first: 20) {{ nodes {{ topic {{ name }} }} }}
        defaultBranchRef {{ name target {{ oid }} }}
{blobs}""",
    )


TEAMS: Final = f"""query Teams($login: String!, $size: Int!, $after: String) {{
  organization(login: $login) {{
    {PAGE}: teams(first: $size, after: $after, orderBy: {{field: NAME, direction: ASC}}) {{
      totalCount {_INFO}
      nodes {{
        databaseId slug name description privacy url
        parentTeam {{ slug }}
        members(first: 100, membership: IMMEDIATE) {{ {_TEAM_MEMBERS} }}
        repositories(first: 100) {{ {_TEAM_REPOSITORIES} }}
      }}
    }}
  }}
  {_LIMIT}
}}
"""

MEMBERS: Final = f"""query Members($login: String!, $size: Int!, $after: String) {{
  organization(login: $login) {{
    {PAGE}: membersWithRole(first: $size, after: $after) {{
      totalCount {_INFO}
      nodes {{ databaseId login name url avatarUrl }}
    }}
  }}
  {_LIMIT}
}}
"""

TEAM_MEMBERS: Final = f"""query TeamMembers($login: String!, $team: String!, $after: String) {{
  organization(login: $login) {{
    team(slug: $team) {{
      {PAGE}: members(first: 100, after: $after, membership: IMMEDIATE) {{ {_TEAM_MEMBERS} }}
    }}
  }}
  {_LIMIT}
}}
"""

TEAM_REPOSITORIES: Final = f"""query TeamRepositories(
  $login: String!, $team: String!, $after: String
) {{
  organization(login: $login) {{
    team(slug: $team) {{
      {PAGE}: repositories(first: 100, after: $after) {{ {_TEAM_REPOSITORIES} }}
    }}
  }}
  {_LIMIT}
}}
"""


@lru_cache(maxsize=64)
def files(count: int) -> str:
    """Query for files b0, b1 …; variables: o0, n0 and the expression e0, …"""
    given = " ".join(f"$o{i}: String! $n{i}: String! $e{i}: String!" for i in range(count))
    blobs = "\n".join(
        f"  b{i}: repository(owner: $o{i}, name: $n{i}) "
        f"{{ file: object(expression: $e{i}) {_BLOB} }}"
        for i in range(count)
    )
    return f"query Files({given}) {{\n{blobs}\n  {_LIMIT}\n}}\n"
