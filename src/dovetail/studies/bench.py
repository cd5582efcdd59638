"""A benchmark that others can enter: frozen cases, schedules from any program, the referee's verdict, one table.

An entry is a folder: `entry.toml` says who and how, and for each case and estimate there is a schedule,
`CASE.ESTIMATE.swf` (packed or not, its wait column the simulated wait) or `.parquet` (columns id, and start or wait).
Starts are joined to the frozen jobs by id, the referee checks them, and the metrics are computed here. What starts do
not show is declared: the budget of a pass, and that nothing was used but the estimate.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dovetail.arrays import Ints
from dovetail.errors import InputError, SettingError
from dovetail.files import beside, folder
from dovetail.io.archive import fetch, find
from dovetail.io.clusters import as_toml, read_toml
from dovetail.io.read import read_workload
from dovetail.io.schedules import write_schedule_swf
from dovetail.io.streams import polars_failures, regular_file, unpacked
from dovetail.metrics import summarize
from dovetail.model.cluster import Cluster
from dovetail.model.schedule import Schedule
from dovetail.model.workload import Workload
from dovetail.names import unknown
from dovetail.process import cpu_s
from dovetail.referee import check_schedule
from dovetail.units import DAY_S, printable
from dovetail.version import __version__
from dovetail.workloads.filters import standard
from dovetail.workloads.scenarios import span

if TYPE_CHECKING:
    import polars as pl

ENTRY: Final = "entry.toml"
BOUND: Final = "lower bound"
"""In the place of an entry: what no schedule can beat."""
OPEN: Final = "open"
"""The budget class of those that promise none."""
VALID: Final = "valid"
_KEY: Final = ("suite", "entry", "case", "estimate")
METRICS: Final = ("mean_wait_s", "wait_p95_s", "max_wait_s", "bsld", "awf_s", "p2sf_s")
_KEPT: Final = ("id", "submit", "size", "runtime", "limit", "user", "group", "queue", "partition")
"""Columns of a case: what a policy may know of a job, and how long it ran."""
_SUFFIXES: Final = (".swf", ".swf.gz", ".swf.xz", ".swf.zst", ".parquet")
_TEXT: Final = 200
"""Characters of what an entry says of itself."""
_MOST_S: Final = 10**10
"""A start or a wait beyond this is none; as in SWF."""
_PASSES: Final = 0.999
"""Of the passes of each case, this share keeps the budget of the class: a shared machine disturbs a few."""


@dataclass(frozen=True)
class Case:
    """Jobs to schedule: a stretch of a public log."""

    name: str
    log: str
    """A name of the catalog, or a file beside the suite."""
    begins_d: int
    """Days after the first job."""
    days: int
    jobs: int = 0
    processors: int = 0
    sha256: str = ""
    """Of the jobs (`Workload.digest`); empty: not frozen."""
    held_out: bool = False
    """Nothing may be chosen by it: no setting, no weight."""


@dataclass(frozen=True)
class Suite:
    """What all entries are tried on."""

    name: str
    cases: tuple[Case, ...]
    budgets: Mapping[str, float]
    """Seconds that a pass may take, by class."""
    estimates: tuple[str, ...] = ("limit", "runtime")
    baseline: str = "easy"
    beside: Path = Path()
    """Where logs that are files lie."""

    def workload(self, case: Case, logs: Path | None = None) -> Workload:
        """The jobs of a case, just those that were frozen. `logs`: where its log may lie; else it is fetched."""
        path = self.beside / case.log
        if not path.suffix:
            path = (logs or Path()) / find(case.log).file
            if not path.is_file():
                path = fetch(case.log)
        whole = standard(read_workload(path))
        first = int(whole.submit[0]) if len(whole) else 0
        begin = first + case.begins_d * DAY_S
        part = span(whole, begin, begin + case.days * DAY_S)
        kept = {name: part[name] for name in _KEPT if name in part}
        found = Workload(case.name, {**kept, "submit": part.submit - begin}, part.processors, part.provenance)
        if not len(found):
            raise InputError(path, 0, f"no job in the {case.days} days of the case {case.name}")
        if len(np.unique(found["id"])) < len(found):
            raise InputError(path, 0, f"{case.name}: jobs share a number, so they cannot be told apart")
        if case.sha256 and (found.digest(), len(found), found.processors) != (case.sha256, case.jobs, case.processors):
            raise InputError(
                path, 0, f"its jobs are not those of the case {case.name}: another version of the log, or a changed"
                f" filter; {len(found):,} jobs, digest {found.digest()}",
            )  # fmt: skip
        return found


def read_suite(path: Path | None = None) -> Suite:
    """The frozen suite, or that of a file."""
    source = Path(str(resources.files("dovetail.studies") / "bench.toml")) if path is None else regular_file(path)
    try:
        given = read_toml(source, "a suite")
        cases = tuple(Case(**one) for one in given.pop("case"))
        budgets = {name: float(s) for name, s in given.pop("budgets").items()}
        estimates = tuple(given.pop("estimates", ("limit", "runtime")))
        suite = Suite(cases=cases, budgets=budgets, estimates=estimates, beside=(path or Path()).parent, **given)
        _check_suite(suite)
    except (InputError, TypeError, KeyError, ValueError, AttributeError) as error:
        raise InputError(source, 0, f"no suite: {printable(str(error), _TEXT)}") from error
    return suite


def _check_suite(suite: Suite) -> None:
    """ValueError for the first thing that cannot be. Names of cases and estimates are parts of names of files."""
    names = [suite.name, suite.baseline, *(one.log for one in suite.cases), *suite.budgets]
    if not all(isinstance(one, str) and one for one in names):
        raise ValueError("name, baseline, logs and budgets are texts")
    parts = [*(one.name for one in suite.cases), *suite.estimates]
    if not suite.cases or not suite.estimates or len({*parts}) < len(parts):
        raise ValueError("it has cases and estimates, each by a name of its own")
    for part in parts:
        if not isinstance(part, str) or not re.fullmatch(r"\w[\w*+-]*", part):
            raise ValueError(f"{part!r} is not the name of a case or an estimate")
    for one in suite.cases:
        if type(one.begins_d) is not int or type(one.days) is not int or not 0 <= one.begins_d < 10**5 > one.days > 0:
            raise ValueError(f"{one.name}: begins_d and days are whole numbers of days")


@dataclass(frozen=True)
class Entry:
    """Who entered, and how."""

    name: str
    program: str
    """What decided, with its version."""
    by: str = ""
    budget: str = OPEN
    how: str = "declared"
    """How the budget class is known: declared, or measured."""
    p999_ms: float = math.nan
    """Of the CPU milliseconds of a pass, the most in 999 of 1,000; of the worst case. Only where measured."""
    cpu_s: float = math.nan
    """Of all its replays."""


def read_entry(path: Path, suite: Suite) -> Entry:
    """What an entry says of itself. InputError where it is not as it should be."""
    file = regular_file(path / ENTRY)
    try:
        given = read_toml(file, "an entry")
    except InputError as error:
        raise InputError(file, error.line, f"no TOML: {error.rule}") from error
    known = {one.name: one for one in fields(Entry)}
    for name, value in given.items():
        if name not in known:
            raise InputError(file, 0, unknown("field", name, known))
        if known[name].type == "str" and not isinstance(value, str):
            raise InputError(file, 0, f"{name} is not what it should be: a text")
        if known[name].type == "float" and not (isinstance(value, float) and 0 <= value < _MOST_S):
            raise InputError(file, 0, f"{name} is not what it should be: a number with a point, not below 0")
    for name in ("name", "program"):
        if not given.get(name, "").strip():
            raise InputError(file, 0, f"{name} is missing: every entry says it")
    if given["name"].strip() == BOUND:
        raise InputError(file, 0, f"{BOUND!r} is not the name of an entry")
    if given.get("budget", OPEN) not in (*suite.budgets, OPEN):
        raise InputError(file, 0, unknown("budget class", given["budget"], (*suite.budgets, OPEN)))
    if given.get("how", "declared") not in ("declared", "measured"):
        raise InputError(file, 0, "how is declared or measured")
    told: dict[str, Any] = {
        name: printable(one.strip(), _TEXT) if isinstance(one, str) else one for name, one in given.items()
    }
    return Entry(**told)


@dataclass(frozen=True)
class Score:
    """One schedule of an entry, judged. A line of the table of scores."""

    suite: str
    entry: str
    program: str
    by: str
    budget: str
    how: str
    p999_ms: float
    cpu_s: float
    case: str
    estimate: str
    verdict: str
    """`valid`, or what is wrong with it: then there are no numbers."""
    starts_sha256: str
    """Of what each job's start was, so that a schedule need not be kept."""
    mean_wait_s: float = math.nan
    wait_p95_s: float = math.nan
    max_wait_s: float = math.nan
    bsld: float = math.nan
    awf_s: float = math.nan
    p2sf_s: float = math.nan


