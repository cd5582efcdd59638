"""`dovetail policies`: the names that --policy and --estimate take, and what each policy is and can do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from dovetail.cli import screen
from dovetail.cli.prepare import Json, print_json

if TYPE_CHECKING:
    from dovetail.policies.base import Policy


_LABEL = 23


def policies_command(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Show this one: its settings, and what it can do.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List the policies by family, and the orders and estimates; or show one policy."""
    from dovetail.policies.lists import ORDERS
    from dovetail.policies.registry import aliases, families, names, policy
    from dovetail.predict.registry import names as estimates

    if name is not None:
        about = _about(policy(name))
        print_json(about) if as_json else _show(about)
        return
    if as_json:
        others: dict[str, Any] = {
            "families": families(),
            "orders": list(ORDERS),
            "aliases": dict(aliases()),
            "estimates": estimates(),
        }
        print_json({"policies": names(), **others})
        return
    screen.tell("Start here: easy is what most clusters run, and the usual baseline. plan-af often waits least.")
    screen.tell("dovetail policies NAME shows one with its settings; any can be written NAME:setting=value.")
    for family, uses in families().items():
        typer.echo(f"\n{family}")
        screen.facts(((f"  {key}", line) for key, line in uses.items()), label=_LABEL)
    typer.echo("\nYour own")
    screen.facts([("  file.py:Name", "an object with decide(state); docs/write-a-policy.md")], label=_LABEL)
    typer.echo()
    screen.facts([("orders", ", ".join(ORDERS)), ("estimates", ", ".join(estimates()))], label=_LABEL)
    papers = (f"{name} is {of}" for name, of in aliases().items() if not any(order in of for order in ORDERS[1:]))
    screen.facts([("other names", "; ".join(papers))], label=_LABEL)


def _about(policy: Policy) -> dict[str, Any]:
    """What a policy declares of itself."""
    from dataclasses import is_dataclass
    from inspect import getdoc

    from dovetail.names import settings_of
    from dovetail.policies.registry import use_of

    known = settings_of(policy) if is_dataclass(policy) else dict[str, Any]()
    declared = ("clairvoyant", "needs_site", "keeps_promises", "makes_offers", "timed", "by_solver", "compiled")
    return {
        "name": policy.name,
        "is": (getdoc(policy) or "").partition("\n\n")[0].replace("\n", " "),
        "use": use_of(policy.name),
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
    from dovetail.policies.base import CIRCUMSTANCES

    def say(text: str, indent: str = "") -> None:
        screen.tell(text, indent, indent)

    say(f"{about['name']}: {about['is']}")
    if about["use"]:
        say(f"Use: {about['use']}.")
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
