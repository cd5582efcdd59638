"""Narrow jobs first, but nothing passes a job that has waited a day."""

from dovetail import Plan, Policy, State


class NarrowFirst(Policy):
    def decide(self, state: State) -> Plan:
        free, starts = state.free, []
        old = {job for job in state.waiting.tolist() if state.now - state.submit[job] >= 86_400}
        for job in sorted(state.waiting.tolist(), key=lambda job: (job not in old, int(state.size[job]))):
            if state.size[job] <= free:
                free -= int(state.size[job])
                starts.append(job)
            elif job in old:
                break
        return Plan(starts=starts)
