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
    fits_again(cap, job, at, length)    whether it fits into the plan where it was picked a place last
    reserve_again(cap, job, at, length) put it there again
    keep_place(cap, job)                note its place
    back_to_kept(cap, job)              make the noted place the one that it was picked last
    due(cap, job, now)                  a job of a plan that is kept is to start now, in its place
    shaken(cap)                         whether a plan that is kept may have come undone: an outage has got known
    remember_plan(cap, memory)          copy the plan to memory of its size
    recall_plan(cap, memory)            make the plan what it was then
    names_nodes(cap)                    whether a job that starts must have been reserved for just before, on its nodes
    next_event(cap)                     when the machine itself changes next (an outage is known, begins, ends); NEVER
    happen(cap, now)                    let all such changes up to now happen
    ahead(cap)                          whether it is known to change: who fits now need not fit until its end
    room(cap, running, waiting)         whether the arrays have room for so many jobs that run, and wait with a place

On nodes next_room says that there may be room at any time; next_lack is asked of machines that count alone, where a job
may start wherever the two leave it room. One more is asked of nodes by a planner that knows from processors when a job
may start at the earliest (planner/day.py), which also answers for a machine without nodes.

    earliest_before(cap, job, at, length, until)    as earliest_fit; NEVER if that is not before `until`
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
fits_again = seam("fits_again")
reserve_again = seam("reserve_again")
keep_place = seam("keep_place")
back_to_kept = seam("back_to_kept")
due = seam("due")
shaken = seam("shaken")
remember_plan = seam("remember_plan")
recall_plan = seam("recall_plan")
names_nodes = seam("names_nodes")
next_event = seam("next_event")
happen = seam("happen")
ahead = seam("ahead")
room = seam("room")
earliest_before = seam("earliest_before")
