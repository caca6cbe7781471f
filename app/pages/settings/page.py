"""The Settings page: the person, the installation, and the profiles of language models with a test of each."""

import json
from collections.abc import Mapping
from typing import Any

import streamlit as st

from showhow.app.pages.settings.installation import show_installation, show_person
from showhow.app.pages.settings.removed import show_removed
from showhow.app.pages.worlds.create_world import require_administrator
from showhow.app.services import current_services
from showhow.app.widgets.page_layout import choose_view, escape_markdown, show_head
from showhow.app.widgets.person import acting_services
from showhow.app.widgets.table import TableCell, show_table
from showhow.db.audit import digest_value, record_act
from showhow.db.database import Conflict
from showhow.db.models import User
from showhow.db.people.users import ADMIN
from showhow.guard.destinations import DestinationError, Grant
from showhow.guard.json_input import load_json
from showhow.llm.connection_check import ConnectionReport
from showhow.llm.profiles import (
    DEFAULT_CONTEXT_WINDOW,
    PRESETS,
    REASONING_EFFORTS,
    Preset,
    ProfileError,
    find_known_limits,
    find_problems,
    profile_to_json,
    with_known_limits,
)
from showhow.llm.types import DEFAULT_PROFILE_NAME, ModelProfile
from showhow.llm.usage import TokenPrice
from showhow.runs.services import Services

NEW = "+"
"""The value of the URL parameter `profile` while a profile is added."""
COLUMNS = ("profile", "model", "server", "context window", "reply limit", "price in / out", "key")
PRICES = {"input": "Input", "output": "Output", "cached": "Cached input", "cache_write": "Cache write"}
FIELD_WIDTH = 210
_OPTIONAL_FIELDS = (
    *("temperature", "reasoning_effort", "reply_limit", "context_window"),
    *("requests_per_minute", "tokens_per_minute", "concurrency"),
)
_PREFIX = "profile_"
_SEEDED, _ORIGINAL, _REPORT, _NOTICE = "profile_seeded", "profile_original", "profile_report", "profile_notice"


def show_profiles(services: Services, profiles: Mapping[str, ModelProfile]) -> None:
    """Draw the table of profiles; a click on a name opens it."""
    st.caption(
        "A profile says how a model is reached, what it costs, and within which limits. Runs record the profile that "
        "they were started with. Keys stay in the environment of the server; a profile names only their variable."
    )
    if profiles:
        rows = [_profile_row(services, profile) for profile in profiles.values()]
        show_table(COLUMNS, rows, key="profiles", label="Profiles of language models", go=_open_profile)
    else:
        st.info("No model is set up. Add a profile to have language models answer questions.")


def _profile_row(services: Services, profile: ModelProfile) -> list[TableCell | None]:
    used = services.complete_profile(profile)
    is_known = profile.context_window is not None or find_known_limits(profile.model).context_window is not None
    window = f"{used.context_window:,}" + ("" if is_known else " (assumed)")
    price = f"${profile.price.input:g} / ${profile.price.output:g}" if profile.price else "not set"
    is_default = profile.name == DEFAULT_PROFILE_NAME
    return [
        TableCell(profile.name, go=profile.name, hint="From the environment of the server" if is_default else ""),
        TableCell(profile.model),
        TableCell(profile.base_url or "the provider's own"),
        TableCell(window, number=True),
        TableCell(f"{used.reply_limit:,}", number=True),
        TableCell(price, number=True, hint="US dollars per million tokens"),
        TableCell(_key_state(used)),
    ]


def _key_state(profile: ModelProfile) -> str:
    if profile.key_variable is None:
        return "none named"
    if profile.key_refusal is not None:
        return f"{profile.key_variable} is not allowed there"
    return f"{profile.key_variable} {'is set' if profile.api_key else 'is not set'}"


def _open_profile(name: str) -> None:
    st.query_params["profile"] = name
    st.session_state.pop(_SEEDED, None)


def _close_profile() -> None:
    st.query_params.pop("profile", None)
    st.session_state.pop(_SEEDED, None)


def seed_form(name: str, profile: ModelProfile | None) -> None:
    """Fill the form once when a profile is opened; what is typed later is kept."""
    if st.session_state.get(_SEEDED) == name:
        return
    st.session_state[_SEEDED], st.session_state[_ORIGINAL] = name, profile
    st.session_state.pop(_REPORT, None)
    if profile is None:
        st.session_state["profile_preset"] = next(iter(PRESETS))
        _fill_from_preset()
    else:
        _fill_form(profile)


def _fill_from_preset() -> None:
    _fill_form(PRESETS[st.session_state["profile_preset"]].profile)


