"""One file of a repository's default branch."""

from factbook.integrations.github.options import GithubOptions
from factbook.outbound import Answer, HttpClient, Memory, path


async def read(
    options: GithubOptions, target: str, file: str, client: HttpClient, memory: Memory
) -> Answer:
    """The file with this path, its bytes as the body; not asked for again while it is the same."""
    url = f"{options.rest}{path('repos', *target.split('/'), 'contents', *file.split('/'))}"
    raw = {"accept": "application/vnd.github.raw+json"}
    return await client.get(
        url, headers=raw, budget="core", memory=memory, decode=False, follow=True
    )
