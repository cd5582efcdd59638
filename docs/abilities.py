"""What each family of policies can do, as policies declare it: `python docs/abilities.py` writes docs/abilities.md."""
# ruff: noqa: E501

from __future__ import annotations

from pathlib import Path
from typing import Final

from dovetail.policies.abilities import COLUMNS, EXAMPLES, table

PATH: Final = Path(__file__).with_name("abilities.md")
HEADS: Final = {"cap": "power cap", "every": "`--every`", "charge": "charged", "state": "from a state", "fork": "forks"}
TEXT: Final = """\
# What each policy can do

Made from what policies declare of themselves, by `python docs/abilities.py`: `dovetail policies NAME` says the same of one. A number says why not. Policies of yours in Python can do all that they look at: a start that is not legal is refused, with its reason.

{table}

{columns}

Why not:

{reasons}
"""


def page() -> str:
    """The text of the page."""
    reasons: dict[str, int] = {}
    heads = " | ".join(HEADS.get(key, key) for key in COLUMNS)
    rows = [f"| | {heads} |", "|---|" + "---|" * len(COLUMNS)]
    for name, row in table().items():
        cells = ["yes" if one.can else f"no ({reasons.setdefault(one.why, len(reasons) + 1)})" for one in row.values()]
        rows.append(f"| {EXAMPLES[name]} | {' | '.join(cells)} |")
    meant = [f"- {HEADS.get(key, key)}: {words}" for key, words in COLUMNS.items()]
    why = [f"{number}. It {words}." for words, number in reasons.items()]
    return TEXT.format(table="\n".join(rows), columns="\n".join(meant), reasons="\n".join(why))


if __name__ == "__main__":
    PATH.write_text(page(), encoding="utf-8")
