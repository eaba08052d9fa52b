"""What only administrators see: their pages, and the answers to forms."""

import pytest

from tests.browser.addresses import EXAMPLES, NOWHERE
from tests.browser.driving import NARROW
from tests.browser.looking import find_faults_shown, find_faults_unfolded, list_seen
from tests.browser.shop import ADMINISTRATOR, VIEWER, Shop

pytestmark = pytest.mark.system

# No test takes so long that it is cut off.
_SLICES = 2


@pytest.mark.parametrize("first", range(_SLICES))
def test_nothing_is_wrong_with_pages_of_administrators(shop: Shop, first: int) -> None:
    own = [place for place in list_seen(ADMINISTRATOR) if place not in list_seen(VIEWER)]
    paths = [path for place in own for path in EXAMPLES[place]] + [NOWHERE]
    with shop.window(ADMINISTRATOR) as window:
        wrong = [
            fault
            for path in paths[first::_SLICES]
            for fault in find_faults_unfolded(window, shop.filled(path), alone=True)
        ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("path", "fields", "button", "heading"),
    [
        (
            "/administration/account/api-access",
            {"Name": "a look"},
            "Generate token",
            "Token “a look”",
        ),
        (
            "/administration/account/api-access",
            {"Name": "no \N{ZERO WIDTH SPACE} name"},
            "Generate token",
            "API access",
        ),
        ("/administration/people", {"Name": "newcomer"}, "Create link", "Invitation"),
        (
            "/administration/account",
            {"Current password": "wrong", "New password": "short", "Confirm new password": "x"},
            "Change password",
            "Account",
        ),
        (
            "/administration/connections/new",
            {"Name": "No name", "Address": "http://elsewhere.example"},
            "Create connection",
            "New connection",
        ),
        (
            "/administration/webhooks",
            {"Address": "ftp://elsewhere.example"},
            "Create webhook",
            "Webhooks",
        ),
        (
            "/administration/digests",
            {"Address": "ftp://elsewhere.example"},
            "Create digest",
            "Digests",
        ),
        (
            "/data-sources/builds/edit",
            {"Definition, in YAML or JSON": "id: [builds"},
            "Save the draft",
            "Edit builds",
        ),
        (
            "/data-sources/builds/edit",
            {"Entity": "checkout"},
            "Try this text",
            "Edit builds",
        ),
        ("/data-sources/builds", {"Entity": "resource:orders-db"}, "Run for it", "Builds"),
        ("/connect", {}, "Check the endpoint", "Connect an agent"),
        ("/connect/tools/get-entity-facts", {}, "Call the tool", "Facts about one entity"),
    ],
)
def test_nothing_is_wrong_with_what_a_form_is_answered(
    shop: Shop, path: str, fields: dict[str, str], button: str, heading: str
) -> None:
    with shop.window() as window:
        window.open(path)
        main = window.page.get_by_role("main")
        for name, value in fields.items():
            main.get_by_label(name, exact=True).first.fill(value)
        window.follow(main.get_by_role("button", name=button, exact=True))
        assert window.heading == heading
        wrong = find_faults_shown(window, "wide")
        window.resize(NARROW)
        wrong += find_faults_shown(window, "narrow") + window.complaints
    assert not wrong, "\n".join(wrong)
