"""All numbers of one schedule in one flat dictionary, for tables, files and reports."""

from __future__ import annotations

from dovetail.arrays import Floats
from dovetail.energy.site import Site
from dovetail.metrics import fairness, jobs, system
from dovetail.metrics.classes import NARROW, SHORT_S, classes
from dovetail.metrics.deadlines import of_deadlines
from dovetail.metrics.energy import of_energy
from dovetail.metrics.nodes import of_nodes
from dovetail.model.schedule import Schedule
from dovetail.referee.schedule import check_schedule


def summarize(
    schedule: Schedule,
    site: Site | None = None,
    *,
    counting: str = "all",
    bound_s: float = 10,
    short_s: int = SHORT_S,
    narrow: int = NARROW,
) -> dict[str, float]:
    """Every metric of docs/metrics.md that needs nothing but the schedule, always in the same order; those of deadlines
    only where jobs have some, those of nodes only where the nodes of jobs are known; those of energy at a `site`; and
    of what a log says happened, how many starts break a rule.

    Counts are integers, all else float64; a metric that has nothing to measure is nan. `counting` applies to
    the metrics over jobs and to the classes, not to the cluster and its queue.
    """
    line = system.timeline(schedule)
    return {
        **_of_jobs(schedule, counting, bound_s, short_s, narrow),
        **_of_system(line),
        **of_nodes(schedule, line),
        **_of_failures(schedule),
        **(of_deadlines(schedule, counting) if bool((schedule.workload.get("deadline_s") >= 0).any()) else {}),
        **(of_energy(schedule, site) if site is not None else {}),
        **({"rules_broken": len({one.job for one in check_schedule(schedule)})} if schedule.recorded else {}),
    }


def _of_failures(schedule: Schedule) -> dict[str, float]:
    """How many runs failures of nodes have ended, and the processor-seconds of them, where nodes fail."""
    if not any(one.fails for one in schedule.cluster.outages):
        return {}
    size = schedule.workload.size
    return {
        "lost_runs": len(schedule.lost),
        "lost_processor_s": sum(int(size[one.job]) * (one.end - one.start) for one in schedule.lost),
    }


def _of_jobs(schedule: Schedule, counting: str, bound_s: float, short_s: int, narrow: int) -> dict[str, float]:
    measured = jobs.outcomes(schedule, counting)
    slowdowns = jobs.slowdowns(measured, bound_s)
    found: dict[str, float] = {
        "jobs": len(schedule.start),
        "jobs_counted": len(measured),
        "jobs_unstarted": int(schedule.unstarted.sum()),
        **({"jobs_left": int(schedule.left.sum())} if schedule.workload.may_leave else {}),
        "bsld": jobs.mean(slowdowns),
        "slowdown": jobs.slowdown(measured),
        "af_s": jobs.af_s(measured),
        "awf_s": jobs.awf_s(measured),
        "awq_s": jobs.awq_s(measured),
        "p2sf_s": fairness.pasf_s(measured, 2),
        "l2_response_s": fairness.lp_response_s(measured, 2),
        "l3_response_s": fairness.lp_response_s(measured, 3),
        "mean_wait_s": jobs.mean_wait_s(measured),
        **jobs.spread(measured.wait, "wait", "_s"),
        **jobs.spread(slowdowns, "bsld"),
    }
    for name, mask in classes(measured, short_s, narrow).items():
        inside = _of_class(measured.where(mask), slowdowns[mask])
        found |= {f"{name}_{key}": value for key, value in inside.items()}
    return found


def _of_class(members: jobs.Outcomes, slowdowns: Floats) -> dict[str, float]:
    return {
        "jobs": len(members),
        "bsld": jobs.mean(slowdowns),
        "mean_wait_s": jobs.mean_wait_s(members),
        **jobs.spread(members.wait, "wait", "_s"),
        **jobs.spread(slowdowns, "bsld"),
    }


def _of_system(line: system.Timeline) -> dict[str, float]:
    return {
        "utilization": system.utilization(line),
        "utilization_variance": system.utilization_variance(line),
        "loss_of_capacity": system.loss_of_capacity(line),
        "makespan_s": system.makespan_s(line),
        "mean_queue_jobs": system.mean_queue_jobs(line),
        "max_queue_jobs": system.max_queue_jobs(line),
        "mean_queue_processors": system.mean_queue_processors(line),
        "max_queue_processors": system.max_queue_processors(line),
    }
