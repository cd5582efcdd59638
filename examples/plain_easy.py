"""EASY backfilling in plain Python: an entry for the benchmark from a program that knows nothing of Dovetail.

    dovetail bench export cases
    python examples/plain_easy.py cases my-entry
    dovetail bench judge my-entry

It reads CASE.swf and writes CASE.limit.swf and CASE.runtime.swf, whose third field is the wait, and entry.toml.
"""

from __future__ import annotations

import argparse
import heapq
from pathlib import Path

ABOUT = """name = "{name}"
program = "plain_easy.py"
by = "an example: a program that does not import Dovetail"
budget = "1 s"
"""


def read(path: Path) -> tuple[int, list[tuple[int, int, int, int, int]]]:
    """The processors, and of each job its number, submit, run time, size and limit."""
    processors, jobs = 0, []
    for line in path.read_text().splitlines():
        if line.startswith(";"):
            name, _, value = line[1:].partition(":")
            processors = int(value) if name.strip() == "MaxProcs" else processors
        elif line.strip():
            field = [int(float(text)) for text in line.split()]
            jobs.append((field[0], field[1], field[3], field[7], field[8]))
    return processors, jobs


def easy(processors: int, jobs: list[tuple[int, int, int, int, int]], estimates: list[int]) -> list[int]:
    """When each job starts. At each moment ends come first, then arrivals, then one pass over the queue."""
    start = [-1] * len(jobs)
    ends: list[tuple[int, int]] = []  # when running jobs end, and which
    queue: list[int] = []
    free, arrived = processors, 0
    while arrived < len(jobs) or ends:
        now = min(ends[0][0] if ends else jobs[arrived][1], jobs[arrived][1] if arrived < len(jobs) else ends[0][0])
        while ends and ends[0][0] == now:
            free += jobs[heapq.heappop(ends)[1]][3]
        while arrived < len(jobs) and jobs[arrived][1] == now:
            queue.append(arrived)
            arrived += 1
        shadow = spare = -1  # when the first job that waits will start, and what it then leaves free
        waiting = []
        for at, job in enumerate(queue):
            size = jobs[job][3]
            in_time = shadow < 0 or now + estimates[job] <= shadow
            if size <= free and (in_time or size <= spare):
                start[job] = now
                free -= size
                spare -= 0 if in_time else size
                heapq.heappush(ends, (now + jobs[job][2], job))
            else:
                waiting.append(job)
                if shadow < 0:
                    spare = free - size
                    for end, other in sorted((max(start[one] + estimates[one], now + 1), one) for _, one in ends):
                        if spare >= 0 and end > shadow:
                            break
                        shadow, spare = end, spare + jobs[other][3]
            if free == 0:
                waiting += queue[at + 1 :]
                break
        queue = waiting
    return start


def main() -> None:
    asked = argparse.ArgumentParser(description="An entry for the benchmark.")
    asked.add_argument("cases", type=Path)
    asked.add_argument("entry", type=Path)
    asked.add_argument("--careless", action="store_true", help="believe in a machine a tenth larger: it is refused")
    given = asked.parse_args()
    given.entry.mkdir(parents=True, exist_ok=True)
    for path in sorted(given.cases.glob("*.swf")):
        processors, jobs = read(path)
        if given.careless:
            processors += -(-processors // 10)
        for estimate, which in (("limit", 4), ("runtime", 2)):
            starts = easy(processors, jobs, [job[which] for job in jobs])
            with (given.entry / f"{path.stem}.{estimate}.swf").open("w") as out:
                for (number, submit, runtime, size, limit), at in zip(jobs, starts, strict=True):
                    print(number, submit, at - submit, runtime, size, -1, -1, size, limit, *[-1] * 9, file=out)
    name = "plain EASY, careless" if given.careless else "plain EASY"
    (given.entry / "entry.toml").write_text(ABOUT.format(name=name))


if __name__ == "__main__":
    main()
