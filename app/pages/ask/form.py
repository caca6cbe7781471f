"""The form of the Ask page: question, world, reasoner, options and limits; a trace in the link fills it again."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import streamlit as st

from showhow.app.widgets.choices import list_library_references, list_places_to_ask, parse_place, place_to_ask
from showhow.app.widgets.page_layout import escape_markdown, format_sentence
from showhow.app.widgets.reasoner_form import FIELD_WIDTH, show_options, show_preset, show_selection_options
from showhow.db.database import Database
from showhow.db.models import Project
from showhow.db.run_spec import DEFAULT_MAX_SECONDS, MODEL_SKILLS, RunLimits, RunSpec
from showhow.db.traces.trace_record import TraceRecord
from showhow.db.traces.traces import load_trace
from showhow.evaluation.comparison.gold_comparison import find_gold_responder
from showhow.evaluation.scoring.answer_notation import find_project_notation
from showhow.llm.types import DEFAULT_PROFILE_NAME, ModelProfile
from showhow.oracles.skill_sources import ASK_SKILLS, SKILL_SOURCES
from showhow.reasoners.registry import DEFAULT_PRESET, REASONERS, ReasonerEntry, default_reasoner, reasoner_title
from showhow.runs.ask import ActiveRun, AskRequest
from showhow.runs.preparation import find_entry, needs_model
from showhow.runs.services import Services

FORM = "ask"
"""The beginning of the keys of its fields."""
DEMONSTRATION, MODEL = "demonstration", "model"
ANSWER_MODES = {DEMONSTRATION: "Replay (no model)", MODEL: "Language model"}
MODEL_LIMITS = {"tokens": "Tokens", "money": "US dollars", "model_calls": "Model calls", "retrievals": "Retrievals"}
"""The limits of reasoners with a model, with their labels; without a value there is none."""
MAX_STEP_LIMIT = 100_000


@dataclass(frozen=True, slots=True)
class AskFormField:
    """A field of the form with its initial value."""

    name: str
    value: Any

    @property
    def key(self) -> str:
        """The key of its widget."""
        return f"ask_{self.name}"


def seed_ask_form(record: TraceRecord | None, project: Project | None, *, has_model: bool) -> None:
    """Fill the fields from the trace in the link, once per trace; the person's later changes are kept.

    Where no trace is open, the current project says where to ask, once per project, unless the link does.
    """
    trace_id = str(record.trace.id) if record is not None else ""
    if record is None and project is not None and st.session_state.get("ask_seeded_project") != project.name:
        st.session_state["ask_seeded_project"] = project.name
        st.session_state["ask_world"] = st.query_params.get("world") or place_to_ask(project)
        st.session_state.pop("ask_library", None)
    if st.session_state.get("ask_seeded") == trace_id:
        return
    st.session_state["ask_seeded"] = trace_id
    for field in _form_fields(record, has_model=has_model):
        if record is not None or field.key not in st.session_state:
            st.session_state[field.key] = field.value


def _form_fields(record: TraceRecord | None, *, has_model: bool) -> list[AskFormField]:
    stored = RunSpec() if record is None else record.spec
    entry = REASONERS.get(stored.reasoner) or default_reasoner(has_model=has_model)
    limits = stored.limits.to_json() if stored.reasoner else {}
    return [
        AskFormField("question", record.question.text if record is not None else st.query_params.get("question", "")),
        AskFormField("world", place_to_ask(record.project) if record is not None else st.query_params.get("world")),
        AskFormField("by", MODEL if entry.needs_model else DEMONSTRATION),
        *(AskFormField(_agent_field(needs_model), _shown_agent(entry, needs_model)) for needs_model in (True, False)),
        AskFormField("library", stored.library),
        AskFormField("profile", stored.profile_name),
        *(
            AskFormField(step_limit_field(reasoner.name), _shown_step_limit(reasoner, stored))
            for reasoner in REASONERS.values()
        ),
        *(field for reasoner in REASONERS.values() for field in _option_fields(reasoner, stored)),
        *(field for reasoner in REASONERS.values() for field in _skill_fields(reasoner, stored)),
        AskFormField("seconds", int(limits.get("seconds", DEFAULT_MAX_SECONDS))),
        *(AskFormField(name, limits.get(name)) for name in MODEL_LIMITS),
    ]


def _agent_field(needs_model: bool) -> str:  # noqa: FBT001 - a key by its one property
    return "agent" if needs_model else "free_agent"


def _shown_agent(entry: ReasonerEntry, needs_model: bool) -> str:  # noqa: FBT001
    return entry.name if entry.needs_model == needs_model else default_reasoner(has_model=needs_model).name


def step_limit_field(reasoner: str) -> str:
    """The field of the step limit; each reasoner has its own, since their defaults differ."""
    return f"steps_{reasoner}"


def _shown_step_limit(entry: ReasonerEntry, stored: RunSpec) -> int:
    limit = stored.limits.steps if entry.name == stored.reasoner else None
    return int(limit or entry.default_step_limit)


def _option_fields(entry: ReasonerEntry, stored: RunSpec) -> Iterator[AskFormField]:
    """The fields of the options and of the preset of a reasoner, each with the value of its own runs."""
    shown = stored if entry.name == stored.reasoner else RunSpec()
    values = {option.name: shown.options.get(option.name, option.default) for option in entry.own_options}
    preset = shown.preset if shown.preset in entry.presets else DEFAULT_PRESET
    for name, value in {**values, "preset": preset}.items():
        yield AskFormField(f"{entry.name}_{name}", value)


def person_skills_field(reasoner: ReasonerEntry) -> str:
    """The field of the skills of this reasoner that the person plays."""
    return f"{reasoner.name}_person_skills"


def _skill_fields(entry: ReasonerEntry, stored: RunSpec) -> list[AskFormField]:
    """The fields that say what replies to the skills of a reasoner."""
    shown = stored if entry.name == stored.reasoner else RunSpec()
    names = [skill.name for skill in entry.skills if skill.name in shown.person_skills]
    source = shown.skills if shown.skills in ASK_SKILLS else MODEL_SKILLS
    return [
        AskFormField(person_skills_field(entry), names),
        AskFormField(f"{entry.name}_skills", source),
    ]


def limits_in_form(reasoner: str, stored: RunSpec) -> RunLimits:
    """The limits for this reasoner in the form; raise one to continue a run that has reached it."""
    names = {"steps": step_limit_field(reasoner), **{name: name for name in ("seconds", *MODEL_LIMITS)}}
    entry = REASONERS.get(reasoner)
    defaults = stored.limits.to_json() | ({"steps": _shown_step_limit(entry, stored)} if entry is not None else {})
    return RunLimits(**{name: st.session_state.get(f"ask_{key}", defaults.get(name)) for name, key in names.items()})


def spec_in_form(record: TraceRecord) -> RunSpec:
    """How the trace's question was asked, with the limits for its reasoner in the form."""
    return record.spec.method.replace(limits=limits_in_form(record.spec.reasoner, record.spec))


