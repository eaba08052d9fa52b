"""A person who has only a keyboard, and sees where the focus is."""

from collections.abc import Iterator
from typing import Any

from tests.browser.driving import Window

_MOST_STEPS = 150
# What has the focus: what it is called, whether the eye finds it, and a name for itself.
_FOCUSED = """() => {
  const at = document.activeElement;
  if (!at || at === document.body) return null;
  // What is in a picture has a line of its own around it.
  const isOutlined = [at, ...at.querySelectorAll("rect")].some((each) => {
    const {outlineStyle, outlineWidth, stroke, strokeWidth} = getComputedStyle(each);
    return (outlineStyle !== "none" && parseFloat(outlineWidth) >= 1) ||
      (stroke !== "none" && parseFloat(strokeWidth) >= 2);
  });
  const [box] = at.getClientRects();
  const middle = (from, to, end) => (Math.max(from, 0) + Math.min(to, end)) / 2;
  const there = box && document.elementFromPoint(
    middle(box.left, box.right, innerWidth), middle(box.top, box.bottom, innerHeight));
  // What a picture says is no innerText.
  const words = at.labels?.[0]?.innerText ?? at.getAttribute("aria-label") ?? at.innerText;
  return {
    name: (words ?? at.textContent).trim(),
    outlined: isOutlined,
    large: Boolean(box) && box.width > 4 && box.height > 4,
    uncovered: Boolean(there) && (at.contains(there) || there.contains(at)),
    html: at.outerHTML.slice(0, 120),
  };
}"""


class Keyboard:
    """A person who has only a keyboard."""

    def __init__(self, window: Window) -> None:
        self.window = window
        self.page = window.page

    def open(self, path: str) -> None:
        self.window.open(path)

    def focused(self) -> dict[str, Any] | None:
        """What has the focus, which has to be seen."""
        found: dict[str, Any] | None = self.page.evaluate(_FOCUSED)
        if found is not None:
            hidden = [how for how in ("outlined", "large", "uncovered") if not found[how]]
            assert not hidden, (self.window.path, hidden, found["html"])
        return found

    def steps(self, key: str = "Tab") -> Iterator[str]:
        """What gets the focus, one after the other, until the page has no more."""
        for _ in range(_MOST_STEPS):
            self.page.keyboard.press(key)
            found = self.focused()
            if found is None:
                return
            yield found["name"]

    def to(self, name: str, key: str = "Tab") -> None:
        """Go on until what is called so has the focus."""
        passed = []
        for each in self.steps(key):
            if each == name:
                return
            passed.append(each)
        raise AssertionError(f"{name} was never reached: {passed}")

    def press(self, *names: str) -> None:
        """Go to each and press Enter, which leads to another page."""
        for name in names:
            self.to(name)
            with self.page.expect_navigation():
                self.page.keyboard.press("Enter")

    def type(self, field: str, text: str) -> None:
        """Go to a field and fill it in."""
        self.to(field)
        self.page.keyboard.type(text)
