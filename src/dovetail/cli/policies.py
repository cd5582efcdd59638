"""`dovetail policies`: the names that --policy takes."""

from __future__ import annotations

import typer

from dovetail.cli.prepare import Json, print_json


def policies_command(as_json: Json = False) -> None:
    """List the built-in policies and orders."""
    from dovetail.policies.lists import ORDERS
    from dovetail.policies.registry import ALIASES, names

    if as_json:
        print_json({"policies": names(), "orders": list(ORDERS), "aliases": ALIASES})
        return
    typer.echo("orders: " + ", ".join(ORDERS))
    for name in names():
        typer.echo(f"{name}{f'  (= {ALIASES[name]})' if name in ALIASES else ''}")
