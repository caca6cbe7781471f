"""The errors whose message is written for the user, in one sentence; any other exception is a defect."""

import sys

USER_ERRORS = (
    "db.database:StoreError",
    "worlds.source:SourceError",
    "worlds.folder:WorldError",
    "llm.errors:ChatError",
    "tools.arguments:ToolError",
    "tasks.task:TaskError",
    "settings:SettingsError",
    "guard.destinations:DestinationError",
    "evaluation.metrics.metric:MetricError",
    "evaluation.skill_sources:UnknownSkillSource",
    "guard.input_bounds:InputBoundExceeded",
    "fewshot_library.formats.format:FormatError",
    "fewshot_library.library:LeakageError",
    "fewshot_library.selection:SelectionError",
    "reasoners.base:ReasonerError",
    "reasoners.skills.skill:RejectedReply",
    "reasoners.humaniq.options:AgentOptionsError",
    "reasoners.registry:UnknownReasoner",
)
"""Each as `module:class`; classes would make `showhow --help` load every room."""


def user_error_types() -> tuple[type[Exception], ...]:
    """The classes of those modules that are loaded: another one cannot have raised."""
    places = (target.split(":") for target in USER_ERRORS)
    return tuple(getattr(sys.modules[module], name) for module, name in places if module in sys.modules)