def judge(path: Path, suite: Suite, workloads: Mapping[str, Workload], *, ours: bool = False) -> Iterator[Score]:
    """All schedules of an entry; one that is missing or wrong is refused, not the others. `ours`: it is believed that
    its passes were timed."""
    entry = read_entry(path, suite)
    if not ours:
        entry = replace(entry, how="declared", p999_ms=math.nan, cpu_s=math.nan)
    for case in suite.cases:
        for estimate in suite.estimates:
            workload = workloads[case.name]
            digest, numbers = "", dict[str, Any]()
            try:
                start = read_starts(_schedule_file(path, f"{case.name}.{estimate}"), workload)
                digest = hashlib.sha256(np.stack([workload["id"], start]).astype("<i8").tobytes()).hexdigest()
                verdict, numbers = verdict_on(workload, start, estimate)
            except InputError as error:
                verdict = str(error).replace(f"{path}/", "", 1)
            yield Score(
                suite.name, entry.name, entry.program, entry.by, entry.budget, entry.how, entry.p999_ms, entry.cpu_s,
                case.name, estimate, verdict, digest, **numbers,
            )  # fmt: skip


def verdict_on(workload: Workload, start: Ints, estimate: str) -> tuple[str, dict[str, Any]]:
    """What the referee says of these starts, and the metrics if they are valid."""
    none = np.full(len(workload), -1)
    cluster = Cluster(workload.processors)
    schedule = Schedule(workload, cluster, "entry", estimate, start, workload.submit, none, none, 0)
    if broken := check_schedule(schedule):
        first, more = broken[0], f", and {len(broken) - 1:,} more" if len(broken) > 1 else ""
        who = f"job {workload['id'][first.job]} " if first.job >= 0 else ""
        return f"refused: {first.rule}: {who}{first.detail}{more}", {}
    found = summarize(schedule)
    return VALID, {key: found[key] for key in METRICS}


