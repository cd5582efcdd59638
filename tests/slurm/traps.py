"""Some 200 jobs that a reader of Slurm's accounting can stumble over, submitted to a real Slurm: five of each kind."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from tests.slurm.real import RealSlurm, waits_for

NAMES: Final = (
    "a|b", "||", "ends with|", "two\nlines", "\n", "one\n2|3|4\n", "\x1b[31mred\x1b[0m", "<script>alert(1)</script>",
    "=HYPERLINK(1)", "'; DROP TABLE jobs; --", "$(id)", "tab\tand  blanks ", "ü日本", "x" * 300,
    "JobId=1 UserId=root(0)", "a\x1fb", "999\nJobId=7 JobState=RUNNING", "%s%n", "../../etc", "\r\nb",
)  # fmt: skip
"""Names of jobs."""


@dataclass
class Submitted:
    """What was submitted: the number that sbatch gave, by kind of trap."""

    ids: dict[str, list[int]] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)

    def of(self, *kinds: str) -> list[int]:
        return [one for kind in kinds for one in self.ids[kind]]


def submit_all(slurm: RealSlurm, end: bool = True) -> Submitted:
    """Submit them, do to them what makes them traps, and wait until all that can end has ended."""
    made = Submitted()

    def submit(kind: str, *options: str, run: str = "sleep 20", name: str | None = None, by: int = 0) -> int:
        own = ["setpriv", f"--reuid={by}", f"--regid={by}", "--clear-groups"] if by else []
        words = [*own, "sbatch", "--parsable", "-o", "/dev/null", "-J", name or kind, *options]
        words += ["--wrap", run] if run else []
        number = int(slurm.run(*words).split(";")[0])
        made.ids.setdefault(kind, []).append(number)
        made.names[number] = name or kind
        return number

    for at in range(5):
        submit("limit", "-t", ("1", "1:30", "0-1", "2-3:04:05", "UNLIMITED")[at])
        submit("array", f"--array=0-{4 + at}%{1 + at % 3}", "-t", "5")
        submit("gpus", f"--gres=gpu:a100:{1 + at % 4}", "-p", "gpu", "-t", "5")
        submit("memory 0", "--mem=0", "-n1", "-t", "5")
        submit("exclusive", "--exclusive", f"-n{1 + at}", "-t", "5")
        submit("spread", "-n64", "-t", "5")
        submit("nodes", f"-N{1 + at % 3}", f"--ntasks-per-node={1 + at}", "-t", "5")
        submit("memory", f"--mem-per-cpu={500 + at}M", f"-c{1 + at}", "-t", "5")
        submit("feature", "-C", ("cpu", "bigmem", "gpu", "cpu&bigmem", "cpu|gpu")[at], "-t", "5")
        submit("failed", "-t", "5", run="exit 3")
        submit("timeout", "-t", "1", run="sleep 600")
        submit("begin", "--begin=now+180", "-t", "5")
        submit("held", "-H", "-t", "5")
        submit("released", "-H", "-t", "5")
        submit("account", "-A", f"lab{at}", "-D", "/", "-t", "5", by=(1, 2, 3, 33, 65534)[at])
        for _ in range(9):
            submit("plain", "-t", "5", run="sleep 10")
        first = submit("first", "-t", "5")
        submit("dependency", f"--dependency=afterany:{first}", "-t", "5")
    het = "#!/bin/sh\n#SBATCH -n1 -t5\n#SBATCH hetjob\n#SBATCH -n2 -t5\nsleep 20\n"
    for _ in range(5):
        number = int(slurm.run("sh", "-c", f"printf %s '{het}' | sbatch --parsable -o /dev/null -J het").split(";")[0])
        made.ids.setdefault("het", []).append(number)
    for name in NAMES:
        submit("name", "-t", "5", name=name)
    for _ in range(5):
        submit("requeued", "-t", "20", run="sleep 400")
        submit("suspended", "-t", "20", run="sleep 400")

    def states(*kinds: str) -> list[str]:
        numbers = ",".join(map(str, made.of(*kinds)))
        return slurm.run("squeue", "-h", "-t", "all", "-j", numbers, "-o", "%T").split()

    waits_for(lambda: set(states("requeued", "suspended")) == {"RUNNING"}, 90, "jobs to requeue and suspend run")
    for number in made.of("suspended"):
        slurm.run("scontrol", "suspend", str(number))
    for number in made.of("requeued"):
        slurm.run("scontrol", "requeue", str(number))
    for number in made.of("released"):
        slurm.run("scontrol", "release", str(number))
    blocker = submit("whole", "-N8", "--exclusive", "-t", "10", run="sleep 60")
    for _ in range(5):
        submit("cancelled", "-N8", "--exclusive", "-t", "5")
    waits_for(lambda: bool(slurm.run("squeue", "-h", "-j", str(blocker), "-o", "%T")), 30, "the blocker is known")
    slurm.run("scancel", *map(str, made.of("cancelled")))
    for number in made.of("suspended"):
        slurm.run("scontrol", "resume", str(number))
    if end:
        live = [kind for kind in made.ids if kind != "held"]
        over = {"COMPLETED", "FAILED", "TIMEOUT", "CANCELLED"}
        waits_for(lambda: set(states(*live)) <= over, 180, "all but those held have ended")
        known = ("sacct", "-a", "-X", "-D", "-n", "-P", "-S", "now-8hours", "-o", "State")
        waits_for(lambda: not {"RUNNING", "PENDING"} & set(slurm.run(*known).split()), 60, "the database knows it")
    return made
