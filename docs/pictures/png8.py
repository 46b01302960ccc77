"""A screenshot with at most 256 colours: the browser decodes it, NumPy chooses, zlib packs."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

DECODE = """async (data) => {
  const image = new Image();
  image.src = "data:image/png;base64," + data;
  await image.decode();
  const canvas = new OffscreenCanvas(image.width, image.height);
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0);
  const bytes = context.getImageData(0, 0, image.width, image.height).data;
  let text = "";
  for (let at = 0; at < bytes.length; at += 32768) {
    text += String.fromCharCode(...bytes.subarray(at, at + 32768));
  }
  return [image.width, image.height, btoa(text)];
}"""


def png8(context: Any, picture: bytes) -> bytes:
    """The PNG again, smaller. `context` is a browser context, in which an empty page is opened."""
    page = context.new_page()
    width, height, data = page.evaluate(DECODE, base64.b64encode(picture).decode("ascii"))
    page.close()
    pixels = np.frombuffer(base64.b64decode(data), np.uint8).reshape(-1, 4)[:, :3]
    palette, index = quantized(pixels)
    rows = np.zeros((height, width + 1), np.uint8)  # each row begins with its filter: none
    rows[:, 1:] = index.reshape(height, width)
    head = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    chunks = (
        (b"IHDR", head),
        (b"PLTE", palette.tobytes()),
        (b"IDAT", zlib.compress(rows.tobytes(), 9)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*chunk) for chunk in chunks)


def quantized(pixels: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """The 256 commonest colours, and for each pixel the nearest of them."""
    wide = pixels.astype(np.int64)
    packed = wide[:, 0] << 16 | wide[:, 1] << 8 | wide[:, 2]
    colours, which, count = np.unique(packed, return_inverse=True, return_counts=True)
    parts = np.stack([colours >> 16, colours >> 8 & 255, colours & 255], axis=1)
    chosen = parts[np.argsort(-count, kind="stable")[:256]]
    nearest = np.array([((chosen - part) ** 2).sum(axis=1).argmin() for part in parts], np.uint8)
    return chosen.astype(np.uint8), nearest[which.reshape(-1)]


def _chunk(tag: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + tag + data + struct.pack(">I", zlib.crc32(tag + data))
