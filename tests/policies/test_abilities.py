"""What policies declare is what they do, and the page of it is up to date."""

from __future__ import annotations

import random
from itertools import count

import numpy as np
import pytest

from docs.abilities import PATH, page
from dovetail.energy.series import Hours
from dovetail.energy.site import Site
from dovetail.engine.replay import replay
from dovetail.errors import SettingError
from dovetail.policies.abilities import EXAMPLES, abilities
from dovetail.policies.registry import policy
from dovetail.referee import check_schedule
from tests.slow.node_cases import random_nodes_case, with_outages

SITE = Site("s", 900, price=Hours(np.array([1, 9, 4]) * 1_000_000), tariff=9_000_000)


def test_the_page_is_up_to_date() -> None:
    assert PATH.read_text(encoding="utf-8") == page(), "run python docs/abilities.py"


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name != "recorded"])
@pytest.mark.parametrize("column", ["nodes", "outages"])
def test_on_nodes(name: str, column: str) -> None:
    """It runs there, and the referee agrees; or it is refused."""
    chosen = policy(name)
    drawn = (random_nodes_case(random.Random(seed)) for seed in count())
    # Dispatchers know whole devices only, and Slurm gives just `per_node` units on each node.
    exact = name == "slurm"
    case = next(
        one for one in drawn if not (one.cluster.shared or (exact and (one.workload.get("per_node") > 1).any()))
    )
    case = with_outages(case, random.Random(4)) if column == "outages" else case
    site = SITE if chosen.needs_site else None
    if abilities(chosen)[column].can:
        assert check_schedule(replay(case.workload, chosen, cluster=case.cluster, site=site)) == []
    else:
        with pytest.raises(SettingError, match=r"outages|nodes"):
            replay(case.workload, chosen, cluster=case.cluster, site=site)
