"""The theme that a person chooses stays."""

import pytest

from tests.browser.driving import Theme
from tests.browser.shop import Shop

pytestmark = pytest.mark.system

BACKGROUNDS = {"light": "rgb(247, 246, 243)", "dark": "rgb(20, 24, 27)"}


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
@pytest.mark.parametrize(
    ("chosen", "system", "shown"),
    [("Dark", "light", "dark"), ("Light", "dark", "light"), ("System", "dark", "dark")],
)
def test_the_chosen_theme_is_that_of_every_page_from_then_on(
    shop: Shop, chosen: str, system: Theme, shown: str, scripts: bool
) -> None:
    with shop.window(theme=system, scripts=scripts) as window:
        window.open("/administration/account")
        form = window.page.get_by_role("region", name="Appearance")
        form.get_by_label(chosen).check()
        window.follow(form.get_by_role("button", name="Save"))
        for path in ("/administration/account", "/catalog", "/administration/account"):
            window.open(path)
            window.page.reload()
            colour = window.page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert colour == BACKGROUNDS[shown], path
        assert form.get_by_label(chosen).is_checked()
        assert window.complaints == []
