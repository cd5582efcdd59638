"""Fetching logs from a real server on this machine that serves right, wrong, cut, slow and missing files."""

from __future__ import annotations

import gzip
import hashlib
import threading
import time
import urllib.parse
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from dovetail.errors import SettingError
from dovetail.io import archive as module
from dovetail.io.archive import FetchError, Log, catalog, fetch, find
from tests.conftest import TRACES, needs_traces

TEXT = b"; MaxProcs: 4\n" + b"".join(b"%d %d 0 10 1 -1 -1 1 20 -1 1 1 1 -1 -1 -1 -1 -1\n" % (i, i) for i in range(9000))
ZIPPED = gzip.compress(TEXT)


def made(name: str, content: bytes = TEXT) -> Log:
    digest = hashlib.sha256(content).hexdigest()
    return Log(name, f"l_{name}", f"{name}.swf.gz", "none", "2000-01", 4, 9000, len(content), digest, "nobody")


class Archive:
    """What the server serves, and what was asked of it."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.asked: list[str] = []
        self.redirects: dict[str, str] = {}
        self.length: int | None = None
        self.pause_s = 0.0
        self.base = ""


@pytest.fixture
def archive(monkeypatch: pytest.MonkeyPatch) -> Iterator[Archive]:
    state = Archive()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.asked.append(self.path)
            if self.path in state.redirects:
                self.send_response(302)
                self.send_header("Location", state.redirects[self.path])
                self.end_headers()
                return
            if self.path not in state.files:
                self.send_error(404)
                return
            body = state.files[self.path]
            self.send_response(200)
            self.send_header("Content-Length", str(len(body) if state.length is None else state.length))
            self.end_headers()
            self.wfile.write(body[:1000])
            time.sleep(state.pause_s)
            self.wfile.write(body[1000:])

        def log_message(self, format: str, *args: object) -> None:
            pass

    logs = {name: made(name) for name in ("good", "other")}
    monkeypatch.setattr(module, "catalog", lambda: logs)
    monkeypatch.delenv("DOVETAIL_ARCHIVE", raising=False)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # clients that leave early are expected
    state.base = f"http://127.0.0.1:{server.server_port}/mirror"
    state.files["/mirror/l_good/good.swf.gz"] = ZIPPED
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield state
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_log_is_fetched_once_and_kept(archive: Archive, tmp_path: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    path = fetch("good", base_url=archive.base, cache=tmp_path, progress=lambda done, of: seen.append((done, of)))
    assert path == tmp_path / "good.swf.gz"
    assert path.read_bytes() == ZIPPED
    assert seen[-1] == (len(ZIPPED), len(ZIPPED))
    assert fetch("GOOD", base_url=archive.base, cache=tmp_path) == path
    assert archive.asked == ["/mirror/l_good/good.swf.gz"]
    assert [p.name for p in tmp_path.iterdir()] == ["good.swf.gz"]


def test_the_mirror_and_the_cache_come_from_the_environment(
    archive: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOVETAIL_ARCHIVE", archive.base + "/")
    monkeypatch.setenv("DOVETAIL_CACHE", str(tmp_path))
    assert fetch("good") == tmp_path / "logs" / "good.swf.gz"


def test_another_compression_of_the_same_log_is_right(archive: Archive, tmp_path: Path) -> None:
    anew = gzip.compress(TEXT[:5000], 1) + gzip.compress(TEXT[5000:], 9)
    archive.files["/mirror/l_good/good.swf.gz"] = anew
    assert fetch("good", base_url=archive.base, cache=tmp_path).read_bytes() == anew


@pytest.mark.parametrize("bad", [b"", b"not gzip", ZIPPED[:-9], gzip.compress(TEXT[:-1])], ids=len)
def test_a_damaged_file_in_the_cache_is_replaced(archive: Archive, tmp_path: Path, bad: bytes) -> None:
    (tmp_path / "good.swf.gz").write_bytes(bad)
    assert fetch("good", base_url=archive.base, cache=tmp_path).read_bytes() == ZIPPED
    assert len(archive.asked) == 1


def refused(archive: Archive, cache: Path, timeout_s: float = 5.0) -> str:
    """The message of a fetch that must fail and leave nothing behind."""
    with pytest.raises(FetchError) as error:
        fetch("good", base_url=archive.base, cache=cache, timeout_s=timeout_s)
    assert list(cache.iterdir()) == []
    assert f"{archive.base}/l_good/good.swf.gz" in str(error.value)
    return str(error.value)


def test_a_wrong_hash_names_both(archive: Archive, tmp_path: Path) -> None:
    other = TEXT.replace(b" 20 ", b" 21 ")
    archive.files["/mirror/l_good/good.swf.gz"] = gzip.compress(other)
    message = refused(archive, tmp_path)
    assert hashlib.sha256(other).hexdigest() in message
    assert hashlib.sha256(TEXT).hexdigest() in message
    assert "give the path" in message


def test_a_cut_file_is_refused(archive: Archive, tmp_path: Path) -> None:
    archive.files["/mirror/l_good/good.swf.gz"] = ZIPPED[: len(ZIPPED) // 2]
    assert "ends early" in refused(archive, tmp_path)


def test_a_connection_that_breaks_is_refused(archive: Archive, tmp_path: Path) -> None:
    archive.files["/mirror/l_good/good.swf.gz"] = ZIPPED[: len(ZIPPED) // 2]
    archive.length = len(ZIPPED)
    refused(archive, tmp_path)


def test_a_longer_log_is_refused_before_it_fills_the_disk(archive: Archive, tmp_path: Path) -> None:
    archive.files["/mirror/l_good/good.swf.gz"] = gzip.compress(bytes(50_000_000))
    assert "longer than" in refused(archive, tmp_path)


def test_endless_emptiness_is_refused(archive: Archive, tmp_path: Path) -> None:
    empty = gzip.compress(b"")
    archive.files["/mirror/l_good/good.swf.gz"] = empty * (2 * len(TEXT) // len(empty))
    assert "longer than" in refused(archive, tmp_path)


def test_a_page_instead_of_a_log_is_refused(archive: Archive, tmp_path: Path) -> None:
    archive.files["/mirror/l_good/good.swf.gz"] = b"<html>moved</html>"
    assert "not a gzip file" in refused(archive, tmp_path)


def test_a_server_that_falls_silent_times_out(archive: Archive, tmp_path: Path) -> None:
    archive.pause_s = 3.0
    began = time.monotonic()
    assert "timed out" in refused(archive, tmp_path, timeout_s=0.1)
    assert time.monotonic() - began < 2.9


def test_a_missing_file_says_404_and_how_to_name_a_mirror(archive: Archive, tmp_path: Path) -> None:
    del archive.files["/mirror/l_good/good.swf.gz"]
    message = refused(archive, tmp_path)
    assert "404" in message
    assert "DOVETAIL_ARCHIVE" in message


def test_nobody_at_home(archive: Archive, tmp_path: Path) -> None:
    with pytest.raises(FetchError, match="refused"):
        fetch("good", base_url="http://127.0.0.1:9", cache=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_redirects_are_followed_but_not_into_files(archive: Archive, tmp_path: Path) -> None:
    target = tmp_path / "secret.gz"
    target.write_bytes(ZIPPED)
    archive.redirects["/moved/l_good/good.swf.gz"] = "/mirror/l_good/good.swf.gz"
    archive.redirects["/evil/l_good/good.swf.gz"] = target.as_uri()
    there = archive.base.replace("/mirror", "/moved")
    assert fetch("good", base_url=there, cache=tmp_path / "a").read_bytes() == ZIPPED
    with pytest.raises(FetchError):
        fetch("good", base_url=archive.base.replace("/mirror", "/evil"), cache=tmp_path / "b")


@pytest.mark.parametrize("base", ["file:///etc", "ftp://host/x", "archive", "javascript:1"])
def test_only_web_addresses(base: str, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="https://"):
        fetch("KTH-SP2", base_url=base, cache=tmp_path)


def test_an_unknown_name_lists_the_names() -> None:
    with pytest.raises(SettingError, match="KTH-SP2, CTC-SP2, SDSC-SP2"):
        find("KTH")


def test_a_file_of_another_host_is_known_by_itself(archive: Archive, tmp_path: Path) -> None:
    """Not by what is packed in it; and kept in a folder of its own, as others have files of that name."""
    content = b"PAR1 and so on" * 500
    digest = hashlib.sha256(content).hexdigest()
    log = replace(
        made("table"), file="09.parquet", bytes=len(content), sha256=digest, form="Parquet", host=archive.base
    )
    module.catalog()["table"] = log
    archive.files["/mirror/l_table/09.parquet"] = content
    path = fetch("table", cache=tmp_path)
    assert path == tmp_path / "table" / "09.parquet"
    assert path.read_bytes() == content
    assert fetch("table", cache=tmp_path) == path
    assert len(archive.asked) == 1
    path.write_bytes(content[:-1])
    assert fetch("table", cache=tmp_path).read_bytes() == content
    assert log.next_step(path) == f"dovetail workload import {path} -o table.parquet"
    for wrong, told in ((content[:-1], "ends early"), (content + b"x", "SHA-256"), (content * 20, "longer than")):
        archive.files["/mirror/l_table/09.parquet"] = wrong
        with pytest.raises(FetchError, match=told):
            fetch("table", cache=tmp_path / told)


def test_each_host_is_asked_for_its_own(archive: Archive, tmp_path: Path) -> None:
    """Two servers, and a mirror that has all of both."""
    logs = module.catalog()
    for name in ("good", "other"):
        logs[name] = replace(logs[name], host=archive.base.replace("mirror", name))
        archive.files[f"/{name}/l_{name}/{name}.swf.gz"] = archive.files[f"/all/l_{name}/{name}.swf.gz"] = ZIPPED
    for name in ("good", "other"):
        fetch(name, cache=tmp_path / "own")
        fetch(name, base_url=archive.base.replace("mirror", "all"), cache=tmp_path / "all")
    assert archive.asked == [f"/{at}/l_{name}/{name}.swf.gz" for name in ("good", "other") for at in (name, "all")]


def test_what_is_fetched_by_hand_asks_no_host(archive: Archive, tmp_path: Path) -> None:
    module.catalog()["gated"] = replace(made("gated"), form="CSV", by_hand="See its page.")
    with pytest.raises(FetchError, match=r"gated is fetched by hand. See its page. Then: dovetail workload import"):
        fetch("gated", base_url=archive.base, cache=tmp_path)
    assert archive.asked == []


def test_the_entries_of_other_hosts_are_whole() -> None:
    others = [log for log in catalog().values() if log.host != module.ARCHIVE]
    assert len({log.host for log in others}) >= 4
    for log in others:
        assert log.licence, log.name
        assert len(log.cite) > 10, log.name
        assert log.by_hand or (len(log.sha256) == 64 and log.bytes), log.name
        assert urllib.parse.urlsplit(log.address()).scheme == "https"


def test_the_catalog_is_whole() -> None:
    logs = {name: log for name, log in catalog().items() if log.host == module.ARCHIVE}
    assert len(logs) == 13
    for log in logs.values():
        assert log.file.startswith(log.name)
        assert log.file.endswith(".swf.gz")
        assert log.directory.startswith("l_")
        assert len(log.sha256) == 64
        assert log.acknowledge
    assert logs["KTH-SP2"].address(None) == (
        "https://www.cs.huji.ac.il/labs/parallel/workload/l_kth_sp2/KTH-SP2-1996-2.swf.gz"
    )


@needs_traces
@pytest.mark.parametrize("name", ["KTH-SP2", "NASA-iPSC", "LLNL-Atlas", "UniLu-Gaia"])
def test_the_catalog_knows_the_files_of_the_archive(name: str) -> None:
    log = find(name)
    content = gzip.decompress((TRACES / "archive" / log.file).read_bytes())
    assert hashlib.sha256(content).hexdigest() == log.sha256
    assert len(content) == log.bytes
    lines = [line for line in content.splitlines() if line.strip()]
    jobs = [line for line in lines if not line.lstrip().startswith(b";")]
    assert len(jobs) == log.jobs
    assert any(b"MaxProcs: %d" % log.processors in line for line in lines)
    assert any(b"Acknowledge:" in line and log.acknowledge.encode() in line for line in lines)
