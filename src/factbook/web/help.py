"""Help: the files of `docs/` of this release as pages, with links kept local."""

import posixpath
import re
from collections.abc import Container, Iterable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from markupsafe import Markup, escape

from factbook.errors import NotFoundError
from factbook.http.requests import Reply, run_offloaded
from factbook.web.formats import get_external_url, quote_segment
from factbook.web.pages import PageContext, PageRoute

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token


PATH: Final = "/help"
START: Final = "index"
# In a checkout a link to the folder that people edit.
_ROOT: Final = Path(__file__).parent / "documentation"
# Records of how it was made, and figures with pictures, are not for those who use it.
_LEFT_OUT: Final = frozenset({"performance", "scale"})
_FOLDERS: Final = ("", "how-to/", "reference/", "reference/integrations/")
_COMMENT: Final = re.compile(r"^<!--.*?-->\n?", re.MULTILINE)
_FENCED: Final = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_HEADING: Final = re.compile(r"^(#{1,3}) +(.+?) *$", re.MULTILINE)
# What Markdown draws around words.
_MARKS: Final = re.compile(r"[`*]|\[(?=[^\]]*\]\()|\]\([^)]*\)")
_NO_WORD: Final = re.compile(r"[^\w\s-]")
_EMPTY: Final = re.compile(r"<p>\s*</p>\n?")
_PICTURES: Final = (".png", ".svg")
_SCROLLED: Final = '<div class="table-scroll" tabindex="0" role="group" aria-label="Table">'
_BLANKS: Final = re.compile(r"[-\s]+")


class DocumentationPage(NamedTuple):
    """A page of the documentation; `anchors` are the ids of its headings."""

    title: str
    html: Markup
    anchors: frozenset[str]


@cache
def list_help_names() -> frozenset[str]:
    """Names of all pages: `start`, `how-to/push`."""
    found = (
        f"{folder}{file.stem}" for folder in _FOLDERS for file in (_ROOT / folder).glob("*.md")
    )
    return frozenset(found) - _LEFT_OUT


@cache
def render_help(name: str) -> DocumentationPage | None:
    """Page by its name; None if there is none."""
    if name not in list_help_names():
        return None
    text = (_ROOT / f"{name}.md").read_text("utf-8")
    parser = _make_parser()
    tokens = parser.parse(_COMMENT.sub("", text))
    anchors = _set_heading_ids(tokens)
    for token in tokens:
        if token.children is not None:
            token.children = list(_rewrite_links(token.children, name))
    html = _EMPTY.sub("", parser.renderer.render(tokens, parser.options, {}))
    title = next(iter(anchors.values()), name)
    return DocumentationPage(title, Markup(html), frozenset(anchors))  # noqa: S704 - of our own files


class Heading(NamedTuple):
    """A heading of the documentation, its address, and the title of its page."""

    title: str
    address: str
    page: str


@cache
def list_help_headings() -> Sequence[Heading]:
    """Headings of all pages, in the order of their names; read without building the pages."""
    return [one for name in sorted(list_help_names()) for one in _list_page_headings(name)]


def _list_page_headings(name: str) -> Iterator[Heading]:
    text = _FENCED.sub("", (_ROOT / f"{name}.md").read_text("utf-8"))
    page, taken = name, dict[str, str]()
    for level, title in _HEADING.findall(text):
        plain = _MARKS.sub("", title)
        anchor = _make_anchor(plain, taken)
        taken[anchor] = plain
        if level == "#":
            page = plain
        yield Heading(plain, make_help_path(name if level == "#" else f"{name}#{anchor}"), page)


def _make_anchor(heading: str, taken: Container[str]) -> str:
    """The id of a heading, which is not among those that are taken."""
    name = id_ = _BLANKS.sub("-", _NO_WORD.sub("", heading).strip().lower())
    number = 0
    while id_ in taken:
        number += 1
        id_ = f"{name}_{number}"
    return id_


def _set_heading_ids(tokens: Sequence["Token"]) -> dict[str, str]:
    """Set the id of every heading; returns the headings by their ids."""
    found: dict[str, str] = {}
    for token, content in pairwise(tokens):
        if token.type != "heading_open":
            continue
        heading = "".join(each.content for each in content.children or ())
        id_ = _make_anchor(heading, found)
        found[id_] = heading
        token.attrSet("id", id_)
    return found


def _rewrite_links(tokens: Iterable["Token"], name: str) -> Iterator["Token"]:
    """Tokens of a text, without pictures, with links to pages of this service."""
    is_of_picture = False
    for token in tokens:
        if token.type == "link_open":
            href = str(token.attrs.pop("href"))
            is_of_picture = href.endswith(_PICTURES)
            target = get_external_url(href) or _resolve_link(href, name)
            if target:
                token.attrSet("href", target)
                token.attrSet("rel", "noopener noreferrer")
        if token.type != "image" and not is_of_picture:
            yield token
        if token.type == "link_close":
            is_of_picture = False


def _resolve_link(href: str, name: str) -> str | None:
    path, _, anchor = href.partition("#")
    where = name
    if path:
        where = posixpath.normpath(posixpath.join(posixpath.dirname(name), path))
        where = where.removesuffix(".md")
    if where not in list_help_names():
        return None
    return make_help_path(where) + (f"#{anchor}" if anchor else "")


def make_help_path(name: str) -> str:
    """Path of a page, or of its heading if the name goes on with `#`."""
    page, hash_, anchor = name.partition("#")
    path = PATH if page == START else f"{PATH}/{'/'.join(map(quote_segment, page.split('/')))}"
    return f"{path}{hash_}{anchor}"


def _make_parser() -> "MarkdownIt":
    """Markdown parser that makes wide code and tables scrollable."""
    # Not with the service: it takes 15 ms and 2 MB, for pages that few read.
    from markdown_it import MarkdownIt  # noqa: PLC0415

    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.add_render_rule("fence", _render_code)
    parser.add_render_rule("code_block", _render_code)
    parser.add_render_rule("table_open", lambda *_: f'{_SCROLLED}<table class="table">\n')
    parser.add_render_rule("table_close", lambda *_: "</table></div>\n")
    return parser


def _render_code(_renderer: Any, tokens: Sequence["Token"], place: int, *_: Any) -> str:
    code = escape(tokens[place].content)
    return f'<div class="code"><pre tabindex="0"><code>{code}</code></pre></div>\n'


async def show_help_start(visit: PageContext) -> Reply:
    """Start page of the documentation."""
    return await _show_help_page(visit, START)


async def show_help(visit: PageContext) -> Reply:
    """A page of the documentation; raises NotFoundError."""
    return await _show_help_page(visit, visit.request.parameter("page"))


async def _show_help_page(visit: PageContext, name: str) -> Reply:
    found = await run_offloaded(render_help, name)
    if found is None:
        raise NotFoundError("The documentation has no such page.")
    return visit.page("help.html", document=found, start=PATH, is_start=name == START)


HELP: Final[Sequence[PageRoute]] = (
    PageRoute("GET", PATH, show_help_start),
    PageRoute("GET", f"{PATH}/{{page:path}}", show_help),
)
