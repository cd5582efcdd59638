"""`dovetail deadline`: what deadline a job could be promised, and what that is worth."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from dovetail.cli import screen
from dovetail.cli.prepare import Filters, Json, Processors, Scenarios, Seed, counted, load, need_jobs, print_json
from dovetail.errors import SettingError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dovetail.engine.deadline_offers import Offers

app = typer.Typer(no_args_is_help=True, help="Deadlines: what could be promised, and what that would save.")

_DEFAULT = ("24h", "2d", "7d")


@app.command("advise")
def advise_command(
    trace: Annotated[str, typer.Argument(metavar="TRACE", help="SWF or Parquet: the cluster's history.")],
    size: Annotated[int, typer.Option(min=1, help="Processors that the job asks for.")],
    limit: Annotated[str, typer.Option(metavar="DURATION", help="Its limit: 4h, 30m, ...")],
    at: Annotated[
        str | None, typer.Option(metavar="DURATION", help="When it comes, in the trace's seconds; default: at its end.")
    ] = None,
    deadline: Annotated[
        list[str] | None, typer.Option(metavar="DURATION", help="A deadline, from then on; repeat. Default: 24h 2d 7d.")
    ] = None,
    weeks: Annotated[int, typer.Option(min=2, max=52, help="Futures to try: this many past weeks, come again.")] = 8,
    processors: Processors = None,
    filters: Filters = None,
    scenarios: Scenarios = None,
    seed: Seed = 0,
    wide: screen.Wide = False,
    as_json: Json = False,
) -> None:
    """Say which deadlines a job could be promised, and how much less others would wait for it."""
    from dovetail.engine.deadline_offers import check_asked, offers
    from dovetail.engine.replay import warm
    from dovetail.model.cluster import Cluster
    from dovetail.policies.deadline import DeadlineBackfilling
    from dovetail.units import parse_duration

    try:
        limit_s, wanted = parse_duration(limit), [parse_duration(text) for text in deadline or _DEFAULT]
        now = None if at is None else parse_duration(at)
    except ValueError as error:
        raise SettingError(str(error)) from error
    workload = load(trace, filters, scenarios, "cut", seed, processors)
    need_jobs(workload)
    policy, cluster = DeadlineBackfilling(), Cluster(workload.processors)
    when = int(workload.submit[-1]) if now is None else now
    check_asked(workload, cluster, policy, now=when, size=size, limit_s=limit_s, weeks=weeks)
    warm(policy)
    with counted("futures", weeks * (1 + len(wanted)), "replays", not as_json) as tell:
        found = offers(
            workload, cluster, policy, now=when, size=size, limit_s=limit_s, deadlines_s=wanted,
            weeks=weeks, progress=tell,
        )  # fmt: skip
    if as_json:
        print_json({"trace": workload.name, "at_s": when, "size": size, "limit_s": limit_s, **asdict(found)})
    else:
        _tell(found, limit_s, weeks, wide)


def _tell(found: Offers, limit_s: int, weeks: int, wide: bool) -> None:
    from dovetail.units import duration

    screen.tell(f"{found.running:,} jobs run and {found.waiting:,} wait.")
    screen.tell(
        f"Without a deadline the job starts within {duration(found.promised_s)} at the latest; in {weeks} possible"
        f" futures it waits {' '.join(_over(found.wait_s).split())}."
    )
    screen.tell(f"The earliest deadline that can be promised: {duration(found.earliest_s)} from now.")
    words = [
        ("deadline", [duration(one.deadline_s) for one in found.offers]),
        ("answer", ["accepted" if one.accepted else "refused" for one in found.offers]),
    ]
    columns = (
        screen.Column("the job waits", [_over(one.wait_s) for one in found.offers]),
        screen.Column("others save\n(hours)", [_hours(one.saved_s) for one in found.offers]),
        screen.Column("others save\n(processor hours)", [_hours(one.saved_processor_s) for one in found.offers], 1),
    )
    screen.print_table(
        words,
        columns,
        f"Others save: what they wait less, all together, by the job's deadline. Futures: each of the last {weeks}"
        " weeks, come again. Brackets: 95 % intervals of the mean over them. The job is taken to run for all of its"
        f" limit, {duration(limit_s)}. Others are all jobs that wait now or come within a week.",
        wide=wide,
    )


def _over(values: Sequence[float]) -> str:
    """The mean of some durations, and their range."""
    from dovetail.units import duration

    mean = round(sum(values) / len(values))
    return f"{duration(mean)}\n({duration(round(min(values)))} to {duration(round(max(values)))})"


def _hours(values: Sequence[float]) -> str:
    from dovetail.metrics.comparison import mean_interval

    mean, low, high = mean_interval([value / 3600 for value in values])
    return f"{mean:,.1f}\n\\[{low:,.1f}, {high:,.1f}]"
