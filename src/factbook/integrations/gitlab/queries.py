"""GraphQL documents. One project for each request, as the limit on complexity is 250.

A page of 100 doubles the complexity of its content; the first document takes about 90.
"""

from typing import Final

_MERGED: Final = """count
      nodes { iid title createdAt mergedAt author { username bot } }
      pageInfo { hasNextPage endCursor }"""
_MEMBERS: Final = """nodes { user { username } }
      pageInfo { hasNextPage endCursor }"""
_RELATIONS: Final = "relations: [DIRECT, INHERITED, INVITED_GROUPS]"

PROJECT: Final = f"""query Project($path: ID!, $since: Time!) {{
  project(fullPath: $path) {{
    id
    fullPath
    mergeRequestsEnabled
    issuesEnabled
    languages {{ name share }}
    repository {{ empty rootRef tree {{ lastCommit {{ sha }} }} }}
    requests: mergeRequests {{ count }}
    openRequests: mergeRequests(state: opened) {{ count }}
    lastMonth: mergeRequests(state: merged, mergedAfter: $since) {{ count }}
    merged: mergeRequests(state: merged, sort: MERGED_AT_DESC, first: 100) {{
      {_MERGED}
    }}
    issues {{ count }}
    openIssues: issues(state: opened) {{ count }}
    closedIssues: issues(state: closed) {{ count }}
    closedLastMonth: issues(state: closed, closedAfter: $since) {{ count }}
    members: projectMembers({_RELATIONS}, first: 100) {{
      {_MEMBERS}
    }}
  }}
}}"""

MERGED: Final = f"""query Merged($path: ID!, $after: String!) {{
  project(fullPath: $path) {{
    merged: mergeRequests(state: merged, sort: MERGED_AT_DESC, first: 100, after: $after) {{
      {_MERGED}
    }}
  }}
}}"""

MEMBERS: Final = f"""query Members($path: ID!, $after: String!) {{
  project(fullPath: $path) {{
    members: projectMembers({_RELATIONS}, first: 100, after: $after) {{
      {_MEMBERS}
    }}
  }}
}}"""

# A field of its own request: the Community Edition does not know it and refuses the whole document.
CODEOWNERS: Final = """query Codeowners($path: ID!) {
  project(fullPath: $path) {
    repository { validateCodeownerFile { total } }
  }
}"""
