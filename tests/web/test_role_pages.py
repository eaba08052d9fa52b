"""Every role at every page and form: each cell told from the tables of pages and of roles."""

import pytest

from factbook.auth.permissions import ROLES, suffices_when_owned
from factbook.web.pages import OPEN
from factbook.web.routes import PAGES
from tests.service import Service
from tests.web.table import path_of
from tests.web.visiting import signed_in

# On PostgreSQL with the system tests, for the time that it takes.
EITHER = ("sqlite", pytest.param("postgresql", marks=pytest.mark.system))
pytestmark = pytest.mark.parametrize("database_url", EITHER, indirect=True)


@pytest.mark.slow
@pytest.mark.spec("roles.each-does-what-its-permissions-allow")
@pytest.mark.parametrize("role", ROLES)
async def test_a_role_opens_the_pages_whose_permissions_it_has(service: Service, role: str) -> None:
    wrong = []
    for number, page in enumerate(PAGES):
        if page.needs is OPEN:
            continue
        # Somebody else at each, as some forms end a session.
        vic = await signed_in(service, f"vic-{number}", role)
        answer = await (vic.open if page.method == "GET" else vic.send)(path_of(page))
        told = answer.status_code == 403 and "does not have the permission" in answer.text
        # A page of what is owned looks whose it is.
        held = ROLES[role]
        opens = held.issuperset(page.needs) or (
            page.owned and suffices_when_owned(held, page.needs)
        )
        if told == opens:
            wrong.append(f"{page.method} {page.path}: {answer.status_code}")
    assert wrong == []


async def test_the_navigation_leads_a_role_to_nothing_that_it_may_not_open(
    service: Service, subtests: pytest.Subtests
) -> None:
    for role in ROLES:
        with subtests.test(role=role):
            vic = await signed_in(service, role, role)
            home = await vic.text("/administration/account")
            for page in PAGES:
                if page.method == "GET" and page.needs and "{" not in page.path:
                    shown = f'<a href="{page.path}"' in home
                    assert not shown or ROLES[role].issuperset(page.needs), page.path
