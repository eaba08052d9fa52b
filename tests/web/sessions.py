"""Whether a browser is signed in, and the cookie of its session."""

import httpx2

from tests.web.visiting import Browser

HOME = "/administration/account"
SESSION = "factbook"


async def is_in(visitor: Browser) -> bool:
    """Whether the browser is somebody's."""
    answer = await visitor.http.get(HOME)
    assert answer.status_code in {200, 303}
    return answer.status_code == 200


def cookie(answer: httpx2.Response, name: str = SESSION) -> str:
    """What an answer sets the cookie of the session to, with its attributes."""
    sent = answer.headers.get_list("set-cookie")
    # A browser goes by the last of one name.
    return str([text for text in sent if text.startswith(f"{name}=")][-1])
