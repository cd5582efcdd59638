"""Every command of the CLI as it is run here, each with the kinds of file that it writes, and what they are given."""

from __future__ import annotations

import gzip
import hashlib
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import dovetail as dt
from dovetail.cli import demo
from dovetail.engine.ahead import compile_parts, parts
from dovetail.io.archive import Log, catalog
from dovetail.kernels.shipped import GENERIC
from dovetail.studies.bench import enter, judge, read_scores, read_suite, with_scores, write_scores
from dovetail.studies.store import Store
from tests.studies.small import run, written

DUMP = "JobIDRaw|Submit|Start|End|State|ReqTRES|JobName|\n1|10|20|90|COMPLETED|cpu=4,node=1|run|\n"
TABLE = """JobID|User|Submit|Start|End|NCPUS|Timelimit|State|JobName
101|ann|2026-03-01T08:00:00|2026-03-01T08:00:10|2026-03-01T09:00:10|16|1-02:03:04|COMPLETED|fold
102|bob|2026-03-01T08:01:00|2026-03-01T09:00:10|2026-03-01T09:30:10|32|02:00:00|FAILED|flow
103|ann|2026-03-01T08:02:00|Unknown|Unknown|8|30:00|PENDING|later
"""
HAPPENED = "; MaxProcs: 4\n1 0 10 90 4 -1 -1 4 100 -1 1 1 1 -1 -1 -1 -1 -1\n"
CONF = "NodeName=c[1-4] CPUs=4 RealMemory=1000\nPartitionName=batch Nodes=ALL\n"
GIVEN = '[[nodes]]\nkind = "node"\ncount = 2\ncores = 4\n'
SITE = 'name = "here"\nbusy_w = 9.5\nidle_w = 3.0\ntariff = 0.02\n[price]\nconstant = 90\n'
STUDY = """name = "small"
policies = ["easy", "list-saf"]
[[traces]]
name = "made"
generate = {jobs = 40, processors = 8, load = 0.9}
"""
MINE = """import dovetail as dt
class Mine:
    def decide(self, state):
        return dt.policy("easy").decide(state)
"""
SUITE = """name = "small"
estimates = ["limit"]
[budgets]
"1 s" = 1.0
[[case]]
name = "made"
log = "log.swf.gz"
begins_d = 0
days = 7
"""
LOG = "Small"
"""A log in the catalog, which an archive on this machine serves."""
TEXT = b"; MaxProcs: 4\n" + b"".join(b"%d %d 0 10 1 -1 -1 1 20 -1 1 1 1 -1 -1 -1 -1 -1\n" % (i, i) for i in range(9000))


@dataclass(frozen=True)
class Command:
    """One command line. What it says to standard output is a file too, on the same disk."""

    line: str
    cache: bool = False
    """Its cache is on the disk that fills."""
    own: bool = False
    """The same, with its kernels: so it needs a process of its own."""
    package: bool = False
    """So is Dovetail itself."""
    works: bool = False
    """It writes only what it can make again: it works all the same, and standard output is elsewhere."""
    missing: str = ""
    """A pattern of what it is not given: it is to make that."""


