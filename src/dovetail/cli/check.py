"""`dovetail check`: does a policy keep the contract?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from dovetail.cli.prepare import Json, print_json

if TYPE_CHECKING:
    from dovetail.engine.contract import Finding


Cases = Annotated[int, typer.Option(min=1, help="Random workloads per clause.")]
Seed = Annotated[int, typer.Option(min=0, help="Which random workloads.")]


def check_command(
    policy: Annotated[str, typer.Argument(help="path/to/file.py:Name, or the name of a built-in policy.")],
    cases: Cases = 100,
    seed: Seed = 1,
    as_json: Json = False,
) -> None:
    """Check that a policy keeps the contract, on small random workloads."""
    from dovetail.engine.contract import check_policy
    from dovetail.policies.registry import policy as policy_named

    show(policy, "policy", check_policy(policy_named(policy), cases=cases, seed=seed), cases, as_json)


def show(name: str, kind: str, findings: Sequence[Finding], cases: int, as_json: bool) -> None:
    """Print what was found; a broken clause ends the command with 1."""
    from dovetail.units import printable

    broken = [finding for finding in findings if finding.broken]
    if as_json:
        print_json({kind: name, "cases": cases, "clauses": {f.clause: f.broken or "kept" for f in findings}})
    else:
        for finding in findings:
            typer.echo(f"{'BROKEN' if finding.broken else 'kept  '}  {finding.clause}")
            if finding.broken:
                typer.echo(f"        {printable(finding.broken, 500)}")
        typer.echo(f"{len(findings) - len(broken)} of {len(findings)} clauses kept on {cases} random workloads each")
    if broken:
        raise typer.Exit(1)
