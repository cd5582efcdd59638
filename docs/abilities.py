"""What each family of policies can do, as policies declare it: `python docs/abilities.py` writes docs/abilities.md."""
# ruff: noqa: E501

from __future__ import annotations

from pathlib import Path
from typing import Final

from dovetail.policies.abilities import COLUMNS, EXAMPLES, table

PATH: Final = Path(__file__).with_name("abilities.md")
HEADS: Final = {"cap": "power cap", "every": "`--every`", "charge": "charged", "state": "from a state", "fork": "forks"}
PARTS: Final = {
    "Machines": ("processors", "nodes", "outages", "cap", "licences"),
    "Jobs and users": ("deadlines", "predictors", "feedback"),
    "Passes and states": ("every", "charge", "state", "fork"),
}
TEXT: Final = """\
# What each policy can do

Made from what policies declare of themselves, by `python docs/abilities.py`: `dovetail policies NAME` says the same of one. A number says why not. Policies of yours in Python can do all that they look at: a start that is not legal is refused, with its reason.

{parts}

## Why not

{reasons}
"""


def page() -> str:
    """The text of the page."""
    reasons: dict[str, int] = {}
    found = table()
    parts = []
    for title, keys in PARTS.items():
        rows = ["| | " + " | ".join(HEADS.get(key, key) for key in keys) + " |", "|---|" + "---|" * len(keys)]
        for name, row in found.items():
            cells = [
                "yes" if row[key].can else f"no ({reasons.setdefault(row[key].why, len(reasons) + 1)})" for key in keys
            ]
            rows.append(f"| {EXAMPLES[name]} | {' | '.join(cells)} |")
        meant = [f"- {HEADS.get(key, key)}: {COLUMNS[key]}" for key in keys]
        parts.append("\n".join([f"## {title}", "", *rows, "", *meant]))
    why = [f"{number}. It {words}." for words, number in reasons.items()]
    return TEXT.format(parts="\n\n".join(parts), reasons="\n".join(why))


if __name__ == "__main__":
    PATH.write_text(page(), encoding="utf-8")