def _fill_form(profile: ModelProfile) -> None:
    for name in ("name", "model", "base_url", "key_variable"):
        st.session_state[_PREFIX + name] = getattr(profile, name) or ""
    for name in ("reasoning_effort", "reply_limit", "context_window", "tokens_per_minute", "concurrency"):
        st.session_state[_PREFIX + name] = getattr(profile, name)
    for name in ("temperature", "requests_per_minute", "seconds"):
        value = getattr(profile, name)
        st.session_state[_PREFIX + name] = None if value is None else float(value)
    for name in PRICES:
        price = getattr(profile.price, name, None)
        st.session_state[f"{_PREFIX}price_{name}"] = None if price is None else float(price)
    body = json.dumps(dict(profile.extra_body), ensure_ascii=False, indent=1) if profile.extra_body else ""
    st.session_state[_PREFIX + "extra_body"] = body


def show_form(services: Services, person: User, name: str) -> None:
    """Draw the form of a new profile or of a stored one, with the buttons that save, test and remove it."""
    original: ModelProfile | None = st.session_state[_ORIGINAL]
    st.header("New profile" if original is None else f"Profile {escape_markdown(name)}", anchor=False)
    is_fixed = name == DEFAULT_PROFILE_NAME or ADMIN not in person.roles
    if name == DEFAULT_PROFILE_NAME:
        st.caption("This profile comes from the server's environment: change SHOWHOW_MODEL and the others there.")
    elif is_fixed:
        st.caption("Only administrators can change and test profiles.")
    if original is None:
        st.segmented_control(
            "Start from",
            list(PRESETS),
            format_func=lambda preset: PRESETS[preset].title,
            key="profile_preset",
            required=True,
            on_change=_fill_from_preset,
        )
    _show_fields(disabled=is_fixed)
    profile, problems = read_form()
    if (preset := _find_preset(profile.base_url, profile.model)) is not None:
        st.caption(f":material/info: {escape_markdown(preset.notes)}")
    if ADMIN in person.roles:
        grant = None if problems else services.find_grant(profile)
        is_allowed = grant is None or _ask_consent(grant)
        _show_buttons(services, person, profile, problems, grant if is_allowed else None)
    _show_report(profile)


def _ask_consent(grant: Grant) -> bool:
    """Ask whether the key may go to the server of the profile; returns whether the box is ticked."""
    with st.container(border=True, gap="small", key="profile_consent"):
        is_allowed = st.checkbox(
            # As code, since Markdown would make a link of an address.
            f"Send {grant.variable} to `{grant.destination}`",
            # Another variable or server is another question, whose box is empty.
            key=f"profile_consent_{grant}",
        )
        st.caption(
            f"{grant.variable} is not allowed there yet, and neither Save nor Test connection sends it. Tick the box "
            "if that server may have its value; the choice is recorded when you save or test the profile."
        )
    return is_allowed


def _find_preset(base_url: str | None, model: str) -> Preset | None:
    return next(
        (
            preset
            for preset in PRESETS.values()
            if base_url == preset.profile.base_url and model.partition(":")[0] == preset.profile.model.partition(":")[0]
        ),
        None,
    )


