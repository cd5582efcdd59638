"""What is submitted to a real cluster: eight kinds of jobs, each with what it wants of the cluster."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from dovetail.slurm.machine import Texts

USERS = {"daemon": (1, 60), "bin": (2, 30), "sys": (3, 10)}
"""Three users, each with an account of its own: its number, and its shares."""


@dataclass(frozen=True)
class Submission:
    """One call of sbatch: when, its options, how long a job of it runs, and whose it is."""

    at: float
    options: Sequence[str]
    seconds: int
    user: str = ""


@dataclass(frozen=True)
class Kind:
    """A kind of workload."""

    jobs: Callable[[random.Random], Iterator[Submission]]
    """Without an end."""
    extra: Sequence[str] = ()
    """Lines of slurm.conf."""
    before: Sequence[Sequence[str]] = ()
    """Commands before the first job comes."""
    calls: int = 250
    """Of sbatch."""
    limits: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Of QOS and accounts: by what sacctmgr calls each, `qos normal`."""

    def commands(self) -> Iterator[Sequence[str]]:
        """What is to be done before the first job comes."""
        yield from self.before
        for whose, limits in self.limits.items():
            given = [f"{name}={text}" for name, text in limits.items()]
            yield ["sacctmgr", "-i", "modify", *whose.split(), "set", *given]

    def qos(self) -> tuple[Texts, ...]:
        """What sacctmgr would say of them."""
        return ({"Name": "normal", "Priority": "0", **self.limits.get("qos normal", {})},)

    def associations(self) -> tuple[Texts, ...]:
        """The same: root and its user, and an account for each of the others."""

        def one(account: str, user: str = "", above: str = "", shares: int = 1) -> Texts:
            told = {"Account": account, "User": user, "ParentName": above, "Fairshare": str(shares)}
            limits = {} if user else self.limits.get(f"account {account}", {})
            return {"Cluster": "", "Partition": "", "Priority": "", **told, **limits}

        users = [
            line
            for user, (_, shares) in USERS.items()
            for line in (one(f"of_{user}", above="root", shares=shares), one(f"of_{user}", user))
        ]
        return (one("root"), one("root", "root"), *users)


def _sized(rng: random.Random) -> list[str]:
    """Some cores, or some of the cores of some nodes."""
    kind = rng.random()
    if kind < 0.5:
        return [f"-n{rng.choice((1, 2, 4, 8, 16, 24, 48))}"]
    if kind < 0.8:
        return [f"-N{rng.choice((2, 4, 8, 16, 24))}", f"--ntasks-per-node={rng.choice((8, 16))}"]
    return [f"-n{rng.choice((32, 64, 128, 200))}"]


def _jobs(
    rng: random.Random, every_s: float, minutes: Sequence[int], options: Callable[[random.Random], list[str]]
) -> Iterator[Submission]:
    at = 0.0
    while True:
        at += rng.expovariate(1 / every_s)
        limit = rng.choice(minutes)
        yield Submission(at, [f"-t{limit}", *options(rng)], int(60 * limit * rng.uniform(0.2, 1.0)))


def _mixed(rng: random.Random) -> Iterator[Submission]:
    return _jobs(rng, 25, (5, 10, 20, 30, 60), _sized)


def _shorter(rng: random.Random) -> Iterator[Submission]:
    return _jobs(rng, 25, (5, 5, 10, 10, 20, 30), _sized)


def _wide(rng: random.Random) -> Iterator[Submission]:
    def sized(rng: random.Random) -> list[str]:
        if rng.random() < 0.2:
            return ["--exclusive", f"-N{rng.choice((8, 16, 24, 40))}"]
        return ["--exclusive", f"-N{rng.choice((1, 1, 2, 2, 3, 4))}"] if rng.random() < 0.7 else _sized(rng)

    return _jobs(rng, 30, (5, 10, 15, 20, 30), sized)


def _arrays(rng: random.Random) -> Iterator[Submission]:
    def sized(rng: random.Random) -> list[str]:
        if rng.random() < 0.4:
            return [f"--array=1-{rng.randint(2, 20)}", f"-n{rng.choice((8, 16, 32, 48))}"]
        return _sized(rng)

    return _jobs(rng, 50, (5, 10, 20, 30), sized)


def _tiers(rng: random.Random) -> Iterator[Submission]:
    def sized(rng: random.Random) -> list[str]:
        return [*_sized(rng), *(["-p", "urgent"] if rng.random() < 0.25 else [])]

    return _jobs(rng, 25, (5, 5, 10, 20, 30, 45), sized)


def _fair(rng: random.Random) -> Iterator[Submission]:
    for one in _shorter(rng):
        user = rng.choice(list(USERS))
        yield Submission(one.at, [*one.options, "-A", f"of_{user}"], one.seconds, user)


def _gpus(rng: random.Random) -> Iterator[Submission]:
    def sized(rng: random.Random) -> list[str]:
        kind = rng.random()
        if kind < 0.4:
            return ["-p", "gpu", "-N1", f"-n{rng.choice((1, 2, 4, 8))}", f"--gres=gpu:{rng.choice((1, 1, 2, 4))}"]
        if kind < 0.6:
            nodes = rng.choice((2, 2, 4, 8))
            return ["-p", "gpu", f"-N{nodes}", "--ntasks-per-node=4", f"--gres=gpu:{rng.choice((2, 4))}"]
        return _sized(rng)

    return _jobs(rng, 25, (5, 10, 10, 20, 30), sized)


FAIR = (
    "PriorityWeightFairShare=100000", "PriorityWeightAge=1000", "PriorityMaxAge=0-2", "PriorityWeightJobSize=500",
)  # fmt: skip
_ACCOUNTS = [
    *(["sacctmgr", "-i", "add", "account", f"of_{user}", f"fairshare={share}"] for user, (_, share) in USERS.items()),
    *(["sacctmgr", "-i", "add", "user", user, f"account=of_{user}"] for user in USERS),
]
_OUT = "Nodes=c[1-32],f[1-8]"

KINDS = {
    "mixed": Kind(_mixed),
    "wide": Kind(_wide, calls=200),
    "arrays": Kind(_arrays, calls=50),
    "tiers": Kind(_tiers, ["PartitionName=urgent Nodes=ALL PriorityTier=10 MaxTime=60 State=UP"]),
    "fair": Kind(_fair, FAIR, _ACCOUNTS),
    "limits": Kind(_fair, ["AccountingStorageEnforce=associations,limits,qos"], _ACCOUNTS, limits={
        "qos normal": {"MaxJobsPerUser": "8", "MaxTRESPerUser": "cpu=420"},
        "account of_daemon": {"GrpTRES": "cpu=350"}, "account of_sys": {"GrpJobs": "5"},
    }),
    "maintenance": Kind(_shorter, (), [
        ["scontrol", "create", "reservation", "ReservationName=maint", _OUT, "StartTime=now+45minutes",
         "Duration=20", "Users=root", "Flags=MAINT,IGNORE_JOBS"],
    ]),
    "gpus": Kind(_gpus),
}  # fmt: skip
