"""Looking for secrets in whatever form they may have got out."""

import base64
import html
import json
import secrets
from collections.abc import Iterable, Mapping
from urllib.parse import quote, quote_plus

_EDGE = 4  # characters at either end of base64 that depend on what stands beside


class Vault:
    """The secrets of a run by what each is, and everything that was shown of them."""

    def __init__(self) -> None:
        self.secrets: dict[str, str] = {}
        self.seen: list[tuple[str, bytes]] = []

    def new(self, name: str, *, odd: bool = False) -> str:
        """A new secret; `odd`: with characters that are written differently here and there."""
        value = f"s3cr{secrets.token_hex(12)}"
        return self.keep(name, f'{value}/+ &=%"<ü\\' if odd else value)

    def keep(self, name: str, value: str) -> str:
        """A secret that the service made."""
        assert len(value) >= 16
        self.secrets[name] = value
        return value

    def saw(self, where: str, *contents: bytes | str) -> None:
        """Remember what was shown somewhere."""
        for content in contents:
            whole = content if isinstance(content, bytes) else content.encode()
            self.seen.append((where, whole))

    def leaks(self, *, but: Mapping[str, Iterable[str]] = {}) -> list[str]:
        """Which secret was shown where, in which form; `but`: where which ones belong."""
        wanted = {
            (name, form): text
            for name, value in self.secrets.items()
            for form, text in forms(value).items()
        }
        found = set()
        for where, content in self.seen:
            for (name, form), text in wanted.items():
                if text in content and name not in but.get(where, ()):
                    found.add(f"{name} in {where} ({form})")
        return sorted(found)


def forms(value: str) -> dict[str, bytes]:
    """A secret as it is, and in each form in which it could be written."""
    raw = value.encode()
    texts = {
        "plain": value,
        "reversed": value[::-1],
        "hexadecimal": raw.hex(),
        "percent": quote(value, safe=""),
        "percent, lower case": quote(value, safe="").lower(),
        "path": quote(value),
        "form": quote_plus(value),
        "JSON": json.dumps(value)[1:-1],
        "JSON, not ASCII": json.dumps(value, ensure_ascii=False)[1:-1],
        "JSON escapes": "".join(f"\\u{ord(letter):04x}" for letter in value),
        "HTML": html.escape(value),
        "HTML, numbered": value.replace("&", "&amp;").replace('"', "&#34;").replace("<", "&lt;"),
        "representation": repr(value)[1:-1],
    }
    for offset in range(3):
        for kind, encode in (("", base64.b64encode), (", safe", base64.urlsafe_b64encode)):
            inner = encode(b"\0" * offset + raw).decode().rstrip("=")[_EDGE:-_EDGE]
            texts[f"base64 at {offset}{kind}"] = inner
    return {form: text.encode() for form, text in texts.items()}