KERNEL = "cache/*/swf.*"
"""A kernel that is compiled within seconds."""
COMMANDS = (
    Command("replay log.swf.gz --policy easy --json"),
    Command("replay log.swf.gz --policy easy --policy mine.py:Mine --out new/schedules"),
    Command("replay log.swf.gz --out . --perfetto --energy site.toml --gaps"),
    Command("compare log.swf.gz easy list-saf --no-open --out page.html"),
    Command("report made.store --out page.html"),
    Command("history happened.swf --out page.html --csv new/tables"),
    Command("tune weeks.swf.gz --policy easy-sjbf --workers 1 --out page.html"),
    Command("whatif happened.swf --cluster given.toml --set nodes+=1 --phases 2 --workers 1"),
    Command("policies"),
    Command("check easy --cases 2"),
    Command("workload describe log.swf.gz"),
    Command("workload convert log.swf.gz out.parquet"),
    Command("workload convert log.swf.gz out.csv"),
    Command("workload convert log.swf.gz out.swf"),
    Command("workload convert log.swf.gz out.swf.gz"),
    Command("workload convert log.swf.gz out.swf.xz"),
    Command("workload convert log.swf.gz out.swf.zst"),
    Command("workload import jobs.txt --out out.parquet --anonymize --key key"),
    Command("workload import-slurm dump.txt --out out.parquet"),
    Command("cluster import-slurm slurm.conf --out out.toml"),
    Command("workload generate out.parquet --jobs 40"),
    Command("workload failures out.csv --cluster eurora"),
    Command(f"workload fetch {LOG}", cache=True),
    Command("study plan study.toml"),
    Command("study run study.toml --workers 1"),
    Command("study results made.store"),
    Command("predict evaluate log.swf.gz --estimate recent --policy easy"),
    Command("predict advise log.swf.gz --user 1"),
    Command("predict check recent --cases 2"),
    Command("deadline advise weeks.swf.gz --size 2 --limit 1h --weeks 2"),
    Command("demo new/demo --no-open"),
    Command("bench export new/cases --suite suite.toml"),
    Command("bench enter easy --out new/entries --suite suite.toml"),
    Command("bench judge entries/easy --ours --scores scores.csv --suite suite.toml"),
    Command("bench table known.csv --suite suite.toml"),
    Command("workload describe log.swf.gz --json", own=True, works=True, missing=KERNEL),
    Command("warm cp-af --workers 1", own=True, missing=KERNEL),
    Command("warm cp-af --workers 1 --all-users", own=True, package=True),
)


def give(folder: Path, archive: Path, commands: Sequence[Command]) -> None:
    """Make the files that commands are given, and those that the archive serves. What takes long only if it is used."""
    (folder / "tmp").mkdir(parents=True)
    texts = {
        "jobs.txt": TABLE,
        "dump.txt": DUMP,
        "slurm.conf": CONF,
        "happened.swf": HAPPENED,
        "site.toml": SITE,
        "given.toml": GIVEN,
        "given.slurm.json": '{"config": {}, "nodes": [], "partitions": []}',
        "mine.py": MINE,
        "key": "correct horse battery staple",
        "suite.toml": SUITE,
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    dt.write(dt.generate(60, 8, seed=1, load=0.9), folder / "log.swf.gz")
    dt.write(dt.generate(1_000, 128, seed=1, load=0.68, kind="batch"), folder / "weeks.swf.gz")
    _give_entry(folder)
    study = written(folder, STUDY)
    if any("made.store" in one.line for one in commands):
        run(study, Store(folder / "made.store"))
    if any(one.own for one in commands):
        _give_kernels(folder, {})
    if any(one.package for one in commands):
        _give_kernels(folder, GENERIC)
        package = folder / "package" / "dovetail"
        shutil.copytree(Path(dt.__file__).parent, package, ignore=shutil.ignore_patterns("compiled"))
    served = archive / small_log().directory
    served.mkdir(parents=True)
    (served / small_log().file).write_bytes(gzip.compress(TEXT, mtime=0))


def _give_entry(folder: Path) -> None:
    suite = read_suite(folder / "suite.toml")
    workloads = {case.name: suite.workload(case) for case in suite.cases}
    enter("easy", folder / "entries" / "easy", suite, workloads)
    scores = judge(folder / "entries" / "easy", suite, workloads)
    write_scores(with_scores(read_scores(folder / "known.csv"), scores), folder / "known.csv")


def small_log() -> Log:
    digest = hashlib.sha256(TEXT).hexdigest()
    return Log(LOG, "l_small", "small.swf.gz", "", "", 4, 9000, len(TEXT), digest, "nobody")


def make_small() -> None:
    """In this process: the catalog has the small log, and the demonstration fewer jobs."""
    catalog()[LOG] = small_log()
    demo._JOBS = 300


def _give_kernels(folder: Path, more: Mapping[str, str]) -> None:
    """Put the kernels that all policies share into a cache there; the one named needs no others."""
    for made in compile_parts(parts(["cp-af"]), 1, more):
        there = folder / "cache" / made.folder.name
        there.mkdir(parents=True, exist_ok=True)
        for name in made.files:
            shutil.copy(made.folder / name, there)
