"""Why a job waited: what Slurm's words mean. sacct keeps the last one that was neither Priority nor Resources."""

from __future__ import annotations

import re
from typing import Final

NONE: Final = "None"
"""Slurm's word where it kept no reason."""
WORDS: Final = {
    NONE: "its turn had not come, or too little was free",
    "Priority": "jobs of a higher priority came first",
    "Resources": "too little was free",
    "Dependency": "waited for another job",
    "DependencyNeverSatisfied": "waited for a job that ended in another way than it needs",
    "BeginTime": "was not to start before a time that its user gave, or had just been requeued",
    "JobArrayTaskLimit": "as many tasks of its array ran as the user allowed (%)",
    "JobHeldUser": "was held by its user",
    "JobHeldAdmin": "was held by an administrator",
    "JobHoldMaxRequeue": "was held, as it had been requeued too often",
    "ReqNodeNotAvail": "nodes that it asks for were down, drained or reserved",
    "NodeDown": "nodes that it needs were down",
    "PartitionDown": "its partition was down",
    "PartitionInactive": "its partition was inactive",
    "PartitionNodeLimit": "asks for more or fewer nodes than its partition allows, or some were down",
    "PartitionTimeLimit": "asks for more time than its partition allows",
    "PartitionConfig": "asks for what its partition does not allow",
    "Reservation": "waited for its reservation to begin",
    "ReservationDeleted": "its reservation was deleted",
    "ReservationInvalid": "its reservation was not valid",
    "Licenses": "waited for a licence",
    "BadConstraints": "no node has what it asks for",
    "Constraints": "no node has what it asks for",
    "Prolog": "waited for the prolog on its nodes",
    "Cleaning": "what it had run before was still being cleaned up",
    "BurstBufferResources": "too little was free of the burst buffer",
    "BurstBufferStageIn": "its files were being copied to the burst buffer",
    "SchedDefer": "was to start at once, and Slurm does not try that (defer)",
    "AccountNotAllowed": "its account may not use its partition",
    "QOSNotAllowed": "its QOS may not be used there",
    "InvalidAccount": "its account was not valid",
    "InvalidQOS": "its QOS was not valid",
    "QOSUsageThreshold": "its account had used more than its QOS lets it start with",
    "AssocMaxJobsLimit": "the user had as many jobs as allowed in the account",
    "AccountingPolicy": "a limit of the account or the QOS",
    "MaxMemPerLimit": "asks for more memory on a node or for a core than allowed",
}  # fmt: skip
_FAMILIES: Final = (
    ("AssocGrp", "the account had all that it may have"),
    ("AssocMax", "asks for more than the account allows a job"),
    ("QOSGrp", "the QOS had all that it may have"),
    ("QOSMax.*PerUser", "the user had all that the QOS allows a user"),
    ("QOSMax", "asks for more than the QOS allows a job"),
    ("QOSMin", "asks for less than the QOS wants"),
    ("Max.*PerAccount", "the account had all that the QOS allows an account"),
    ("Association|QOS", "a limit of the account or the QOS"),
)
"""Words of limits by how they begin."""
_COUNTED: Final = (
    ("SubmitJob", "submitted jobs"), ("(?<!Per)Jobs?(?=Limit|Per)", "jobs"), ("C(?:pu|PU)", "cores"), ("Mem", "memory"),
    ("Node", "nodes"), ("GRES", "GPUs and the like"), ("Lic", "licences"), ("Wall", "time"),
    ("BB", "burst buffer"), ("Energy", "energy"), ("Billing", "billing units"),
)  # fmt: skip
"""What is limited, by a part of the word."""
_OVER_TIME: Final = (("RunMin", ", times the minutes that running jobs have left"), ("Min(?:ute)?s", ", times minutes"))


def meaning(word: str) -> str:
    """What a reason says in plain words; empty where we do not know it."""
    word = word.strip()
    if word in WORDS:
        return WORDS[word]
    family = next((text for begin, text in _FAMILIES if re.match(begin, word)), "")
    if not family:
        return ""
    what = next((text for part, text in _COUNTED if re.search(part, word)), "")
    times = next((text for part, text in _OVER_TIME if re.search(part, word)), "")
    return f"{family}: {what}{times}" if what else family
