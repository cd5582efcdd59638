"""The seam between a pass and the machine: two capacity models, one pass.

A pass asks only what stands here, so it is written once; the type of `cap` decides who answers.

    fits_now(cap, job)                  enough is free at this instant
    alike(cap, job, other)              whether two jobs need the same
    spare(cap)                          no job that needs more of the first resource than this fits now
    start(cap, job, now, end)           take it, until `end` as far as anyone knows
    release(cap, job, now, end)         give it back; `end` as given to start
    prolong(cap, job, now, end)         it runs on, until `end` as far as anyone knows; it should have ended before
    shadow(cap, job, now)               when the job would fit if nothing more started; remembers what is left then
    beside(cap, job, end, shadow)       whether a job that ends at `end` leaves the remembered job its place
    spare_beside(cap)                   no job that needs more of the first resource fits beside the remembered one
    take_beside(cap, job)               it starts and outlives the shadow: less is left then
    open_plan(cap, now)                 begin a plan: what runs, and nothing else
    advance_plan(cap, now)              forget what the plan says of the past
    earliest_fit(cap, job, at, length)  first instant from `at` on when the job fits into the plan
    fits_plan(cap, job, at, length)     whether it fits into the plan at that instant
    next_room(cap, job, at)             first instant from `at` on when as much is free in the plan as the job needs
    next_lack(cap, job, at)             first instant from `at` on when it is not; NEVER if it always is
    reserve(cap, job, at, length)       put it into the plan
    unreserve(cap, job, at, length)     take it out again
    remember_plan(cap, memory)          copy the plan to memory of its size
    recall_plan(cap, memory)            make the plan what it was then
    names_nodes(cap)                    whether a job that starts must have been reserved for just before, on its nodes
    room(cap, running, waiting)         whether the arrays have room for so many jobs that run, and wait with a place

next_room and next_lack are asked of machines that count, where a job may start wherever they leave it room. Two more
are asked of nodes by a planner that knows from processors when a job may start at the earliest
(planner/day.py), which also answers for a machine without nodes.

    earliest_before(cap, job, at, length, until)    as earliest_fit; NEVER if that is not before `until`
    reserve_again(cap, job, at, length)             put it into the plan on the nodes that it was picked last
"""

from __future__ import annotations

from dovetail.kernels.seam import seam

fits_now = seam("fits_now")
alike = seam("alike")
spare = seam("spare")
start = seam("start")
release = seam("release")
prolong = seam("prolong")
shadow = seam("shadow")
beside = seam("beside")
spare_beside = seam("spare_beside")
take_beside = seam("take_beside")
open_plan = seam("open_plan")
advance_plan = seam("advance_plan")
earliest_fit = seam("earliest_fit")
fits_plan = seam("fits_plan")
next_room = seam("next_room")
next_lack = seam("next_lack")
reserve = seam("reserve")
unreserve = seam("unreserve")
remember_plan = seam("remember_plan")
recall_plan = seam("recall_plan")
names_nodes = seam("names_nodes")
room = seam("room")
earliest_before = seam("earliest_before")
reserve_again = seam("reserve_again")
