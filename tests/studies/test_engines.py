"""The same study through a real Dask cluster, a real Slurm and a real Parsl: the same store."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dovetail.errors import SettingError
from dovetail.studies.executors import ExecutorError, JobArrays, engine
from dovetail.studies.store import Store
from tests.conftest import ROOT, needs
from tests.studies.small import run, written

CLUSTER = Path(os.environ.get("DOVETAIL_SLURM_CLUSTER", ROOT.parent / "shared" / "slurm" / "cluster"))
DOVETAIL = Path(sys.executable).with_name("dovetail")

needs_slurm = needs("slurm", CLUSTER.is_file() and os.geteuid() == 0)

pytestmark = pytest.mark.xdist_group("slurm")  # not beside the clusters of other tests


@contextmanager
def dask_process(*arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """One of Dask's own programs, in a session of its own so that all of it can be killed."""
    command = [sys.executable, "-m", "distributed.cli." + arguments[0], *arguments[1:]]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True) as it:
        try:
            yield it
        finally:
            if it.poll() is None:
                os.killpg(it.pid, signal.SIGKILL)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


@pytest.mark.slow
def test_dask_with_a_worker_killed_on_the_way(tmp_path: Path, undisturbed: str) -> None:
    port = free_port()
    scheduler = ("dask_scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard", "--no-jupyter")
    worker = ("dask_worker", f"tcp://127.0.0.1:{port}", "--nthreads", "1", "--no-dashboard", "--no-nanny")
    path, store = written(tmp_path), Store(tmp_path / "study.store")
    scratch = ("--local-directory", str(tmp_path))
    with dask_process(*scheduler), dask_process(*worker, *scratch), dask_process(*worker, *scratch) as doomed:
        wait_for_workers(f"tcp://127.0.0.1:{port}", 2)
        command = [str(DOVETAIL), "study", "run", str(path), "--json", "--on", f"dask://127.0.0.1:{port}"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as study:
            while study.poll() is None and len(list(store.path.glob("runs/*.parquet"))) <= 3:
                time.sleep(0.01)
            assert study.poll() is None, study.communicate()
            os.killpg(doomed.pid, signal.SIGKILL)
            out, error = study.communicate(timeout=120)
    result = json.loads(out)
    assert result["failed"] == {}, error
    assert result["ran"] == result["cells"]
    assert result["sha256"] == store.digest() == undisturbed


@pytest.mark.slow
def test_parsl(tmp_path: Path, undisturbed: str) -> None:
    """By the configuration of a file, which says where its workers run."""
    path, store = written(tmp_path), Store(tmp_path / "study.store")
    (tmp_path / "mine.py").write_text(PARSL.format(folder=str(tmp_path / "runs")))
    command = [str(DOVETAIL), "study", "run", str(path), "--json", "--on", f"parsl:{tmp_path / 'mine.py'}:CONFIG"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["failed"] == {}
    assert result["ran"] == result["cells"]
    assert result["sha256"] == store.digest() == undisturbed


PARSL = """from parsl.config import Config
from parsl.executors import HighThroughputExecutor
from parsl.providers import LocalProvider
provider = LocalProvider(init_blocks=1, max_blocks=1)
executor = HighThroughputExecutor("here", provider, max_workers_per_node=2, address="127.0.0.1")
CONFIG = Config([executor], run_dir={folder!r}, initialize_logging=False)
OTHER = 3
"""


@pytest.mark.parametrize(
    ("name", "told"), [("mine.py", "write parsl:file.py:NAME"), ("mine.py:OTHER", "is int, not a parsl.Config")]
)
def test_what_is_no_configuration_of_parsl_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(PARSL.format(folder="runs"))
    with pytest.raises(SettingError, match=told), engine(f"parsl:{name}", 1, tmp_path).open():
        pass


def wait_for_workers(address: str, count: int) -> None:
    from distributed import Client

    with Client(address, timeout=30) as client:  # type: ignore[no-untyped-call]
        if count:
            client.wait_for_workers(count, timeout=60)


@pytest.mark.slow
def test_no_dask_there(tmp_path: Path) -> None:
    store = Store(tmp_path / "study.store")
    with pytest.raises(ExecutorError, match=r"no Dask scheduler answers at tcp:"):
        run(written(tmp_path), store, on=f"dask://127.0.0.1:{free_port()}")


@pytest.mark.slow
def test_a_dask_scheduler_without_workers_or_killed_is_said(tmp_path: Path) -> None:
    port = free_port()
    scheduler = ("dask_scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard", "--no-jupyter")
    worker = ("dask_worker", f"tcp://127.0.0.1:{port}", "--nthreads", "1", "--no-dashboard", "--no-nanny")
    path, store = written(tmp_path), Store(tmp_path / "study.store")
    with dask_process(*scheduler) as doomed:
        wait_for_workers(f"tcp://127.0.0.1:{port}", 0)  # only for the scheduler itself
        with pytest.raises(ExecutorError, match="has no workers"):
            run(path, store, on=f"dask://127.0.0.1:{port}")
        with dask_process(*worker, "--local-directory", str(tmp_path)):
            wait_for_workers(f"tcp://127.0.0.1:{port}", 1)
            command = [str(DOVETAIL), "study", "run", str(path), "--on", f"dask://127.0.0.1:{port}"]
            with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as study:
                while study.poll() is None and not store.names():
                    time.sleep(0.01)
                os.killpg(doomed.pid, signal.SIGKILL)
                _, error = study.communicate(timeout=60)
    assert study.returncode == 2
    assert "is its scheduler still there?" in error
    assert store.names()  # what was finished is kept


class Vanishing:
    """A job of a Slurm that answers nonsense when asked about it."""

    def __init__(self) -> None:
        self.cancelled = False

    def done(self) -> bool:
        raise OSError("sacct says what nobody understands")

    def cancel(self, check: bool = True) -> None:
        self.cancelled = True


class Unhappy:
    """An executor like submitit's, for what a real Slurm cannot be made to do."""

    def __init__(self, job: object, delay_s: float = 0) -> None:
        self.job, self.delay_s = job, delay_s

    @contextmanager
    def batch(self) -> Iterator[None]:
        time.sleep(self.delay_s)
        yield

    def submit(self, *_: object) -> object:
        return self.job


def test_a_slurm_that_answers_nonsense_ends_in_an_error_and_not_in_waiting() -> None:
    executor = JobArrays(Unhappy(Vanishing()))
    future = executor.submit(print)
    with pytest.raises(OSError, match="nobody understands"):
        future.result(timeout=10)
    executor.shutdown()


@pytest.mark.slow
def test_an_array_that_is_being_submitted_is_taken_back_too() -> None:
    class Running(Vanishing):
        def done(self) -> bool:
            return False

    job = Running()
    executor = JobArrays(Unhappy(job, delay_s=1.5))
    executor.submit(print)
    time.sleep(1.0)  # now it is on its way
    executor.shutdown(cancel_futures=True)
    assert job.cancelled


@pytest.fixture(scope="module")
def slurm() -> Iterator[dict[str, str]]:
    """The environment of a client of a real Slurm of four nodes."""
    folder = Path(f"/tmp/dovetail-slurm-{os.getpid()}")  # noqa: S108 - Slurm's users must reach it
    quiet = {**os.environ, "REST": "0"}
    try:
        subprocess.run([str(CLUSTER), "start", str(folder), "4"], env=quiet, check=True, timeout=240)
        lines = subprocess.run([str(CLUSTER), "env", str(folder)], check=True, capture_output=True, text=True).stdout
        pairs = (word.partition("=") for line in lines.splitlines() for word in shlex.split(line)[1:])
        yield {**os.environ, **{key: value for key, _, value in pairs}}
    finally:
        subprocess.run([str(CLUSTER), "wipe", str(folder)], check=False, timeout=120)


@needs_slurm
def test_slurm_with_job_arrays(tmp_path: Path, undisturbed: str, slurm: dict[str, str]) -> None:
    path, store = written(tmp_path), Store(tmp_path / "study.store")
    command = [str(DOVETAIL), "study", "run", str(path), "--json", "--on", "slurm:time=10m", "--workers", "2"]
    done = subprocess.run(command, env=slurm, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["failed"] == {}
    assert result["sha256"] == store.digest() == undisturbed
    ran = subprocess.run(
        ["sacct", "-nXP", "-o", "JobName,State"], env=slurm, capture_output=True, text=True, check=True
    ).stdout.split()
    assert ran  # Slurm did it, in more than one task of one array
    assert len([line for line in ran if line.startswith("dovetail|")]) > 1


@pytest.mark.parametrize(
    ("on", "says"),
    [
        ("cloud", "choose local, dask://HOST:PORT, slurm"),
        ("slurm:partition", "'partition' is not a setting"),
        ("slurm:partition=a b", "is not a setting"),
        ("slurm:partition=$(id)", "is not a setting"),
    ],
)
def test_unknown_engines_are_refused(on: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(SettingError) as caught:
        engine(on, None, tmp_path)
    assert says in str(caught.value)


def test_without_slurm_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    chosen = engine("slurm", None, tmp_path)
    with pytest.raises(ExecutorError, match="needs Slurm's commands"), chosen.open():
        pass
