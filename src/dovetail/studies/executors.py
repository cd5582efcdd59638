"""Where a study runs: a pool on this machine, Dask, Slurm or Parsl. Each is a `concurrent.futures` executor."""

from __future__ import annotations

import multiprocessing
import os
import re
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from multiprocessing.connection import wait as wait_for
from pathlib import Path
from typing import Any, Final

from dovetail.errors import DovetailError, SettingError
from dovetail.names import in_file, load
from dovetail.process import cores
from dovetail.units import parse_duration

RETRIES: Final = 3
"""How often a cell is tried again after its worker died."""


class ExecutorError(DovetailError):
    """An executor could not be had, or its workers cannot do the work."""


@dataclass(frozen=True)
class Engine:
    """How to get an executor, and how to feed it."""

    open: Callable[[], AbstractContextManager[Executor]]
    workers: int
    batch_s: float
    """Cells are handed out together up to this much estimated CPU time."""
    batches: int
    """How many batches are handed out at most at one instant."""
    few: bool = False
    """A batch has a start-up of its own: about four for each worker are enough."""


def engine(on: str, workers: int | None, store: Path) -> Engine:
    """The engine that `--on` names: local, dask://HOST:PORT, slurm or slurm:partition=...,time=..., parsl or
    parsl:file.py:CONFIG"""
    if on == "local":
        count = workers or cores()
        return Engine(lambda: _local(count), count, 0.5, 2 * count)
    if on.startswith(("dask://", "tcp://", "tls://")):
        address = on.replace("dask://", "tcp://", 1)
        return Engine(lambda: _dask(address, store), workers or 1, 1.0, 10**9)
    if on == "slurm" or on.startswith("slurm:"):
        count, settings = workers or 8, _slurm_settings(on.partition(":")[2])
        return Engine(lambda: _slurm(count, settings, store), count, 30.0, 10**9, few=True)
    if on == "parsl" or on.startswith("parsl:"):
        count = workers or cores()
        return Engine(lambda: _parsl(on.partition(":")[2], count, store), count, 1.0, 10**9)
    raise SettingError(f"--on {on!r}: choose local, dask://HOST:PORT, slurm, slurm:partition=NAME,time=2h, or parsl")