def _schedule_file(path: Path, stem: str) -> Path:
    found = [one for one in (path / f"{stem}{suffix}" for suffix in _SUFFIXES) if one.exists()]
    if len(found) != 1:
        raise InputError(path / stem, 0, "two files for one schedule" if found else "no schedule")
    return found[0]


def read_starts(path: Path, workload: Workload) -> Ints:
    """The start of each job of a workload, from a schedule that lists the same jobs by id, in any order."""
    if path.suffix == ".parquet":
        ids, times, named = _of_parquet(path)
    else:
        given = read_workload(path)
        if len(given.set_aside):
            why = next(iter(given.set_aside.counts()))
            raise InputError(path, int(given.set_aside.line[0]), f"a line that is no job: {why}")
        ids, times, named = given["id"], given.get("wait"), "wait"
        _need_whole_waits(path)
    wanted = workload["id"]
    order = np.argsort(ids, kind="stable")
    if len(ids) != len(wanted) or (ids[order] != np.sort(wanted)).any():
        missing, strange = np.setdiff1d(wanted, ids), np.setdiff1d(ids, wanted)
        told = [f"{len(missing):,} are missing (first: {missing[0]})"] if len(missing) else []
        told += [f"{len(strange):,} are not of this case (first: {strange[0]})"] if len(strange) else []
        raise InputError(path, 0, f"not the jobs of the case: {', '.join(told) or 'one is there twice'}")
    found = times[order][np.searchsorted(ids[order], wanted)]
    since = workload.submit if named == "wait" else 0
    return np.where(found >= 0, found + since, -1)