def _show_fields(*, disabled: bool) -> None:
    def text(label: str, name: str, **options: Any) -> None:
        st.text_input(label, key=_PREFIX + name, disabled=disabled, persist_state="session", **options)

    def number(label: str, name: str, low: float, **options: Any) -> None:
        st.number_input(
            label,
            low,
            value=None,
            key=_PREFIX + name,
            disabled=disabled,
            persist_state="session",
            width=FIELD_WIDTH,
            **options,
        )

    model = st.session_state[_PREFIX + "model"]
    known = find_known_limits(model)
    used = with_known_limits(ModelProfile(model, context_window=st.session_state[_PREFIX + "context_window"]))
    with st.container(horizontal=True, gap="small", key="profile_server"):
        text("Name", "name", width=FIELD_WIDTH)
        text("Model", "model", width=2 * FIELD_WIDTH, help="provider:model, as LangChain names it.")
        text("Base URL", "base_url", width=2 * FIELD_WIDTH, placeholder="the provider's own")
        text(
            "Environment variable of the key",
            "key_variable",
            width=FIELD_WIDTH + 40,
            placeholder="none",
            help="The name of the variable, such as OPENAI_API_KEY, never the key itself.",
        )
    with st.container(horizontal=True, gap="small", key="profile_limits"):
        number(
            "Context window (tokens)",
            "context_window",
            1,
            placeholder=f"{known.context_window:,}"
            if known.context_window
            else f"{DEFAULT_CONTEXT_WINDOW:,} (assumed)",
            help="Prompt and reply together. Demonstrations are fitted into it before the first step.",
        )
        number("Reply limit (tokens)", "reply_limit", 1, placeholder=f"{used.reply_limit:,}", help="Always sent.")
        number("Temperature", "temperature", 0.0, max_value=2.0, placeholder="the model's own")
        st.selectbox(
            "Reasoning effort",
            REASONING_EFFORTS,
            index=None,
            key=_PREFIX + "reasoning_effort",
            placeholder="the model's own",
            disabled=disabled,
            persist_state="session",
            width=FIELD_WIDTH,
        )
        number("Seconds per reply", "seconds", 1.0, placeholder="120", format="%.4g")
        number("Requests at once", "concurrency", 1, placeholder="no limit")
        for name, label in PRICES.items():
            number(
                f"{label} ($ per 1M tokens)",
                f"price_{name}",
                0.0,
                placeholder="unknown" if name in ("input", "output") else "as other input",
                format="%.4g",
            )
        number("Requests per minute", "requests_per_minute", 0.0, placeholder="learnt", format="%.4g")
        number("Tokens per minute", "tokens_per_minute", 1, placeholder="learnt")
    st.text_area(
        "Extra body (JSON)",
        key=_PREFIX + "extra_body",
        height=68,
        placeholder='{"chat_template_kwargs": {"enable_thinking": false}}',
        help="Further fields of each request to an OpenAI-compatible server.",
        disabled=disabled,
        persist_state="session",
    )


def read_form() -> tuple[ModelProfile, dict[str, str]]:
    """The profile as typed, and one sentence for each field that cannot be used."""
    problems: dict[str, str] = {}
    values: dict[str, Any] = {name: st.session_state[_PREFIX + name] for name in _OPTIONAL_FIELDS}
    values |= {name: st.session_state[_PREFIX + name].strip() or None for name in ("base_url", "key_variable")}
    if st.session_state[_PREFIX + "seconds"] is not None:
        values["seconds"] = st.session_state[_PREFIX + "seconds"]
    prices = {name: st.session_state[f"{_PREFIX}price_{name}"] for name in PRICES}
    if None not in (prices["input"], prices["output"]):
        values["price"] = TokenPrice(**prices)
    elif any(price is not None for price in prices.values()):
        problems["price"] = "Write the prices of both input and output, or no price."
    body = st.session_state[_PREFIX + "extra_body"].strip()
    try:
        values["extra_body"] = load_json(body) if body else {}
    except ValueError as error:
        problems["extra_body"] = f"The extra body is not JSON ({error}); correct it, or empty the field."
    else:
        if not isinstance(values["extra_body"], dict):
            problems["extra_body"] = 'The extra body is not a JSON object; write one such as {"top_k": 20}.'
    if "extra_body" in problems:
        values["extra_body"] = {}
    model, name = (st.session_state[_PREFIX + field].strip() for field in ("model", "name"))
    profile = ModelProfile(model, name=name, **values)
    return profile, find_problems(profile, tuple(current_services().secrets)) | problems


def _show_buttons(
    services: Services,
    person: User,
    profile: ModelProfile,
    problems: Mapping[str, str],
    allowed: Grant | None,
) -> None:
    """Draw the buttons; `allowed` is recorded by those that save or test the profile."""
    original: ModelProfile | None = st.session_state[_ORIGINAL]
    is_default = original is not None and original.name == DEFAULT_PROFILE_NAME
    if is_default:
        problems = {}
    with st.container(horizontal=True, gap="small", key="profile_buttons"):
        is_saved = not is_default and st.button(
            "Save", key="profile_save", type="primary", shortcut="Ctrl+Enter", icon=":material/save:"
        )
        is_tested = st.button(
            "Test connection",
            key="profile_test",
            shortcut="Alt+V",
            icon=":material/network_check:",
            help="Sends one request with a tool, which may cost a little.",
        )
        if original is not None and not is_default:
            with st.popover("Remove", icon=":material/delete:"):
                st.caption("Runs keep the profile that they recorded, but cannot be continued without it.")
                st.button(
                    f"Remove {escape_markdown(original.name)}",
                    key="profile_remove",
                    on_click=_remove_profile,
                    args=(services, person, original),
                )
        st.button("Close", key="profile_close", on_click=_close_profile)
    if (is_saved or is_tested) and problems:
        for problem in problems.values():
            st.error(escape_markdown(problem))
    elif is_saved:
        _save_profile(services, person, profile, allowed)
    elif is_tested:
        _test_profile(services, person, original if is_default and original is not None else profile, allowed)


