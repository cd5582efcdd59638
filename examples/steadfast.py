"""EASY in the order of the estimates that keeps its word: the job that was promised a start stays the first.

Plain `sjf-easy` forgets: a shorter job that comes later takes the reservation away. This policy finds its promise
again in `state.standing`.
"""

from dovetail import Plan, Policy, State


class Steadfast(Policy):
    def decide(self, state: State) -> Plan:
        size, estimate, kept = state.size, state.estimate, state.standing.promised
        queue = sorted(state.waiting.tolist(), key=lambda job: (job not in kept, int(estimate[job])))
        ends = [(state.expected_end(job), int(size[job])) for job in state.running.tolist()]
        free, starts = state.free, []
        while queue and size[queue[0]] <= free:
            job = queue.pop(0)
            free -= int(size[job])
            ends.append((state.now + int(estimate[job]), int(size[job])))
            starts.append(job)
        if not queue:
            return Plan(starts=starts)
        head, at, spare = queue[0], state.now, free - int(size[queue[0]])
        for end, freed in sorted(ends):  # when will the first job fit, and how much does it leave free then?
            if spare >= 0 and end > at:
                break
            at, spare = end, spare + freed
        for job in queue[1:]:
            short = state.now + estimate[job] <= at
            if size[job] <= free and (short or size[job] <= spare):
                free -= int(size[job])
                spare -= 0 if short else int(size[job])
                starts.append(job)
        return Plan(starts=starts, promised={head: at})