def start_run(services: Services, run: ActiveRun) -> UUID:
    """Start a stored run in the background, with the responder that its configuration names; returns its trace."""
    with services.database.read() as session:
        record = load_trace(session, run.trace_id)
    run.responder = find_gold_responder(services, record.spec.skills, record.project.world, record.question.text)
    return services.active_runs.start(run)


def show_ask_form(
    services: Services, profiles: Mapping[str, ModelProfile], *, explained: bool = True
) -> AskRequest | None:
    """Draw the form, `explained` or with no more than its fields; returns the request if Ask is pressed, else None."""
    places = list_places_to_ask(services)
    if not places:
        st.info("There is no world yet. Make one on the Worlds page, or run `showhow setup`.")
        return None
    # What a language model needs besides has a row of its own, so that all other fields stay where they are.
    fields = st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="ask_fields")
    of_model = st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="ask_model_fields")
    with fields:
        question = st.text_area(
            "Question",
            key="ask_question",
            height=68,
            placeholder="What do you want to know? Ctrl+Enter asks.",
            persist_state="session",
        )
        place = _show_select_box("World", list(places), "world", width=130, format_func=places.__getitem__)
        mode = _choose_answer_mode()
    with of_model:
        profile = _select_profile(profiles) if mode == MODEL else None
        entry = _choose_reasoner(mode)
        preset = show_preset(FORM, entry)
        options = show_selection_options(FORM, entry)
    with fields:
        spec = _show_spec(services.database, entry, options, place).replace(preset=preset)
        is_pressed = st.button(
            "Ask",
            key="ask",
            type="primary",
            shortcut="Ctrl+Enter",
            icon=":material/send:",
            disabled=needs_model(spec) and not profiles,
        )
    if explained:
        st.caption(describe_reasoner(find_entry(spec)))
    if not profiles and (needs_model(spec) or (explained and mode == DEMONSTRATION)):
        _explain_missing_model(mode)
    if not is_pressed:
        return None
    if not question.strip():
        st.error("Write a question first.")
        return None
    world, project = parse_place(place)
    spec = spec.replace(
        profile=None if profile is None else {"name": profile},
        date_notation=find_project_notation(services.database, project),
    )
    return AskRequest(question, world, spec, project)


def _choose_answer_mode() -> str:
    """Draw the choice between replay and a language model; returns DEMONSTRATION or MODEL."""
    return str(
        st.segmented_control(
            "Answer",
            list(ANSWER_MODES),
            format_func=ANSWER_MODES.__getitem__,
            key="ask_by",
            required=True,
            persist_state="session",
        )
    )