def _need_whole_waits(path: Path) -> None:
    """SWF may have parts of seconds, and the reader rounds them; a schedule has none."""
    with path.open("rb") as raw:
        for line in b"".join(unpacked(raw, str(path))).splitlines():
            if not line.lstrip().startswith(b";") and b"." in line and b"." in line.split()[2]:
                wait = printable(line.split()[2].decode("ascii", "replace"), 40)
                raise InputError(path, 0, f"a wait of {wait}: times are whole seconds")


def _of_parquet(path: Path) -> tuple[Ints, Ints, str]:
    """Numbers of jobs, their starts or waits, and which of the two."""
    import polars as pl

    try:
        schema = pl.read_parquet_schema(regular_file(path))
        named = "start" if "start" in schema else "wait"
        if "id" not in schema or named not in schema:
            raise InputError(path, 0, "it has no columns id, and start or wait")
        for name in ("id", named):
            if not schema[name].is_integer():
                raise InputError(path, 0, f"{name} is {schema[name]}: it must be whole numbers")
        frame = pl.read_parquet(path, columns=["id", named])
        numbers = frame.with_columns(pl.col("id", named).cast(pl.Int64, strict=True).fill_null(-1))
    except polars_failures() as error:
        raise InputError(path, 0, f"no schedule: {printable(str(error), _TEXT)}") from error
    ids, values = (np.asarray(numbers[name].to_numpy(), np.int64) for name in ("id", named))
    if len(values) and int(values.max()) >= _MOST_S:
        raise InputError(path, 0, f"{named} of {int(values.max()):,}: a schedule ends before {_MOST_S:,} s")
    return ids, values, named


def enter(
    name: str, where: Path, suite: Suite, workloads: Mapping[str, Workload], seed: int = 0,
    tell: Callable[[str], object] = lambda _: None,
) -> Entry:  # fmt: skip
    """Make an entry of one of our policies: replay it on every case, each pass timed, and write what it did."""
    from dovetail.engine.pass_times import timed_replay
    from dovetail.policies.registry import policy

    chosen, slow, took = policy(name), 0.0, 0.0
    if chosen.clairvoyant:
        raise SettingError(f"{name} knows what comes, which no entry does")
    folder(where)
    for case in suite.cases:
        for estimate in suite.estimates:
            tell(f"{name}: {case.name}, {estimate}")
            began = cpu_s()
            schedule, times = timed_replay(workloads[case.name], chosen, estimate=estimate, seed=seed)
            took += cpu_s() - began
            slow = max(slow, float(np.quantile(times.seconds, _PASSES)))
            write_schedule_swf(schedule, where / f"{case.name}.{estimate}.swf.gz")
    budget = next((known for known, most in suite.budgets.items() if slow <= most), OPEN)
    made = Entry(name, f"dovetail {__version__}", "dovetail", budget, "measured", round(slow * 1000, 3), round(took, 1))
    lines = [f"{key} = {as_toml(value)}\n" for key, value in asdict(made).items()]
    with beside(where / ENTRY) as new:
        new.write_text("".join(lines), encoding="utf-8")
    return made


def bounds(suite: Suite, workloads: Mapping[str, Workload]) -> Iterator[Score]:
    """What no schedule can beat on each case, where that is known, whatever is known of run times."""
    from dovetail.optimize.window.bounds import workload_bounds

    for case in suite.cases:
        workload = workloads[case.name]
        found = workload_bounds(workload)
        least: dict[str, Any] = {key: found[key] for key in METRICS if key in found}
        least["mean_wait_s"] = max(found["af_s"] - float(workload.runtime.mean()), 0.0)
        who = (suite.name, BOUND, "", "", "", "", math.nan, math.nan)
        for estimate in suite.estimates:
            yield Score(*who, case.name, estimate, VALID, "", **least)


