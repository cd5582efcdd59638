"""Compiled code is kept on disk, and an edit in any kernel file is noticed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import llvmlite.binding
import numba
import pytest

from dovetail.kernels.compile import _processor, source_hash
from tests.conftest import ROOT

CALLER = '''
"""A kernel that calls one in another file."""
from dovetail.kernels.compile import jit
from dovetail.kernels.heap import push


@jit
def length_after_push(at, job):
    return push(at, job, 0, 5, 6)
'''

SCRIPT = """
import numpy as np
import dovetail
from dovetail.kernels.compile import CACHE
from dovetail.kernels.caller import length_after_push
before = any(CACHE.rglob("*length_after_push-*.nbc"))
result = length_after_push(np.zeros(3, np.int64), np.zeros(3, np.int64))
hits = sum(length_after_push.stats.cache_hits.values())
print(dovetail.__file__, CACHE.name, int(before), hits, result, len(list(CACHE.rglob("*.nbc"))))
"""


def _run(tree: Path) -> tuple[str, bool, int, int, int]:
    """The cache's name, whether it knew the kernel before, hits, what the kernel returned, files there."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA_")}
    env |= {"PYTHONPATH": str(tree), "DOVETAIL_CACHE": str(tree / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(command, env=env, cwd=tree, check=True, capture_output=True, text=True)
    where, cache, before, hits, result, files = done.stdout.split()
    assert Path(where).is_relative_to(tree)
    return cache, before == "1", int(hits), int(result), int(files)


@pytest.mark.slow
def test_an_edit_in_a_called_file_is_noticed(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "src" / "dovetail", tmp_path / "dovetail", ignore=shutil.ignore_patterns("__pycache__"))
    kernels = tmp_path / "dovetail" / "kernels"
    (kernels / "caller.py").write_text(CALLER)
    first = _run(tmp_path)
    assert first[1:] == (False, 0, 1, 1)

    assert _run(tmp_path) == (first[0], True, 1, 1, 1)  # from the cache: nothing was compiled

    heap = kernels / "heap.py"
    text = heap.read_text()
    stamp = heap.stat()
    changed = text.replace("return n + 1\n", "return n + 7\n")
    assert changed != text
    heap.write_text(changed)
    os.utime(heap, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))  # an edit shows in the bytes, whatever the clock says
    edited = _run(tmp_path)
    assert edited[0] != first[0]
    assert edited[1:] == (False, 0, 7, 1)


def test_so_is_one_in_a_sub_folder(tmp_path: Path) -> None:
    room = tmp_path / "kernels"
    (room / "passes" / "deep").mkdir(parents=True)
    (tmp_path / "arrays.py").touch()
    seen = {source_hash(room)}
    for name, text in (
        ("../arrays.py", "1"),
        ("a.py", "1"),
        ("passes/a.py", "1"),
        ("passes/deep/a.py", "1"),
        ("passes/deep/a.py", "2"),
    ):
        (room / name).write_text(text)
        seen.add(source_hash(room))
    assert len(seen) == 6
    (room / "passes" / "a.py").rename(room / "passes" / "b.py")
    assert source_hash(room) not in seen


def test_kernels_for_another_processor_are_kept_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """The features that Numba is told to compile for, or else those of this machine."""
    monkeypatch.setattr(numba.config, "CPU_FEATURES", "+one,-other")
    assert "+one,-other" in _processor()
    monkeypatch.setattr(numba.config, "CPU_FEATURES", None)
    assert llvmlite.binding.get_host_cpu_features().flatten() in _processor()