def _show_spec(database: Database, entry: ReasonerEntry, options: dict[str, Any], place: str) -> RunSpec:
    """Draw the library that the reasoner uses, and a drawer of its options and limits, besides `options`."""
    library = _select_library(database, place, is_used=entry.uses_demonstrations)
    person_skills: tuple[str, ...] = ()
    skills = MODEL_SKILLS
    with st.popover("Options", icon=":material/tune:"):
        options |= show_options(FORM, entry, without=options)
        if entry.skills:
            person_skills, skills = _select_person_skills(entry), _select_skill_source(entry)
        limits = _show_limit_fields(entry)
    return RunSpec(
        reasoner=entry.name, options=options, library=library, person_skills=person_skills, skills=skills, limits=limits
    )


def _choose_reasoner(mode: str) -> ReasonerEntry:
    """Draw the choice of the reasoner; of the only one there is nothing to choose."""
    offered = [entry for entry in REASONERS.values() if entry.needs_model == (mode == MODEL)]
    if len(offered) == 1:
        return offered[0]
    name = _show_select_box(
        "Reasoner",
        [entry.name for entry in offered],
        _agent_field(offered[0].needs_model),
        format_func=lambda name: REASONERS[name].label,
        width=318,
    )
    return REASONERS[name]


def describe_reasoner(entry: ReasonerEntry) -> str:
    """What the reasoner does, what a question costs and what it needs, in one sentence for Markdown."""
    cost = f"; it costs {entry.cost}" if entry.cost else ""
    needs = f", and needs {entry.needs}" if entry.needs else ""
    return format_sentence(f"{reasoner_title(entry.name)}: {entry.description}{cost}{needs}")


def _select_profile(profiles: Mapping[str, ModelProfile]) -> str | None:
    """Draw the choice of the model; None without a profile."""
    if not profiles:
        return None
    chosen: str = _show_select_box(
        "Model",
        list(profiles),
        "profile",
        width=160,
        format_func=lambda name: name if name != DEFAULT_PROFILE_NAME else profiles[name].model,
        help="  \n".join(f"{escape_markdown(name)}: {escape_markdown(profiles[name].model)}" for name in profiles),
    )
    return chosen


def _explain_missing_model(mode: str) -> None:
    """Say how to set up a model."""
    if mode == DEMONSTRATION:
        st.caption("No model is set up. Add one on the Settings page to have a language model answer.")
    else:
        st.caption(
            ":material/warning: No model is set up. Add one on the Settings page, or set SHOWHOW_MODEL (such as "
            "openai:gpt-4.1) and start the server again, or choose Replay."
        )


def _show_select_box(label: str, options: list[Any], name: str, **arguments: Any) -> Any:
    if st.session_state.get(f"ask_{name}") not in options:
        st.session_state[f"ask_{name}"] = options[0]
    return st.selectbox(label, options, key=f"ask_{name}", persist_state="session", **arguments)


def _select_library(database: Database, place: str, *, is_used: bool) -> str | None:
    """Draw the choice of the library, also in its place where the reasoner uses none."""
    references = list_library_references(database, place)
    if not references:
        st.caption("No library yet: freeze one on the Library page.")
        return None
    chosen = _show_select_box("Library", references, "library", width=150, disabled=not is_used)
    return str(chosen) if is_used else None


def _select_person_skills(entry: ReasonerEntry) -> tuple[str, ...]:
    """Draw the choice of the skills whose replies the person writes."""
    chosen = st.multiselect(
        "Skills that you play",
        [skill.name for skill in entry.skills],
        format_func=lambda name: name.replace("_", " "),
        key=f"ask_{person_skills_field(entry)}",
        placeholder="none",
        width=FIELD_WIDTH,
        help="The run waits at each call of these skills until you have written its reply.  \n"
        + "  \n".join(
            f"{skill.name.replace('_', ' ')}: {escape_markdown(skill.description)}" for skill in entry.skills
        ),
        persist_state="session",
    )
    return tuple(chosen)


def _select_skill_source(entry: ReasonerEntry) -> str:
    """Draw the choice of what replies to the skills that the person does not play."""
    chosen: str = st.selectbox(
        "Other skills are played by",
        ASK_SKILLS,
        format_func=lambda name: SKILL_SOURCES[name].description,
        key=f"ask_{entry.name}_skills",
        width=FIELD_WIDTH,
        help="Gold reasoning plays the skills of the questions of a generated world, and needs no model.",
        persist_state="session",
    )
    return chosen


def _show_limit_fields(entry: ReasonerEntry) -> RunLimits:
    st.caption("Stop after:")
    key = f"ask_{step_limit_field(entry.name)}"
    steps = st.number_input("Steps", 1, MAX_STEP_LIMIT, key=key, persist_state="session")
    seconds = st.number_input("Seconds", 1, 86_400, key="ask_seconds", persist_state="session")
    limits = RunLimits(int(steps), seconds=float(seconds))
    if not entry.needs_model:
        return limits
    values: dict[str, Any] = {
        name: st.number_input(
            label,
            0.0 if name == "money" else 1,
            value=None,
            key=f"ask_{name}",
            placeholder="no limit",
            persist_state="session",
        )
        for name, label in MODEL_LIMITS.items()
    }
    return replace(limits, **{name: value or None for name, value in values.items()})
