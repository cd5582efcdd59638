"""The catalog of public logs, and how to get one: fetched once, checked, kept; or by hand, where its host wants that.

A log in SWF is known by the SHA-256 of its decompressed bytes, so a mirror that compressed it anew serves as well; any
other by that of the file as it comes.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import http.client
import os
import tomllib
import urllib.error
import urllib.parse
import urllib.request
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Final

from dovetail.cache import cache_home
from dovetail.errors import DovetailError, SettingError
from dovetail.files import beside, folder

ARCHIVE: Final = "https://www.cs.huji.ac.il/labs/parallel/workload"
"""Where most logs are; the environment variable DOVETAIL_ARCHIVE names a mirror with the same folders, for all."""
CITE: Final = (
    "D. G. Feitelson, D. Tsafrir, D. Krakov: Experience with using the Parallel Workloads Archive. Journal of Parallel"
    " and Distributed Computing 74(10), 2967-2982, 2014"
)
"""For the logs of that archive, beside thanks to those who gave them."""

_CHUNK = 1 << 16


class FetchError(DovetailError):
    """A log could not be had, or is not the one that the catalog knows."""


@dataclass(frozen=True)
class Log:
    """One public log. `jobs` counts its job lines and `processors` are the machine's; 0: not known to us. `bytes` and
    `sha256` are of the decompressed file for SWF, else of the file as it comes."""

    name: str
    directory: str
    file: str
    machine: str
    begins: str
    processors: int
    jobs: int
    bytes: int
    sha256: str
    acknowledge: str = ""
    terms: str = ""
    host: str = ARCHIVE
    form: str = "SWF"
    licence: str = ""
    cite: str = CITE
    by_hand: str = ""
    """What a person does to get it, where no program may, or where its hash is not known to us."""

    def address(self, base_url: str | None = None) -> str:
        """Where to download it: under `base_url`, else DOVETAIL_ARCHIVE, else its host."""
        base = base_url or os.environ.get("DOVETAIL_ARCHIVE") or self.host
        if urllib.parse.urlsplit(base).scheme not in ("http", "https"):
            raise SettingError(f"{base!r} is not the address of an archive: it begins with https:// or http://")
        return f"{base.rstrip('/')}/{self.directory}/{self.file}"

    @property
    def kept(self) -> str:
        """Where it is kept below the folder of logs. Files of other hosts have names such as `09.tsv.tar.gz`."""
        return self.file if self.host == ARCHIVE else f"{self.name}/{self.file}"

    def next_step(self, path: str | Path) -> str:
        """What to do with the file; empty for SWF, which every command reads."""
        if self.form == "SWF":
            return ""
        unpack = {".tar.gz": f"tar xf {path}", ".zip": f"unzip {path}"}
        first = next((how for suffix, how in unpack.items() if self.file.endswith(suffix)), "")
        import_it = f"dovetail workload import {'FILES' if first else path} -o {self.name}.parquet"
        return f"{first}, then {import_it}" if first else import_it


@functools.cache
def catalog() -> dict[str, Log]:
    """All logs by name."""
    text = resources.files("dovetail.io").joinpath("archive.toml").read_text(encoding="utf-8")
    logs = [Log(**entry) for entry in tomllib.loads(text)["log"]]
    return {log.name: log for log in logs}


def find(name: str) -> Log:
    """The log of this name, upper or lower case."""
    for log in catalog().values():
        if log.name.lower() == name.lower():
            return log
    raise SettingError(f"no log {name!r} in the catalog; there are {', '.join(catalog())}")


def fetch(
    name: str,
    *,
    base_url: str | None = None,
    cache: Path | None = None,
    progress: Callable[[int, int | None], None] | None = None,
    timeout_s: float = 30.0,
) -> Path:
    """The path of the compressed log: from the cache if it is there and right, else downloaded and checked.

    `progress` is called with the bytes received so far and the number expected (None if the server does not
    say). `timeout_s` is the longest wait for the connection and for each next piece.
    """
    log = find(name)
    if log.by_hand:
        told = log.next_step(log.file)
        raise FetchError(f"{log.name} is fetched by hand. {log.by_hand}{f' Then: {told}' if told else ''}")
    path = (cache or cache_home() / "logs") / log.kept
    if path.is_file() and _is_right(path, log):
        return path
    address = log.address(base_url)
    folder(path.parent)
    with beside(path) as new, new.open("xb") as into:
        received = 0
        for piece, expected in _download(address, log, timeout_s):
            into.write(piece)
            received += len(piece)
            if progress is not None:
                progress(received, expected)
    return path


class _Check:
    """Knows the hash of a log piece by piece, decompressed if it is SWF; never keeps more than one piece."""

    def __init__(self, log: Log) -> None:
        self._log, self._hash, self._bytes = log, hashlib.sha256(), 0
        self._gzip = zlib.decompressobj(wbits=31)
        self._packed = log.form == "SWF"

    def feed(self, piece: bytes) -> None:
        if not self._packed:
            self._hash.update(piece)
            self._bytes += len(piece)
            return
        while piece:
            if self._gzip.eof:  # a gzip file may be several, one after the other
                self._gzip = zlib.decompressobj(wbits=31)
            content = self._gzip.decompress(piece)
            piece = self._gzip.unused_data
            self._hash.update(content)
            self._bytes += len(content)
            if self._bytes > self._log.bytes:
                raise FetchError(f"it is longer than the {self._log.bytes:,} bytes that the catalog has for it")

    def finish(self) -> None:
        """Raises unless all that was fed is the log, whole."""
        if not (self._gzip.eof if self._packed else self._bytes >= self._log.bytes):
            raise FetchError(f"it ends early, after {self._bytes:,} of {self._log.bytes:,} bytes; try again")
        if self._hash.hexdigest() != self._log.sha256:
            raise FetchError(
                f"its SHA-256 is {self._hash.hexdigest()}, the catalog has {self._log.sha256}. It was "
                "damaged on the way or is another version of the log. Try again; if it stays so, download "
                "the log yourself and give the path of the file instead of the name"
            )


def _is_right(path: Path, log: Log) -> bool:
    check = _Check(log)
    try:
        with path.open("rb") as file:
            while piece := file.read(_CHUNK):
                check.feed(piece)
        check.finish()
    except (FetchError, zlib.error):
        return False
    return True


def _download(address: str, log: Log, timeout_s: float) -> Iterator[tuple[bytes, int | None]]:
    """The log in pieces, each with the bytes to expect in all, checked on the way. Every failure names the address and
    what to do."""
    check = _Check(log)
    received = 0
    request = urllib.request.Request(address, headers={"User-Agent": "dovetail"})  # noqa: S310 (Log.address)
    try:
        with contextlib.closing(_opener().open(request, timeout=timeout_s)) as response:
            length = response.headers.get("Content-Length", "")
            expected = int(length) if length.isascii() and length.isdigit() else None
            while piece := response.read(_CHUNK):
                received += len(piece)
                if received > log.bytes + _CHUNK:  # compressed, it can hardly be longer than its content
                    raise FetchError(f"it is longer than the {log.bytes:,} bytes that the catalog has for it")
                check.feed(piece)
                yield piece, expected
        check.finish()
    except FetchError as error:
        raise FetchError(f"{address}: {error}") from None
    except zlib.error as error:
        raise FetchError(f"{address}: it is not a gzip file ({error}); is it a page about an error?") from None
    except urllib.error.HTTPError as error:
        error.close()
        raise FetchError(f"{address}: {error.code} {error.reason}. {_MIRROR}") from None
    except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        raise FetchError(f"{address}: {str(reason) or type(reason).__name__}. {_MIRROR}") from None


_MIRROR: Final = "Try again, or name a mirror with DOVETAIL_ARCHIVE"


def _opener() -> urllib.request.OpenerDirector:
    """Opens http and https only, wherever a redirect may point."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPRedirectHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.UnknownHandler(),
    ):
        opener.add_handler(handler)
    return opener