def _save_profile(services: Services, person: User, profile: ModelProfile, allowed: Grant | None) -> None:
    try:
        require_administrator(services, person)
        _record_consent(services, allowed)
        original = st.session_state[_ORIGINAL]
        with services.database.begin() as session:
            record_act(session, "saved", "model profile", profile.name, _digest_change(original, profile))
            services.profile_file.save(profile, replaces=original)
    except (Conflict, ProfileError, DestinationError) as error:
        st.error(escape_markdown(str(error)))
        return
    st.session_state[_NOTICE] = f"The profile {profile.name} is saved."
    st.query_params["profile"] = profile.name
    st.session_state[_SEEDED], st.session_state[_ORIGINAL] = profile.name, profile
    st.rerun()


def _remove_profile(services: Services, person: User, profile: ModelProfile) -> None:
    try:
        require_administrator(services, person)
        with services.database.begin() as session:
            record_act(session, "removed", "model profile", profile.name, _digest_change(profile, None))
            services.profile_file.remove(profile)
    except (Conflict, ProfileError) as error:
        st.session_state[_NOTICE] = str(error)
        return
    _close_profile()
    st.session_state[_NOTICE] = f"The profile {profile.name} is removed."


def _record_consent(services: Services, allowed: Grant | None) -> None:
    if allowed is not None:
        with services.database.begin() as session:
            record_act(session, "allowed a key", "server", allowed.destination, {"variable": allowed.variable})
            services.secret_table.allow([allowed])


def _digest_change(before: ModelProfile | None, after: ModelProfile | None) -> dict[str, str | None]:
    """What the audit log has of two versions of a profile."""
    profiles = {"before": before, "after": after}
    return {name: digest_value(profile_to_json(profile)) if profile else None for name, profile in profiles.items()}


def _test_profile(services: Services, person: User, profile: ModelProfile, allowed: Grant | None) -> None:
    try:
        require_administrator(services, person)
        _record_consent(services, allowed)
    except (Conflict, DestinationError) as error:
        st.error(escape_markdown(str(error)))
        return
    with st.spinner(f"Asking {profile.model} …", show_time=True):
        report = services.check_model(profile)
    st.session_state[_REPORT] = profile_to_json(profile), report


def _show_report(profile: ModelProfile) -> None:
    """Draw the last report, as long as the form is as it was tested."""
    tested, report = st.session_state.get(_REPORT, (None, None))
    original: ModelProfile | None = st.session_state[_ORIGINAL]
    is_default = original is not None and original.name == DEFAULT_PROFILE_NAME
    if report is None or tested != profile_to_json(original if is_default and original else profile):
        return
    _draw_report(report)


def _draw_report(report: ConnectionReport) -> None:
    if report.error is not None:
        st.error(escape_markdown(report.error))
        return
    st.success(f"{escape_markdown(report.model)} answered in {report.seconds:.1f} s.")
    states = {True: "yes", False: "no", None: "not shown"}
    rows: list[list[TableCell | None]] = [
        [TableCell(name), TableCell(states[value]), TableCell(explanation)]
        for name, value, explanation in report.findings()
    ]
    show_table(("capability", "available", "what it means"), rows, key="connection", label="What the server can do")


def show_models(services: Services, person: User) -> None:
    """Draw the profiles of language models and the form of the opened one, to people with a role."""
    if not person.roles:
        st.info("People with a role see here how language models are reached.")
        return
    try:
        profiles = services.model_profiles()
    except ProfileError as error:
        st.error(escape_markdown(str(error)))
        return
    show_profiles(services, profiles)
    if notice := st.session_state.pop(_NOTICE, None):
        st.toast(escape_markdown(notice))
    opened = st.query_params.get("profile")
    if ADMIN in person.roles and opened != NEW:
        st.button(
            "Add a profile",
            key="profile_add",
            shortcut="Alt+N",
            icon=":material/add:",
            on_click=_open_profile,
            args=(NEW,),
        )
    if opened in profiles or (opened == NEW and ADMIN in person.roles):
        seed_form(opened, profiles.get(opened))
        show_form(services, person, opened)


VIEWS = {"models": "Language models", "you": "You", "installation": "Installation", "removed": "Archived and deleted"}
services, person = acting_services()
show_head("Settings", "How language models are reached, who you are, and what is stored.")
view = choose_view(VIEWS)
if view == "you":
    show_person(person)
elif view == "installation":
    show_installation(services, person)
elif view == "removed":
    show_removed(services)
else:
    show_models(services, person)
