"""What the page on predictors of Packing computes, by hand."""

from __future__ import annotations

from dovetail.studies.papers.packing_table_3 import _said_of_tables, _table
from dovetail.studies.papers.tables import TABLE_III, TABLE_IV, TARGETS, TRACES


def test_the_tables_have_every_cell() -> None:
    rows = {"easy-sjbf": 4, "list-saf": 4, "list-laf": 7, "list-reg": 7}
    for table in (TABLE_III, TABLE_IV):
        for name, many in rows.items():
            assert len([key for key in table if key[0] == name]) == many * len(TRACES)
    assert set(TARGETS) == set(rows)
    assert TABLE_III["list-reg", "CVH", "SDSC-SP2"] == 1837.6
    assert TABLE_IV["list-laf", "SP-4%", "CEA-Curie"] == -1.73


def test_what_is_said_of_the_tables_depends_on_ours() -> None:
    changes = {("list-reg", "Runtime", "KTH-SP2"): (-0.6, -0.6), ("list-reg", "Last2", "KTH-SP2"): (25.0, 17.9)}
    fits = {("list-reg", "Last2", "KTH-SP2"): (0.33, 0.33)}
    assert [one.verdict for one in _said_of_tables(changes, fits)] == ["yes"] * 4
    assert _said_of_tables({}, {}) == []
    changes["list-reg", "SP-2%", "KTH-SP2"] = (0.4, 0.6)
    assert [one.verdict for one in _said_of_tables(changes, fits)] == ["yes"] * 5
    changes["list-reg", "SP-2%", "KTH-SP2"] = (3.0, 0.6)
    changes["list-reg", "Last2", "KTH-SP2"] = (-25.0, 17.9)
    changes["list-reg", "Runtime", "KTH-SP2"] = (-0.8, -0.6)
    fits["list-reg", "Last2", "KTH-SP2"] = (0.4, 0.33)
    verdicts = [one.verdict for one in _said_of_tables(changes, fits)]
    assert verdicts == ["in part", "no", "in part", "in part", "no"]
    assert "| Last2 | -25.0 (+17.9) | - (+439.4) |" in _table("P2SF", changes, "list-reg", TABLE_III, "+.1f")
