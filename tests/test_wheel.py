"""A wheel with compiled kernels, built and installed as users do: the first replay compiles nothing.

The kernels are those that the cache of the tests has for any processor; where it has none, building compiles them.
"""

from __future__ import annotations

import json
import os
import site
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("wheel")]
SBOM = "docs/dovetail.cdx.json"
REFUSED = "is not as it was shipped, so it is not loaded: it is compiled here."
LOG = "; MaxProcs: 8\n" + "".join(
    f"{i} {60 * i} -1 {100 + i * 37 % 500} {1 + i * 5 % 8} -1 -1 {1 + i * 5 % 8} 900 -1 1 1 1 -1 -1 -1 -1 -1\n"
    for i in range(1, 61)
)


@pytest.fixture(scope="module")
def venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel, and what it needs from that of the tests."""
    room = tmp_path_factory.mktemp("wheel")
    asked = {"HATCH_BUILD_HOOK_ENABLE_CUSTOM": "true", "DOVETAIL_WHEEL_POLICIES": "easy"}
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(room)]
    subprocess.run(build, cwd=ROOT, env=os.environ | asked, check=True, capture_output=True)
    (wheel,) = room.glob("*.whl")
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    assert f"-{tag}-{tag}-" in wheel.name
    there = room / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", there], check=True)
    (packages,) = there.glob("lib/*/site-packages")
    (packages / "beside.pth").write_text("\n".join(site.getsitepackages()), encoding="utf-8")
    install = [sys.executable, "-m", "pip", "--python", str(there / "bin" / "python"), "install", "-q"]
    subprocess.run([*install, "--no-deps", "--no-index", wheel], check=True, capture_output=True)
    return there


@pytest.fixture
def compiled(venv: Path) -> Path:
    """The folder of shipped kernels of the installed package."""
    (found,) = venv.glob("lib/*/site-packages/dovetail/kernels/compiled")
    return found


def _dovetail(venv: Path, room: Path, *words: str) -> tuple[str, str, list[str]]:
    """Both outputs of a command with an empty cache, and which kernels it compiled."""
    room.mkdir(exist_ok=True)
    (room / "log.swf").write_text(LOG)
    env = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA_", "PYTHON"))}
    env["DOVETAIL_CACHE"] = str(room / "cache")
    command = [str(venv / "bin" / "dovetail"), *words]
    done = subprocess.run(command, cwd=room, env=env, check=True, capture_output=True, text=True)
    return done.stdout, done.stderr, sorted(path.name.partition("-")[0] for path in room.rglob("cache/*/*.nbc"))


def _replay(venv: Path, room: Path) -> tuple[str, list[str], bytes]:
    _, err, made = _dovetail(venv, room, "replay", "log.swf", "--policy", "easy", "--out", "out", "--json")
    (schedule,) = room.glob("out/*.swf.gz")
    return err, made, schedule.read_bytes()


def test_the_first_replay_compiles_nothing(venv: Path, compiled: Path, tmp_path: Path) -> None:
    err, made, first = _replay(venv, tmp_path / "first")
    assert made == []
    assert err == ""
    # A kernel that was changed is refused, by name, and compiled: the schedule is the same.
    (kernel,) = compiled.glob("timeline.clear-*.nbc")
    good = kernel.read_bytes()
    kernel.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    try:
        err, made, again = _replay(venv, tmp_path / "changed")
    finally:
        kernel.write_bytes(good)
    assert err == f"The shipped kernel {kernel.name} {REFUSED}\n"
    assert made == ["timeline.clear"]
    assert again == first


def test_kernels_for_other_versions_are_not_used_and_that_is_said(venv: Path, compiled: Path, tmp_path: Path) -> None:
    manifest = compiled / "manifest.json"
    good = manifest.read_text()
    manifest.write_text(json.dumps(json.loads(good) | {"made": json.loads(good)["made"] | {"numba": "0.1"}}))
    try:
        _, err, made = _dovetail(venv, tmp_path, "workload", "describe", "log.swf")
    finally:
        manifest.write_text(good)
    assert made == ["swf.parse_lines"]
    first, second = err.splitlines()[:2]
    assert first.startswith("The shipped kernels are not used: numba was 0.1, here it is 0.")
    assert second == "Compiling the kernel parse_lines, once on this machine. It may take a minute."


def test_it_has_licence_notice_and_bill_of_materials(venv: Path) -> None:
    (about,) = venv.glob("lib/*/site-packages/dovetail_hpc-*.dist-info")
    for name, source in (
        ("licenses/LICENSE", "LICENSE"),
        ("licenses/NOTICE", "NOTICE"),
        ("sboms/dovetail.cdx.json", SBOM),
    ):
        assert (about / name).read_bytes() == (ROOT / source).read_bytes(), name
    assert "\nLicense-Expression: Apache-2.0\n" in (about / "METADATA").read_text(encoding="utf-8")


def test_nothing_shipped_names_where_it_was_built(compiled: Path) -> None:
    files = list(compiled.iterdir())
    assert len(files) > 10
    assert sum(path.stat().st_size for path in files) < 10e6
    for path in files:
        assert str(ROOT).encode() not in path.read_bytes(), path.name
