"""A person who uses the pages as a browser without scripts does."""

import asyncio
import re
from html import unescape
from typing import Any

import httpx2

from factbook.auth import passwords, sessions, users
from factbook.storage import Transaction
from factbook.web import pages
from tests.service import Service

PASSWORD = "correct horse battery"
_CSRF = re.compile(r'name="csrf" value="([^"]+)"')


class Browser:
    """A browser: keeps cookies, follows nothing by itself."""

    def __init__(self, http: httpx2.AsyncClient) -> None:
        self.http = http
        self.csrf = ""

    async def open(self, path: str, **query: Any) -> httpx2.Response:
        """A page; the forms of it can be sent then."""
        answer = await self.http.get(path, params=query or None, headers={"accept": "text/html"})
        if found := _CSRF.search(answer.text):
            self.csrf = unescape(found[1])
        return answer

    async def text(self, path: str, status: int = 200, **query: Any) -> str:
        """What a page says, after its redirections."""
        answer = await self.open(path, **query)
        while answer.status_code == 303:
            answer = await self.open(answer.headers["location"])
        assert answer.status_code == status, answer.text
        return answer.text

    async def send(self, path: str, /, **fields: Any) -> httpx2.Response:
        """Send a form, with the token that the last page had."""
        data = {"csrf": self.csrf, **fields}
        return await self.http.post(path, data=data, headers={"accept": "text/html"})

    async def done(self, path: str, /, **fields: Any) -> str:
        """Send a form that is accepted, and go on to the page that it leads to."""
        answer = await self.send(path, **fields)
        assert answer.status_code == 303, answer.text
        return await self.text(answer.headers["location"])

    async def sign_in(
        self, name: str, password: str = PASSWORD, next: str = "/"
    ) -> httpx2.Response:
        """Sign in with the form."""
        await self.open("/sign-in")
        answer = await self.send("/sign-in", name=name, password=password, next=next)
        if answer.status_code == 303:
            await self.open("/administration/account")
        return answer


def words(html: str) -> str:
    """The text of a page without its elements, blanks made one."""
    text = re.sub(r"<(script|style).*?</\1>", " ", html, flags=re.S)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", text)).split())


async def add_person(service: Service, name: str, role: str = "administrator") -> None:
    """An account with the password of these tests."""
    hashed = await asyncio.to_thread(passwords.hash_password, PASSWORD)
    await service.state.database.write(
        lambda transaction: users.create_user(
            transaction,
            ref=users.make_user_ref(name),
            display_name=name.title(),
            role=role,
            password=hashed,
            created_by="test",
            now=service.time(),
            proof=users.BY_ADMINISTRATOR,
        )
    )


def browser(service: Service, *, address: str = "127.0.0.1") -> Browser:
    """A browser of nobody yet."""
    return Browser(service.client(None, address=address))


async def signed_in(service: Service, name: str = "ada", role: str = "administrator") -> Browser:
    """A browser of a new person with a session, as signing in leaves it, without its slow hash."""
    value, ref = sessions.generate_cookie(), users.make_user_ref(name)
    now, key = service.time(), service.state.token_key

    def work(transaction: Transaction) -> None:
        users.create_user(
            transaction,
            ref=ref,
            display_name=name.title(),
            role=role,
            created_by="test",
            now=now,
            proof=users.BY_ADMINISTRATOR,
        )
        hash_ = sessions.hash_cookie(value, key)
        sessions.start_session(
            transaction, hash=hash_, ref=ref, now=now, address="127.0.0.1", agent="test"
        )

    await service.state.database.write(work)
    found = browser(service)
    found.http.cookies.set(pages.SESSION_COOKIE, value)
    await found.open("/administration/account")
    return found


async def with_password(
    service: Service, name: str = "ada", role: str = "administrator", *, address: str = "127.0.0.1"
) -> Browser:
    """A browser of a new person who has signed in with the form."""
    await add_person(service, name, role)
    found = browser(service, address=address)
    answer = await found.sign_in(name)
    assert answer.status_code == 303, answer.text
    return found
