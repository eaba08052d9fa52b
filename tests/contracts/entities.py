"""Entities to be made up: valid ones of every known kind, and what to put into them that is odd."""

import copy
from random import Random
from typing import Any

from hypothesis import strategies as st

Path = tuple[str | int, ...]

_LETTERS = st.text("aZ9", min_size=1, max_size=3)
_NAMES = st.one_of(
    st.sampled_from(["a", "A.b_c-9", "a..b", "0", "a" * 63]),
    st.builds("{}{}{}".format, _LETTERS, st.text("-_.", max_size=2), _LETTERS),
)
_LABELS = st.sampled_from(["a", "a-b", "a--b", "9", "a" * 63])
_SUBDOMAINS = st.one_of(
    st.lists(_LABELS, min_size=1, max_size=3).map(".".join),
    st.just(".".join(["a" * 63] * 3 + ["a" * 61])),
)
_KEYS = _NAMES | st.builds("{}/{}".format, _SUBDOMAINS, _NAMES)
_TAGS = st.sampled_from(["java", "c++", "c#", "a:b", "java-8", "9", "a" * 63])
_TEXTS = st.sampled_from(["x", " ", "\u00e9", "\U0001f680", "\n", "__proto__"]) | st.text(
    min_size=1, max_size=4
)
_REFERENCES = st.sampled_from(["x", "n/x", "group:x", "Group:n/x", "a/b:c", "c:n/a/b", "c:a:b"])
_WHOLE_REFERENCES = st.sampled_from(["group:x", "Group:n/x", "c:n/a/b", "c:a:b", "c: x"])

_HOSTS = st.text(st.sampled_from("aZ09.-_~%:@[]xfF/\\?# |^<>\u00fc\u65e5\u2603\u3002"), max_size=8)
_NUMBERS = st.lists(
    st.sampled_from(["0", "1", "255", "256", "0x", "0xff", "0xg", "08", "010", "4294967295", ""]),
    min_size=1,
    max_size=5,
).map(".".join)
_V6 = st.lists(
    st.sampled_from([":", "::", "1", "ffff", "10000", "0", "1.2.3.4", "01.2.3.4", "%25", "%eth0"]),
    max_size=9,
).map(lambda parts: f"[{''.join(parts)}]")
_NAMED_HOSTS = st.sampled_from(
    ["c:", "c|", "localhost", "a.example", "\u00ad", "xn--mnchen-3ya.x", "xn--", "xn--a", "xn--11c"]
)
_SCHEMES = st.sampled_from(
    ["http:", "HTTPS:", "ws:", "ftp:", "file:", "mailto:", "x+-.1:", "1x:", "", ":", "\u00fc:"]
)
_SLASHES = st.sampled_from(["//", "", "/", "///", "\\\\", "/\\", "\t//"])
_USERS = st.sampled_from(["", "", "", "me@", "me:x@", "@", ":@", "a@b@"])
_PORTS = st.sampled_from(["", "", ":", ":80", ":65535", ":65536", ":0000080", ":8a", ":-1", ":1:2"])
_ENDS = st.sampled_from(["", "/", "/a b", "?q", "#f", "\\x", " ", "/\u00fc", "\x00"])
_MADE_UP_URLS = st.builds(
    "{}{}{}{}{}{}{}".format,
    st.sampled_from(["", "", " ", "\x1f", "\u00a0", "\n"]),
    _SCHEMES,
    _SLASHES,
    _USERS,
    _HOSTS | _NUMBERS | _V6 | _NAMED_HOSTS,
    _PORTS,
    _ENDS,
)
_FILES = st.sampled_from(["file://c:/x", "file://c|", "file:\\\\c:?", "file://cc:/", "file:///c:/"])
URLS = _MADE_UP_URLS | _FILES
_GOOD_URLS = st.sampled_from(
    [
        "https://a.example/b",
        "mailto:x",
        "javascript:x",
        "http://[::1]:80/",
        "x://",
        "http:a",
        "file:",
    ]
)

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)

GONE = object()

