"""Bytes in and out: unpacked as their first bytes ask, counted and capped; packed as the name of a file says."""

from __future__ import annotations

import gzip
import io
import lzma
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, cast

import zstandard

from dovetail.errors import InputError
from dovetail.files import beside

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

BLOCK: Final = 1 << 20
MOST_BYTES: Final = 64 << 30
"""Default cap on the bytes that a file may unpack to."""
MOST_RATIO: Final = 1_000
FREE_BYTES: Final = 16 << 20
"""A file may unpack to MOST_RATIO times its size plus this; beyond, it is taken for a bomb."""
MOST_MEMORY: Final = 256 << 20
"""Memory that an xz or zstd file may ask its reader for. The tools' own largest presets stay below."""
ZSTD_SLICE: Final = 1 << 10
"""zstandard unpacks all it is given at once: 4 bytes can become 128 KiB, so it is given little."""


class _Counted(io.RawIOBase):
    """A raw stream that counts the bytes read from another."""

    def __init__(self, inner: IO[bytes]) -> None:
        self.inner, self.count = inner, 0

    def readable(self) -> bool:
        return True

    def readinto(self, target: WriteableBuffer) -> int:
        many: int = self.inner.readinto(target)  # type: ignore[attr-defined]
        self.count += many
        return many


def _plain(raw: IO[bytes]) -> Iterator[bytes]:
    while block := raw.read(BLOCK):
        yield block


def _gzip(raw: IO[bytes]) -> Iterator[bytes]:
    with gzip.GzipFile(fileobj=raw) as stream:
        while block := stream.read(BLOCK):
            yield block


def _xz(raw: IO[bytes]) -> Iterator[bytes]:
    data = raw.read(BLOCK)
    while data:
        unpack = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MOST_MEMORY)
        while not unpack.eof:
            yield unpack.decompress(data, BLOCK)
            data = b""
            if unpack.needs_input and not (data := raw.read(BLOCK)):
                raise EOFError("the data end too early")
        data = unpack.unused_data.lstrip(b"\0") or raw.read(BLOCK)


def _zstd(raw: IO[bytes]) -> Iterator[bytes]:
    data = raw.read(ZSTD_SLICE)
    while data:
        unpack = zstandard.ZstdDecompressor(max_window_size=MOST_MEMORY).decompressobj()
        while True:
            yield unpack.decompress(data)
            if unpack.eof:
                break
            if not (data := raw.read(ZSTD_SLICE)):
                raise EOFError("the data end too early")
        data = unpack.unused_data or raw.read(ZSTD_SLICE)


_KINDS: Final = (
    (b"\x1f\x8b", "gzip", _gzip),
    (b"\xfd7zXZ\0", "xz", _xz),
    (b"\x28\xb5\x2f\xfd", "zstd", _zstd),
)


def unpacked(raw: IO[bytes], source: str, most: int = MOST_BYTES) -> Iterator[bytes]:
    """The bytes of a stream in blocks, unpacked from gzip, xz or zstd where its first bytes say so.

    Never holds more than a few blocks. Raises InputError at the caps and for damaged or cut-off data.
    """
    counted = _Counted(raw)
    total = 0
    kind = ""
    try:
        buffered = cast("IO[bytes]", io.BufferedReader(counted, BLOCK))
        head = cast(io.BufferedReader, buffered).peek(8)
        kind, opened = next(((k, f) for magic, k, f in _KINDS if head.startswith(magic)), ("", _plain))
        for block in opened(buffered):
            total += len(block)
            if total > most:
                raise InputError(source, 0, f"more than {most:,} bytes unpacked: raise the cap if that is meant")
            if kind and total > MOST_RATIO * counted.count + FREE_BYTES:
                rule = f"unpacks to more than {MOST_RATIO:,} times its size, as a decompression bomb does"
                raise InputError(source, 0, f"{rule}: unpack it yourself if you trust it")
            yield block
    except (EOFError, OSError, zlib.error, lzma.LZMAError, zstandard.ZstdError) as error:
        if not kind:
            raise InputError(source, 0, f"cannot be read: {error}") from error
        rule = f"damaged or cut-off {kind} data ({error}): fetch the file again"
        raise InputError(source, 0, rule) from error


def polars_failures() -> tuple[type[BaseException], ...]:
    """What polars raises where bytes are not what they should be. On some damaged Parquet it panics, which is no
    Exception."""
    import polars as pl

    return OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException


def regular_file(path: Path) -> Path:
    """The path, if it leads to a regular file; else InputError. A pipe or device could block for ever."""
    try:
        if path.is_file():
            return path
        if path.is_dir():
            raise InputError(path, 0, "a directory, not a file: name one file in it")
        if path.exists():
            raise InputError(path, 0, "a pipe, socket or device, not a regular file: copy it to one first")
    except OSError as error:
        raise InputError(path, 0, f"cannot be read: {error.strerror}") from error
    raise InputError(path, 0, "no such file")


@contextmanager
def packed(path: Path) -> Iterator[IO[bytes]]:
    """A stream to write a file through, packed by the suffix (.gz, .xz, .zst); the same bytes each time."""
    with beside(path) as new, new.open("xb") as raw:
        if path.suffix == ".gz":
            with gzip.GzipFile("", "wb", 6, raw, mtime=0) as stream:
                yield cast("IO[bytes]", stream)
        elif path.suffix == ".xz":
            with lzma.LZMAFile(raw, "wb", preset=2) as stream:
                yield cast("IO[bytes]", stream)
        elif path.suffix == ".zst":
            with zstandard.ZstdCompressor(level=10).stream_writer(raw, closefd=False) as stream:
                yield cast("IO[bytes]", stream)
        else:
            yield raw
