"""Pictures of pages, made small: of each the colours that are most frequent, as PNG."""

import base64
import struct
import zlib
from typing import Any, Final

from playwright.async_api import Page

_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
_COLOURS: Final = 64
# Colours that are nearer to each other are one.
_NEAR: Final = 160
# In a browser, which can read pictures: the palette, and for each pixel its place in it.
_REDUCE: Final = """async ([text, most, near]) => {
  const blob = await (await fetch(`data:image/png;base64,${text}`)).blob();
  const {width, height, ...bitmap} = await createImageBitmap(blob).then((image) => ({
    width: image.width, height: image.height, image}));
  const context = new OffscreenCanvas(width, height).getContext("2d");
  context.drawImage(bitmap.image, 0, 0);
  const pixels = new Uint32Array(context.getImageData(0, 0, width, height).data.buffer);
  const counts = new Map();
  for (const pixel of pixels) counts.set(pixel, (counts.get(pixel) ?? 0) + 1);
  const parts = (pixel) => [pixel & 255, (pixel >> 8) & 255, (pixel >> 16) & 255];
  const known = [];
  const nearest = (pixel) => {
    const [red, green, blue] = parts(pixel);
    let [best, least] = [0, Infinity];
    known.forEach(([r, g, b], place) => {
      const far = 2 * (r - red) ** 2 + 4 * (g - green) ** 2 + (b - blue) ** 2;
      if (far < least) [best, least] = [place, far];
    });
    return [best, least];
  };
  for (const [pixel] of [...counts].sort((a, b) => b[1] - a[1])) {
    if (known.length < most && nearest(pixel)[1] > near) known.push(parts(pixel));
  }
  const places = new Map([...counts.keys()].map((pixel) => [pixel, nearest(pixel)[0]]));
  let found = "";
  for (const pixel of pixels) found += String.fromCharCode(places.get(pixel));
  return {width, height, palette: known.flat(), places: btoa(found)};
}"""


async def small(picture: bytes, blank: Page) -> bytes:
    """The picture in few colours; `blank` is a page without a policy of its own."""
    found = await blank.evaluate(_REDUCE, [base64.b64encode(picture).decode(), _COLOURS, _NEAR])
    return _written(found)


def _written(found: dict[str, Any]) -> bytes:
    width, height = found["width"], found["height"]
    places = base64.b64decode(found["places"])
    rows = b"".join(b"\0" + places[start : start + width] for start in range(0, len(places), width))
    return _SIGNATURE + b"".join(
        (
            _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
            _chunk(b"PLTE", bytes(found["palette"])),
            _chunk(b"IDAT", zlib.compress(rows, 9)),
            _chunk(b"IEND", b""),
        )
    )


def _chunk(name: bytes, content: bytes) -> bytes:
    check = zlib.crc32(name + content)
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", check)
