"""Published tables and figures that Dovetail makes again, by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dovetail.errors import SettingError

PACKING: Final = "Metrics for Packing Efficiency and Fairness of HPC Cluster Batch Job Scheduling (SBAC-PAD 2022)"
CP: Final = "Job Scheduling for HPC Clusters: Constraint Programming vs. Backfilling Approaches (DEBS 2024)"
DISPATCHER: Final = "Job Dispatcher for Large and Heterogeneous HPC Systems Running Modern Applications (CP 2021)"
DEADLINE: Final = "Don't Hurry Be Happy: a Deadline-Based Backfilling Approach (JSSPP 2017)"


@dataclass(frozen=True)
class Reproduction:
    """A published table or figure. The module of its name (with _ for -) makes its page from the kept runs."""

    name: str
    paper: str
    shows: str
    """Which table or figure, in words."""
    extent: str
    """How much of it: all, or which part."""
    takes_s: int
    """About how long it takes from an empty store, on two cores."""
    page_name: str = ""
    """What its page is called; default: as it is."""

    @property
    def study(self) -> Path | None:
        """Its study, an ordinary one to copy and change; None if nothing is replayed."""
        path = Path(__file__).with_name(f"{self.name}.toml")
        return path if path.is_file() else None

    @property
    def page(self) -> str:
        """The file name of its page; the committed ones are in docs/results."""
        return f"{self.page_name or self.name}.md"


REPRODUCTIONS: Final[Mapping[str, Reproduction]] = {
    found.name: found
    for found in (
        Reproduction(
            "packing-table-2",
            PACKING,
            "Table II: BSLD, AF, AWF and P2SF of ten list policies",
            "5 of 6 traces in full; BW201911 could not be had",
            110,
        ),
        Reproduction(
            "packing-table-3",
            PACKING,
            "Tables III and IV and Fig. 4: what estimates of run times do to four policies",
            "5 of 6 traces in full; BW201911 could not be had",
            1800,
        ),
        Reproduction(
            "quantiles",
            PACKING,
            "beside Table III: our predictor, settings chosen on the first half of each trace",
            "as far as it was run: its page says which of 5 traces; BW201911 could not be had",
            20_000,
        ),
        Reproduction(
            "packing-figure-3",
            PACKING,
            "Fig. 3: jobs, job areas and wait areas by job area on SDSC-SP2",
            "in full",
            10,
        ),
        Reproduction(
            "cp-table-2",
            CP,
            "Table 2: BSLD, AF, AWF and P2SF, the rows of list scheduling",
            "5 of 6 traces in full; BW201911 could not be had; no rows of the solver",
            80,
        ),
        Reproduction(
            "planner-table-2",
            CP,
            "Table 2 and Figs. 2 to 7: the planner where the paper has the solver",
            "5 of 6 traces in full; BW201911 could not be had; off-line schedules of KTH-SP2",
            14_400,
            "planner",
        ),
        Reproduction(
            "dbf-tables",
            DEADLINE,
            "Tables 1 to 3 and Figs. 2 to 7: jobs with deadlines make room for the others",
            "3 of 4 logs in full; ANL-Intrepid could not be had; our planner beside it",
            6000,
        ),
        Reproduction(
            "dbf-figure-1",
            DEADLINE,
            "Fig. 1: arrivals by hour of the day and by day of the week",
            "3 of 4 logs in full; ANL-Intrepid could not be had",
            5,
        ),
        Reproduction(
            "dispatch-tables",
            DISPATCHER,
            "Tables 1 and 2, Figs. 5 and 10: decision times, slowdown and waits of its dispatchers, and of ours",
            "spans of the public Eurora days and of KIT's first 25,326 jobs",
            3600,
        ),
        Reproduction(
            "dispatch-instances",
            DISPATCHER,
            "Figs. 6 to 9: variables, time and fails of two models on the same instances; PCP'19 on KIT ForHLR II",
            "a sample of the passes of replays of the public Eurora days and of KIT's first 25,326 jobs",
            2400,
        ),
        Reproduction(
            "dispatch-generated",
            DISPATCHER,
            "beside Table 1: Last2 and similar jobs as predictors, on as many jobs as the paper has",
            "400,000 generated jobs with our policies; spans of them with the paper's dispatchers",
            1800,
        ),
    )
}


def find(name: str) -> Reproduction:
    """The table or figure of that name."""
    if name not in REPRODUCTIONS:
        raise SettingError(f"no table or figure {name!r}: choose from {', '.join(REPRODUCTIONS)}")
    return REPRODUCTIONS[name]
