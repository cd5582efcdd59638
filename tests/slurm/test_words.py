"""What Slurm's programs write, as Slurm's programs read it."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import pytest

from dovetail.arrays import NEVER
from dovetail.io import node_list
from dovetail.slurm import words
from tests.slurm.real import VERSIONS, RealSlurm, needs_slurm

LIMITS = (
    "90", "1:30", "1:30:00", "1-2", "1-2:30", "1-2:30:15", "1-", "UNLIMITED", "infinite", "-1", "0:0:30", "0:90",
    "99:99:99", "1-25", "1-0:90", "00:01", "Unlimited", "007", "1:0", "0-1:00:01", "366-23:59:59",
)  # fmt: skip
NO_LIMITS = ("abc", "1:", ":1", "1.5", "1-2-3", "1-2:", " 5", "5m", "+5", "1:2:3:4", "--1", "1-:5")
LISTS = (
    "c[1-3,07],f1", "r[0-1]n[0-3]", "n[08-11]", "n[8-011]", "x[1,1]", "a,,b", "c[1-3],c[2-4]", "n[001-1]",
    "n[00-02,5]", "n[1-2]m[1-2]p[1-2]", "plain", "a-b.c_d", "n[99-101]", "n[0099-101]",
)  # fmt: skip
NO_LISTS = ("a[3-1]", "c[]", "c[-1]", "c[1-2-3]", "c[a]")
ENDINGS = ("n[1-2]-ib", "n[0-2]x", "r[1-2]n[3-4]-b")
"""Lists that 22.05 refuses."""


@pytest.mark.parametrize(
    ("text", "minutes"),
    [("90", 90), ("1:30", 2), ("1:30:00", 90), ("1-2", 1560), ("1-2:30:15", 1591), ("1-", 1440), ("infinite", -1)],
)
def test_limits(text: str, minutes: int) -> None:
    assert words.limit_minutes(text) == minutes


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("00:00:00", 0), ("1-02:03:04", 93784), ("03:04.567", 184), ("100-00:00:01", 8_640_001), ("INVALID", -1),
        ("", -1), ("26:01:02", 93662),
    ],
)  # fmt: skip
def test_durations(text: str, seconds: int) -> None:
    assert words.elapsed_s(text) == seconds


def test_instants() -> None:
    assert words.instant("1795033379") == 1_795_033_379
    assert [words.instant(text) for text in ("Unknown", "None", "", "N/A")] == [NEVER] * 4


def test_memory() -> None:
    assert words.memory_kib("4000M") == (4_096_000, "")
    assert words.memory_kib("1.50Gn") == (3 << 19, "n")
    assert words.memory_kib("2000c") == (2_048_000, "c")
    assert words.memory_kib("64K") == (64, "")
    assert words.memory_kib("0") == (0, "")


def test_resources() -> None:
    found = words.tres("billing=192,cpu=16,gres/gpu:h100=1,gres/gpu=3,mem=180G,node=1,license/a=2,energy=12K")
    assert found == {
        "billing": 192, "cpu": 16, "gres/gpu:h100": 1, "gres/gpu": 3, "mem": 180 << 20, "node": 1, "license/a": 2,
        "energy": 12 << 10,
    }  # fmt: skip
    assert words.devices(found) == {"h100": 1, "": 2}  # not four: typed ones stand in the untyped count as well
    assert words.devices({"gres/gpu:h100": 2}) == {"h100": 2}
    assert words.tres("") == {}


def test_states() -> None:
    assert words.state("CANCELLED by 1001") == words.State("CANCELLED", 1001)
    assert words.state("CANCELLED+") == words.state("CANCEL+") == words.state("CA") == words.State("CANCELLED")
    assert words.state("PENDING,REQUEUED") == words.State("PENDING", signs=("REQUEUED",))
    assert words.state("RESIZING").word == "RESIZING"
    assert words.state("OUT_OF_ME+").word == "OUT_OF_MEMORY"


def test_numbers_of_jobs() -> None:
    assert words.job_id("123") == words.JobId(123)
    assert words.job_id("123_4.batch") == words.JobId(123, task=4, step="batch")
    assert words.job_id("123+1.0") == words.JobId(123, part=1, step="0")
    assert words.job_id("123_[1-10%2]") == words.JobId(123, tasks="1-10%2")
    assert words.job_id("123_[1,3,5,...").tasks == "1,3,5,..."


def test_devices_of_a_node() -> None:
    text = "gpu:a100:4(S:0-1),gpu:v100:2,nic:1K,license,shard:no_consume:8"
    assert words.gres(text) == {"gres/gpu:a100": 4, "gres/gpu:v100": 2, "gres/nic": 1024, "gres/license": 1}
    assert words.gres("gpu:2,gpu:1") == {"gres/gpu": 3}
    assert words.gres("(null)") == words.gres("") == {}


def test_a_list_of_hosts_comes_back() -> None:
    draw = random.Random(3)
    for _ in range(2_000):
        ends = ["", f"{draw.randrange(13)}", f"{draw.randrange(120):0{draw.randrange(1, 4)}d}"]
        names = tuple(dict.fromkeys(draw.choice(["c", "n0", "gpu-", "x"]) + draw.choice(ends) for _ in range(9)))
        names = tuple(sorted(names)) if draw.random() < 0.5 else names
        assert node_list.hosts(node_list.host_list(names)) == names
    assert node_list.host_list(("c1", "c2", "c3", "c07", "f", "f1")) == "c[1-3,07],f,f1"


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (words.limit_minutes, "5m"), (words.limit_minutes, "1" * 40), (words.elapsed_s, "1-02"),
        (words.elapsed_s, "5"), (words.instant, "yesterday"), (words.instant, "2026-01-01T00:00:00"),
        (words.instant, "9" * 30), (words.memory_kib, "4 GB"), (words.memory_kib, "9" * 18 + "E"), (words.tres, "cpu"),
        (words.tres, "cpu=-1"), (words.tres, "=4"), (node_list.hosts, "c[1-99999999]"),
        (node_list.hosts, "a[1-999]b[1-9999]"), (node_list.hosts, "c[1"), (node_list.hosts, "x" * (1 << 21)),
        (words.state, "LOST"), (words.state, "CANCELLED by me"), (words.gres, "9:4"), (words.gres, "gpu:a:b:c:4"),
        (words.state, ""), (words.state, "RE+"), (words.job_id, "x"), (words.job_id, "1_2_3"), (words.job_id, "１"),
    ],
)  # fmt: skip
def test_what_is_no_word_is_refused(read: Callable[[str], object], text: str) -> None:
    with pytest.raises(ValueError, match=r"is no |characters|more than|at most"):
        read(text)


@pytest.mark.parametrize(
    "read", [node_list.hosts, words.tres, words.gres, words.job_id, words.limit_minutes, words.state, words.memory_kib]
)
def test_random_texts_give_a_value_or_a_refusal(read: Callable[[str], object]) -> None:
    draw = random.Random(1)
    for _ in range(5_000):
        text = "".join(draw.choice("0123456789[]-,:=.%+_aMGcn/ |\n\x00é") for _ in range(draw.randrange(30)))
        try:
            read(text)
        except ValueError:
            continue


@needs_slurm
@pytest.mark.parametrize("version", VERSIONS)
def test_limits_are_what_slurm_makes_of_them(version: str, slurm: Callable[[str], RealSlurm]) -> None:
    real = slurm(version)
    shown = {}
    for text in (*LIMITS, *NO_LIMITS):
        number = real.run(
            "sbatch", "-H", "--parsable", "-o", "/dev/null", f"--time={text}", "--wrap", "true", check=False
        )
        if number.strip():
            told = real.run("scontrol", "show", "job", number.strip())
            shown[text] = re.findall(r"TimeLimit=(\S+)", told)[0]
            real.run("scancel", number.strip())
    assert set(shown) == set(LIMITS)
    for text, told in shown.items():
        minutes = words.limit_minutes(text)
        assert (words.limit_minutes(told) if told == "UNLIMITED" else words.elapsed_s(told) // 60) == minutes, text
    for text in NO_LIMITS:
        with pytest.raises(ValueError, match="is no limit"):
            words.limit_minutes(text)


@needs_slurm
@pytest.mark.parametrize("version", VERSIONS)
def test_hosts_are_what_slurm_makes_of_them(version: str, slurm: Callable[[str], RealSlurm]) -> None:
    real, draw = slurm(version), random.Random(2)
    for text in (*LISTS, *(_list(draw) for _ in range(40)), *(ENDINGS if version != "22.05" else ())):
        told = real.run("scontrol", "show", "hostnames", text).split()
        mine = list(node_list.hosts(text))
        assert (mine == told) if text.count("[") < 3 else (sorted(mine) == sorted(told)), text
    for text in NO_LISTS:
        assert not real.run("scontrol", "show", "hostnames", text, check=False).split(), text
        with pytest.raises(ValueError, match="is no "):
            node_list.hosts(text)


def _list(draw: random.Random) -> str:
    """A list of hosts as Slurm writes them."""
    pieces = []
    for _ in range(draw.randrange(1, 4)):
        piece = draw.choice("abn")
        for _ in range(draw.randrange(3)):
            first, wide = draw.randrange(120), draw.randrange(4)
            ends = [f"{first:0{wide}d}-{first + draw.randrange(1, 9):0{wide}d}", f"{draw.randrange(999):03d}"]
            piece += f"[{','.join(ends[: draw.randrange(1, 3)])}]" + draw.choice(("", "x"))
        pieces.append(piece.removesuffix("x"))
    return ",".join(pieces)
