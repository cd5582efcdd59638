"""`dovetail policies`: the names that --policy and --estimate take, and what each policy is and can do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from dovetail.cli.prepare import Json, print_json

if TYPE_CHECKING:
    from dovetail.policies.base import Policy


def policies_command(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Show this one: its settings, and what it can do.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List the built-in policies, orders and estimates; or show one policy."""
    from dovetail.policies.lists import ORDERS
    from dovetail.policies.registry import aliases, names, policy
    from dovetail.predict.registry import names as estimates

    if name is not None:
        about = _about(policy(name))
        print_json(about) if as_json else _show(about)
        return
    if as_json:
        others = {"orders": list(ORDERS), "aliases": dict(aliases()), "estimates": estimates()}
        print_json({"policies": names(), **others})
        return
    typer.echo("orders: " + ", ".join(ORDERS))
    typer.echo("estimates: " + ", ".join(estimates()))
    for one in names():
        typer.echo(f"{one}{f'  (= {aliases()[one]})' if one in aliases() else ''}")


def _about(policy: Policy) -> dict[str, Any]:
    """What a policy declares of itself."""
    from dataclasses import is_dataclass
    from inspect import getdoc

    from dovetail.names import settings_of

    known = settings_of(policy) if is_dataclass(policy) else dict[str, Any]()
    declared = ("clairvoyant", "needs_site", "keeps_promises", "makes_offers", "timed", "by_solver", "compiled")
    return {
        "name": policy.name,
        "is": (getdoc(policy) or "").partition("\n\n")[0].replace("\n", " "),
        "settings": {
            written: {"value": _plain(getattr(policy, field)), "help": one.help, "may be": one.kind.words}
            for written, (field, one) in known.items()
        },
        "declares": {word: getattr(policy, word) for word in declared},
        "cannot": dict(policy.cannot),
    }


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool | None) else getattr(value, "name", str(value))


def _show(about: dict[str, Any]) -> None:
    from textwrap import fill

    from dovetail.policies.base import CIRCUMSTANCES

    def say(text: str, indent: str = "") -> None:
        typer.echo(fill(text, 79, initial_indent=indent, subsequent_indent=indent))

    say(f"{about['name']}: {about['is']}")
    if about["settings"]:
        typer.echo(f"\nSettings, as in {about['name'].partition(':')[0]}:NAME=VALUE,...")
        for name, one in about["settings"].items():
            typer.echo(f"  {name}={'none' if one['value'] is None else one['value']}")
            say(f"{one['help']}; {one['may be']}", "      ")
    typer.echo("\nIt")
    words = {
        "clairvoyant": "is shown the future", "needs_site": "needs a site with prices (--energy)",
        "keeps_promises": "keeps promises from pass to pass", "makes_offers": "accepts or refuses deadlines",
        "timed": "watches the clock", "by_solver": "lets OR-Tools decide",
        "compiled": "is compiled: whole replays run at once",
    }  # fmt: skip
    for key, text in words.items():
        if about["declares"][key]:
            typer.echo(f"  {text}")
    for key, why in about["cannot"].items():
        say(f"does not run {CIRCUMSTANCES[key]}: it {why}", "  ")
