"""Shortest job first: whatever fits starts, the job with the smallest estimate before all others."""

from dovetail import Plan, Policy, State


class ShortestFirst(Policy):
    def decide(self, state: State) -> Plan:
        free, starts = state.free, []
        for job in sorted(state.waiting.tolist(), key=lambda job: int(state.estimate[job])):
            if state.size[job] <= free:
                free -= int(state.size[job])
                starts.append(job)
        return Plan(starts=starts)
