"""`dovetail policies`: the names that --policy and --estimate take."""

from __future__ import annotations

import typer

from dovetail.cli.prepare import Json, print_json


def policies_command(as_json: Json = False) -> None:
    """List the built-in policies, orders and estimates."""
    from dovetail.policies.lists import ORDERS
    from dovetail.policies.registry import aliases, names
    from dovetail.predict.registry import names as estimates

    if as_json:
        print_json({"policies": names(), "orders": list(ORDERS), "aliases": dict(aliases()), "estimates": estimates()})
        return
    typer.echo("orders: " + ", ".join(ORDERS))
    typer.echo("estimates: " + ", ".join(estimates()))
    for name in names():
        typer.echo(f"{name}{f'  (= {aliases()[name]})' if name in aliases() else ''}")