ODD = st.one_of(
    st.sampled_from([None, "", " ", 0, 1, True, False, 1.5, [], {}, [""], [None], ["a", 5], [[]]]),
    st.sampled_from(["a" * 63, "a" * 64, "a" * 253, "a" * 254, "a" * 500, "\U0001f680" * 500]),
    st.sampled_from(["a" * 501, "\U0001f680" * 501, "\ufeff", "\x1c", "\x85", "\u00a0", "\u2003"]),
    st.sampled_from(["A", "a/b", "a/b/c", "/a", "a/", "A/b", "a.", "-a", "a b", "a\n", "\u00e4"]),
    st.sampled_from(
        [".".join(["a" * 63] * 4) + "/a", ".".join(["a" * 63] * 3 + ["a" * 62]) + "/a"]
    ),
    st.sampled_from(["java--8", "a_b", ":", "::", "a:", ":a", "a:/b", "a:b/", "/", "b/c:d"]),
    st.sampled_from(
        ["Component", "component", "API", "Group", "AiResource", "Spaceship", "K" * 64]
    ),
    st.sampled_from(["backstage.io/v1alpha1", "backstage.io/v1beta1", "backstage.io/v1", "v1"]),
    st.sampled_from(["1.0", "Backstage.io/v1", "a/b/v1", "/v1", "a..b/v1", "mcp-server", "rule"]),
    st.sampled_from(["skill", "plugin", "marketplace", "required", "optional", "url:x", "http:x"]),
    st.sampled_from([{"a": "b"}, {"a": 1}, {"": "x"}, {"a/b/c": "x"}, {"__proto__": "x"}]),
    st.sampled_from([{"A/b": "x"}, {"a": "x y"}, {"a b": "x"}, {"\n": 1}, {"constructor": {}}]),
    st.sampled_from([[{"type": "x"}], [{"type": "", "url": "x"}], [{"url": "https://a"}], ["x"]]),
    st.text(max_size=3),
    URLS,
    _JSON,
    st.just(GONE),
)

_ARRAYS = st.lists(_TEXTS, max_size=2)
_REFERENCE_ARRAYS = st.lists(_REFERENCES, max_size=2)
_WHOLE_REFERENCE_ARRAYS = st.lists(_WHOLE_REFERENCES, max_size=2)
_PROFILES = st.fixed_dictionaries(
    {}, optional={"displayName": _TEXTS, "email": _TEXTS, "picture": _TEXTS, "more": _JSON}
)
_REMOTES = st.lists(st.fixed_dictionaries({"type": _TEXTS, "url": _TEXTS}), min_size=1, max_size=2)

# What is valid for a field of a spec; a text where nothing is said.
_FIELDS: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(["owner", "system", "subcomponentOf", "domain"], _REFERENCES),
    **dict.fromkeys(["subdomainOf", "parent"], _REFERENCES),
    **dict.fromkeys(["providesApis", "consumesApis", "children", "members"], _REFERENCE_ARRAYS),
    **dict.fromkeys(["memberOf", "skills", "plugins"], _REFERENCE_ARRAYS),
    **dict.fromkeys(["dependsOn", "dependencyOf"], _WHOLE_REFERENCE_ARRAYS),
    **dict.fromkeys(["targets", "disciplines", "categories", "agents"], _ARRAYS),
    "profile": _PROFILES,
    "presence": st.sampled_from(["required", "optional"]),
    "remotes": _REMOTES,
    "compatibility": _TEXTS | st.just("\U0001f680" * 500),
    "more": _JSON,
}

# Of each kind, or kind and type: the fields that are needed, and those that may be there.
_KINDS: dict[str, tuple[str, str]] = {
    "Component": (
        "type lifecycle owner",
        "system subcomponentOf providesApis consumesApis dependsOn dependencyOf more",
    ),
    "API": ("type lifecycle owner definition", "system more"),
    "API/mcp-server": ("lifecycle owner remotes", "system definition"),
    "Resource": ("type owner", "system dependsOn dependencyOf more"),
    "System": ("owner", "domain type more"),
    "Domain": ("owner", "subdomainOf type more"),
    "Group": ("type children", "parent members profile"),
    "User": ("memberOf", "profile"),
    "Location": ("", "type target targets presence"),
    "AiResource": ("type lifecycle owner", "system more"),
    "AiResource/skill": (
        "lifecycle owner",
        "system disciplines categories agents dependsOn allowedTools license compatibility",
    ),
    "AiResource/rule": ("lifecycle owner category rationale", "system disciplines"),
    "AiResource/plugin": ("lifecycle owner skills", "system version"),
    "AiResource/marketplace": ("lifecycle owner plugins", "system version"),
}

