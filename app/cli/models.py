"""`showhow models list | check | allow`: profiles of language models, what their servers can do, and their keys."""

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from showhow.app.cli.consent import require_consent
from showhow.app.cli.output import AsJson, CommandError, emit
from showhow.app.services import current_services
from showhow.llm.connection_check import ConnectionReport
from showhow.llm.profiles import find_known_limits, profile_to_json, with_known_limits
from showhow.llm.types import ModelProfile
from showhow.tasks.progress import print_progress

app = typer.Typer(no_args_is_help=True, help="List the profiles of language models, and test their servers.")


@app.command("list")
def list_(*, as_json: AsJson = False) -> None:
    """List the profiles of language models; the first is used where none is named."""
    services = current_services()
    profiles = list(services.model_profiles().values())
    lines = [line for profile in profiles for line in _format_profile(profile)]
    emit(
        [_profile_value(profile) for profile in profiles],
        "\n".join(lines) or "There is no profile; add one on the Settings page, or set SHOWHOW_MODEL.",
        as_json=as_json,
    )


@app.command()
def check(
    name: Annotated[str | None, typer.Argument(help="The profile; by default all are tested.")] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Send each model one request with a tool, and print what its server can do; exit status 1 if one fails."""
    services = current_services()
    names = [name] if name is not None else list(services.model_profiles())
    if not names:
        raise CommandError("there is no profile to check; add one on the Settings page, or set SHOWHOW_MODEL")
    reports = []
    for profile_name in names:
        print_progress(f"asking {profile_name}")
        profile = services.model_profile(profile_name)
        if profile is not None:
            reports.append(services.check_model(profile))
    emit(
        [report.to_json() for report in reports],
        "\n".join(line for report in reports for line in _format_report(report)),
        as_json=as_json,
    )
    failed = [report for report in reports if report.error]
    if failed:
        raise CommandError(f"{len(failed)} of {len(reports)} models do not answer; see above")


@app.command()
def allow(
    name: Annotated[str, typer.Argument(help="The profile.")],
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Allow it without a question.")] = False,
) -> None:
    """Allow the key of a profile to be sent to its server; the variable and the server are named, and asked once."""
    services = current_services()
    profile = services.model_profile(name)
    grant = None if profile is None else services.find_grant(profile)
    if profile is not None and grant is not None:
        require_consent(services.secret_table, f"the profile {name}", [grant], yes=yes)
        emit(grant, f"{grant} is allowed", as_json=False)
    elif profile is not None and profile.key_refusal is not None:
        raise CommandError(profile.key_refusal.rstrip("."))
    else:
        emit(None, f"the profile {name} needs nothing that is not allowed", as_json=False)


def _profile_value(profile: ModelProfile) -> dict[str, Any]:
    """The profile as stored, and its limits as they are used."""
    used = with_known_limits(profile)
    limits = {"context_window": used.context_window, "reply_limit": used.reply_limit}
    return {"name": profile.name, **profile_to_json(profile), **limits}


def _format_profile(profile: ModelProfile) -> list[str]:
    used = with_known_limits(profile)
    is_assumed = profile.context_window is None and find_known_limits(profile.model).context_window is None
    price = f"${profile.price.input:g} / ${profile.price.output:g} per million tokens" if profile.price else "no price"
    return [
        f"{profile.name}: {profile.model}{f' at {profile.base_url}' if profile.base_url else ''}",
        f"    context {used.context_window:,} tokens{' (assumed)' if is_assumed else ''}, replies of at most "
        f"{used.reply_limit:,}; {price}",
    ]


def _format_report(report: ConnectionReport) -> Iterator[str]:
    yield f"{report.profile}: {report.model}, {report.seconds:.1f} s"
    if report.error:
        yield f"    {report.error}"
        return
    for name, value, explanation in report.findings():
        state = "not shown" if value is None else "yes" if value else "no"
        yield f"    {name}: {state}{f'. {explanation}' if explanation else ''}"
