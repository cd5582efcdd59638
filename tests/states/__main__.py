"""Policies asked about states with no replay behind them, each in a process of its own.

    python -m tests.states                                  10,000 states that can be, 1,000 that cannot
    python -m tests.states --seed 7 --random 1 --hostile 0  the state of that number

What must hold: a plan that the referee accepts, with a reason for each job that waits; or, of a state that cannot be,
an error of one line. No crash, and no more than a second of CPU.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import time
from collections import Counter
from dataclasses import replace

from dovetail.errors import DovetailError
from dovetail.model.state import State
from dovetail.policies.base import Policy
from dovetail.policies.lists import ListPolicy
from dovetail.referee.plan import check_plan
from tests.states.draw import case_of, hostile, random_state


def drawn(seed: int, wrong: bool) -> tuple[Policy, State]:
    """A policy and a state for it."""
    rng = random.Random(f"state {seed} {wrong}")
    case, policy = case_of(seed)
    state = random_state(case, rng)
    return policy, hostile(state, rng) if wrong else state


def judged(policy: Policy, state: State, wrong: bool) -> str:
    """What came of asking: "a plan", "refused", or what is wrong with the answer."""
    try:
        plan = policy.decide(state)
    except DovetailError as error:
        if not wrong or "\n" in str(error):
            return f"{type(error).__name__}: {error}"
        return "refused"
    # First reservations of a list that pushes them back are no plan of one instant.
    pushed = isinstance(policy, ListPolicy) and policy.keeps_promises
    if found := check_plan(state, replace(plan, promised={}) if pushed else plan):
        return f"the referee: {found[0]}"
    if silent := set(state.waiting.tolist()) - set(plan.reasons) - set(plan.starts):
        return f"jobs {sorted(silent)} wait, and nobody says why"
    return "a plan"


def apart(policy: Policy, state: State, wrong: bool, most_s: float) -> str:
    """The same in a process of its own, which may crash or hang."""
    ours, theirs = os.pipe()
    child = os.fork()
    if not child:
        signal.setitimer(signal.ITIMER_PROF, most_s)
        try:
            said = judged(policy, state, wrong)
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(theirs, said.encode()[:2000])
        os._exit(0)
    os.close(theirs)
    with os.fdopen(ours, "rb") as stream:
        said = stream.read().decode()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return (
            f"more than {most_s:g} s of CPU" if number == signal.SIGPROF else f"died of {signal.Signals(number).name}"
        )
    return said


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0, help="number of the first state (default 0)")
    parser.add_argument("--random", type=int, default=10_000, help="states that can be (default 10,000)")
    parser.add_argument("--hostile", type=int, default=1_000, help="states that cannot be (default 1,000)")
    parser.add_argument("--seconds", type=float, default=1.0, help="of CPU that one may take (default 1)")
    chosen = parser.parse_args()
    counts, began = Counter[str](), time.process_time()
    known = set[tuple[str, bool]]()
    for wrong, number in ((False, chosen.random), (True, chosen.hostile)):
        for seed in range(chosen.seed, chosen.seed + number):
            policy, state = drawn(seed, wrong)
            if not wrong and (kind := (type(policy.rule()).__name__, state.cluster is not None)) not in known:
                known.add(kind)
                judged(policy, state, wrong)  # compiled here, once for all
            said = apart(policy, state, wrong, chosen.seconds)
            counts[said if said in ("a plan", "refused") else "wrong"] += 1
            if said not in ("a plan", "refused"):
                print(f"seed {seed}{' (hostile)' if wrong else ''}, {policy.name}: {said}", flush=True)
    print(", ".join(f"{count:,} {what}" for what, count in counts.items()), f"in {time.process_time() - began:,.0f} s")
    return min(1, counts["wrong"])


if __name__ == "__main__":
    sys.exit(main())
