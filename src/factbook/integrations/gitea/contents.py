"""One file of a repository's default branch."""

from typing import Final

from factbook.integrations.gitea.options import Options
from factbook.outbound import Answer, HttpClient, Memory, path

_ANYTHING: Final = {"accept": "*/*"}


async def read(
    options: Options, target: str, file: str, client: HttpClient, memory: Memory
) -> Answer:
    """The file with this path, its bytes as the body; not asked for again while it is the same."""
    url = f"{options.rest}{path('repos', *target.split('/'), 'raw', *file.split('/'))}"
    return await client.get(url, headers=_ANYTHING, memory=memory, decode=False, follow=True)