_LINKS = st.fixed_dictionaries(
    {"url": _GOOD_URLS},
    optional={"title": st.just("x"), "icon": st.just("y"), "type": _TEXTS, "more": _JSON},
)
_METADATA = st.fixed_dictionaries(
    {"name": _NAMES},
    optional={
        "namespace": _LABELS,
        "uid": _TEXTS,
        "etag": _TEXTS,
        "title": _TEXTS,
        "description": st.text(max_size=3),
        "labels": st.dictionaries(_KEYS, _NAMES | st.just(""), max_size=3),
        "annotations": st.dictionaries(_KEYS, st.text(max_size=3), max_size=3),
        "tags": st.lists(_TAGS, max_size=3),
        "links": st.lists(_LINKS, max_size=2),
        "more": _JSON,
    },
)


@st.composite
def entities(draw: st.DrawFn) -> dict[str, Any]:
    """Valid entities of every known kind but Template."""
    kind, _, type_ = draw(st.sampled_from(sorted(_KINDS))).partition("/")
    needed, optional = (fields.split() for fields in _KINDS[f"{kind}/{type_}".rstrip("/")])
    spec = draw(
        st.fixed_dictionaries(
            {field: _FIELDS.get(field, _TEXTS) for field in needed},
            optional={field: _FIELDS.get(field, _TEXTS) for field in optional},
        )
    )
    versions = ["backstage.io/v1alpha1", "backstage.io/v1beta1"]
    return {
        "apiVersion": draw(st.sampled_from(versions[: 1 if kind == "AiResource" else 2])),
        "kind": kind,
        "metadata": draw(_METADATA),
        "spec": {"type": type_, **spec} if type_ else spec,
    }


@st.composite
def changed(draw: st.DrawFn, entity: dict[str, Any]) -> Any:
    """The entity with something odd in one or two places."""
    chance = Random(draw(st.integers(0, 2**32)))  # drawn places would mostly be the first
    for _ in range(draw(st.integers(1, 2))):
        section = chance.choice(["", "metadata", "metadata", "spec", "spec"])
        places = [path for path in places_of(entity) if (path[0] if path[1:] else "") == section]
        if places:
            path = chance.choice(places)
            entity = put(entity, path, draw(ODD | _near(at(entity, path))))
    return entity


def _near(value: Any) -> st.SearchStrategy[Any]:
    if not isinstance(value, str):
        return st.nothing()
    odd = st.sampled_from(
        ["\n", " ", ".", "-", "_", "/", ":", "A", "9", "\u00e9", "\ufeff", "\x00"]
    )
    return odd.map(lambda more: value + more) | odd.map(lambda more: more + value)


# Members to put in, by the name of what they are put into.
_NEW: dict[str | int, tuple[str, ...]] = {
    "": ("more", "relations", "status", "attachments", "__proto__", "spec"),
    "metadata": ("uid", "etag", "namespace", "title", "description", "labels", "tags", "links"),
    "spec": (
        *("type", "system", "owner", "dependsOn", "dependencyOf", "definition", "presence"),
        *("targets", "profile", "remotes", "skills", "plugins", "compatibility", "constructor"),
    ),
    "labels": ("", "A/b", "a/b/c", "a b", "a.", "/a", "a/", "\n", "__proto__", "a" * 64),
    "annotations": (
        *("", "A/b", "__proto__", "a/b", "a/-", "a--b/c", "a" * 254 + "/a"),
        *("backstage.io/managed-by-location", "backstage.io/managed-by-origin-location"),
    ),
    "profile": ("displayName", "email", "picture"),
}


def places_of(value: Any, path: Path = ()) -> list[Path]:
    """The paths of everything in the value, and of some members that it does not have."""
    found: list[Path] = []
    if isinstance(value, dict):
        keys: list[str | int] = [*value, *(_NEW.get(path[-1] if path else "", ()))]
    else:
        keys = list(range(len(value) + 1)) if isinstance(value, list) else []
    for key in sorted(set(keys), key=str):
        below = (*path, key)
        found += [below, *places_of(at(value, (key,)), below)]
    return found


def at(value: Any, path: Path) -> Any:
    """What is at this path; None for nothing."""
    for step in path:
        if isinstance(value, dict):
            value = value.get(str(step))
        elif isinstance(value, list):
            value = value[step] if isinstance(step, int) and step < len(value) else None
    return value


def put(value: Any, path: Path, odd: Any) -> Any:
    """A copy that has something else at this path, or nothing when that is GONE."""
    value = copy.deepcopy(value)
    *above, last = path
    inside = at(value, tuple(above))
    if isinstance(inside, list):
        assert isinstance(last, int)
        inside[last : last + 1] = [] if odd is GONE else [odd]
    elif odd is GONE:
        inside.pop(last, None)
    else:
        inside[last] = odd
    return value