@contextmanager
def _local(workers: int) -> Iterator[Executor]:
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), initializer=_begin)
    try:
        yield pool
    except BaseException:
        for child in multiprocessing.active_children():  # what is half done is done again another day
            child.terminate()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _begin() -> None:
    """In a new worker: leave Ctrl-C to the parent, and end when the parent does, even if it was killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    wait_for([sentinel])
    os._exit(1)


@contextmanager
def _dask(address: str, store: Path) -> Iterator[Executor]:
    try:
        from distributed import Client
    except ImportError as error:
        raise ExecutorError("--on dask:// needs the package `distributed`: pip install distributed") from error
    try:
        client = Client(address, timeout=10)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise ExecutorError(f"no Dask scheduler answers at {address}: {error}") from error
    with client:
        try:
            blind = [worker for worker, sees in client.run(_sees, str(store)).items() if not sees]
        except Exception as error:  # whatever a foreign Python says where Dovetail is missing or another version
            raise ExecutorError(f"the Dask workers cannot run Dovetail: {type(error).__name__}: {error}") from error
        if not client.nthreads():  # type: ignore[no-untyped-call]
            raise ExecutorError(f"the Dask scheduler at {address} has no workers: start some (dask worker {address})")
        if blind:
            raise ExecutorError(
                f"these Dask workers do not see {store}: {', '.join(blind)}; put the store on a file system they share"
            )
        yield client.get_executor(retries=RETRIES, pure=False)  # type: ignore[no-untyped-call]


def _sees(store: str) -> bool:
    return Path(store, "study.json").exists()


@contextmanager
def _parsl(config: str, workers: int, store: Path) -> Iterator[Executor]:
    """Parsl's own executor interface: by the configuration in a user's file, else processes on this machine."""
    try:
        from parsl.concurrent import ParslPoolExecutor
        from parsl.config import Config
        from parsl.executors import HighThroughputExecutor
        from parsl.providers import LocalProvider
    except ImportError as error:
        raise ExecutorError("--on parsl needs the package `parsl`: pip install parsl") from error
    if config:
        found = in_file(config)
        if found is None:
            raise SettingError(f"--on parsl:{config}: write parsl:file.py:NAME, a parsl.Config in a file of yours")
        made = load(*found)
        if not isinstance(made, Config):
            raise SettingError(f"--on parsl:{config}: {found[1]} is {type(made).__name__}, not a parsl.Config")
    else:
        here = LocalProvider(init_blocks=1, max_blocks=1)  # type: ignore[no-untyped-call]
        processes = HighThroughputExecutor("dovetail", here, max_workers_per_node=workers, address="127.0.0.1")
        made = Config([processes], run_dir=str(store / "parsl"), retries=RETRIES, initialize_logging=False)
    with ParslPoolExecutor(config=made) as executor:
        yield executor


def _slurm_settings(text: str) -> dict[str, Any]:
    """Settings for submitit from `partition=short,time=2h,mem=4`: time as a duration, mem in GB."""
    settings: dict[str, Any] = {"timeout_min": 60}
    for part in filter(None, text.split(",")):
        key, equals, value = part.partition("=")
        if not equals or not re.fullmatch(r"[a-z_]+", key) or not re.fullmatch(r"[\w.:@+-]+", value):
            raise SettingError(f"--on slurm: {part!r} is not a setting: write partition=NAME, time=2h, mem=4, ...")
        if key == "time":
            settings["timeout_min"] = max(1, parse_duration(value) // 60)
        elif key == "mem":
            settings["mem_gb"] = float(value)
        else:
            settings[f"slurm_{key}"] = value
    return settings


@contextmanager
def _slurm(workers: int, settings: dict[str, Any], store: Path) -> Iterator[Executor]:
    try:
        import submitit
    except ImportError as error:
        raise ExecutorError("--on slurm needs the package `submitit`: pip install submitit") from error
    if not shutil.which("sbatch"):
        raise ExecutorError("--on slurm needs Slurm's commands (sbatch, sacct) on this machine, and they are not here")
    inner = submitit.AutoExecutor(folder=store / "slurm" / "%j", cluster="slurm")
    inner.update_parameters(
        name="dovetail", cpus_per_task=1, tasks_per_node=1, nodes=1, slurm_array_parallelism=workers, **settings
    )
    executor = JobArrays(inner)
    try:
        yield executor
    finally:
        executor.shutdown(cancel_futures=True)


class JobArrays(Executor):
    """submitit's executor as a `concurrent.futures` one: what is submitted within a moment becomes one job array."""

    poll_s: Final = 0.5

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self._fresh: list[tuple[Future[Any], Any, tuple[Any, ...]]] = []
        self._jobs: dict[Future[Any], Any] = {}
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def submit(self, function: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        if kwargs or self._ended.is_set():
            raise RuntimeError("takes positional arguments only, and none after shutdown")
        future: Future[Any] = Future()
        with self._lock:
            self._fresh.append((future, function, args))
        return future

    def _watch(self) -> None:
        while not self._ended.wait(self.poll_s):
            with self._lock:
                fresh, self._fresh = self._fresh, []
            try:
                if fresh:
                    with self._inner.batch():
                        jobs = [self._inner.submit(function, *args) for _, function, args in fresh]
                    self._jobs |= {future: job for (future, _, _), job in zip(fresh, jobs, strict=True)}
            except Exception as error:  # sbatch refused: every waiting future says so
                for future, _, _ in fresh:
                    future.set_exception(ExecutorError(f"Slurm took no job: {error}"))
            for future, job in list(self._jobs.items()):
                self._settle(future, job)

    def _settle(self, future: Future[Any], job: Any) -> None:
        """Hand on how a job ended, if it has. Whatever goes wrong on the way is handed to the one that waits for it."""
        try:
            if not job.done():
                return
            future.set_result(job.result())
        except Exception as error:
            future.set_exception(error)
        del self._jobs[future]

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Submit nothing more; with `cancel_futures`, also take back every job that has not ended."""
        self._ended.set()
        if wait or cancel_futures:
            self._thread.join()  # an array that is being submitted is known when it returns
        if cancel_futures:
            for job in self._jobs.values():
                job.cancel(check=False)