def read_scores(path: Path) -> pl.DataFrame:
    """A table of scores; empty where there is no file yet."""
    import polars as pl

    kinds = {one.name: pl.Float64 if one.type == "float" else pl.String for one in fields(Score)}
    if not path.exists():
        return pl.DataFrame(schema=kinds)
    try:
        found = pl.read_csv(regular_file(path), schema=kinds).with_columns(pl.col(pl.String).fill_null(""))
    except polars_failures() as error:
        raise InputError(path, 0, f"no table of scores: {printable(str(error), _TEXT)}") from error
    found = found.with_columns(pl.col(pl.String).map_elements(lambda text: printable(text, 400), pl.String))
    if bool(found.select((~pl.col(METRICS).is_finite() | (pl.col(METRICS) < 0)).any()).transpose()["column_0"].any()):
        raise InputError(path, 0, "no table of scores: a metric is below 0, or no number")
    if found.select(_KEY).is_duplicated().any():
        raise InputError(path, 0, "no table of scores: an entry has two lines for one case and estimate")
    return found


def with_scores(known: pl.DataFrame, new: Iterable[Score]) -> pl.DataFrame:
    """A table in which these scores are in the place of what it had of the same entries."""
    import polars as pl

    rows = pl.DataFrame([asdict(one) for one in new], schema=known.schema).with_columns(
        pl.col(pl.Float64).fill_nan(None)
    )
    stays = known.join(rows, on=("suite", "entry"), how="anti")
    return pl.concat([stays, rows]).sort("suite", "entry", maintain_order=True)


def write_scores(scores: pl.DataFrame, path: Path) -> None:
    with beside(path) as new:
        scores.write_csv(new, float_precision=6)


@dataclass(frozen=True)
class Line:
    """One entry with one estimate, over cases."""

    entry: str
    program: str
    budget: str
    how: str
    problem: str
    """Why it has no numbers; empty if it has."""
    values: Mapping[str, float]


def lines(scores: pl.DataFrame, suite: Suite, estimate: str, *, held_out: bool) -> list[Line]:
    """The entries, best mean wait first; those without numbers last. Each value is the geometric mean over cases of its
    ratio to the baseline's."""
    wanted = [one.name for one in suite.cases if one.held_out == held_out]
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for row in scores.iter_rows(named=True):
        if row["estimate"] == estimate and row["case"] in wanted and row["suite"] == suite.name:
            found.setdefault(row["entry"], {})[row["case"]] = row
    base = found.get(suite.baseline, {})
    if lacks := [case for case in wanted if base.get(case, {}).get("verdict") != VALID]:
        raise SettingError(
            f"no valid schedule of the baseline {suite.baseline} for {lacks[0]}, {estimate}, in suite {suite.name}:"
            f" dovetail bench enter {suite.baseline}, then judge it"
        )
    made = []
    for entry, rows in found.items():
        one = next(iter(rows.values()))
        problems = [f"{case}: {rows[case]['verdict']}" if case in rows else f"{case}: no schedule" for case in wanted
                    if case not in rows or rows[case]["verdict"] != VALID]  # fmt: skip
        values = {} if problems else {key: _ratio(rows, base, wanted, key) for key in METRICS}
        made.append(Line(entry, one["program"], one["budget"], one["how"], problems[0] if problems else "", values))
    return sorted(made, key=lambda line: (bool(line.problem), line.entry != BOUND, _first(line), line.entry))


def _first(line: Line) -> float:
    value = line.values.get(METRICS[0], math.nan)
    return math.inf if math.isnan(value) else value


def _ratio(rows: Mapping[str, Any], base: Mapping[str, Any], cases: Sequence[str], key: str) -> float:
    """nan where a value is not known, or the baseline's is 0."""
    pairs = [(rows[case][key], base[case][key]) for case in cases]
    if not pairs or any(value is None or not other for value, other in pairs):
        return math.nan
    if any(value == 0 for value, _ in pairs):
        return 0.0
    return math.exp(math.fsum(math.log(value / other) for value, other in pairs) / len(pairs))
