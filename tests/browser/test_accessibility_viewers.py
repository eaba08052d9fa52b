"""What viewers see, and those who are not signed in: wide and narrow, light and dark."""

import pytest

from tests.browser.addresses import EXAMPLES, NOWHERE, OUTSIDE
from tests.browser.looking import find_faults, list_seen
from tests.browser.shop import ADMINISTRATOR, VIEWER, Shop

pytestmark = pytest.mark.system

# No test takes so long that it is cut off.
_SLICES = 4


@pytest.mark.parametrize("first", range(_SLICES))
def test_nothing_is_wrong_with_pages_as_viewers_see_them(shop: Shop, first: int) -> None:
    with shop.window(VIEWER) as window:
        wrong = [
            fault
            for place in list_seen(VIEWER)[first::_SLICES]
            for path in EXAMPLES[place]
            for fault in find_faults(window, shop.filled(path), alone=False)
        ]
    assert not wrong, "\n".join(wrong)


def test_nothing_is_wrong_with_pages_that_refuse_a_viewer(shop: Shop) -> None:
    """Of all that are for administrators, one is looked at."""
    place = next(place for place in list_seen(ADMINISTRATOR) if place not in list_seen(VIEWER))
    with shop.window(VIEWER) as window:
        wrong = [
            fault
            for path in (*EXAMPLES[place], NOWHERE)
            for fault in find_faults(window, shop.filled(path))
        ]
    assert not wrong, "\n".join(wrong)


def test_nothing_is_wrong_with_the_pages_outside(shop: Shop) -> None:
    paths = [path for paths in OUTSIDE.values() for path in paths]
    with shop.window(None) as window:
        wrong = [
            found for path in (*paths, shop.invite("guest")) for found in find_faults(window, path)
        ]
    assert not wrong, "\n".join(wrong)
