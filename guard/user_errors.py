"""The errors whose message is written for the user, in one sentence; any other exception is a defect."""

import sys

USER_ERRORS = (
    "showhow.db.database:StoreError",
    "showhow.worlds.source:SourceError",
    "showhow.worlds.folder:WorldError",
    "showhow.llm.errors:ChatError",
    "showhow.tools.arguments:ToolError",
    "showhow.tasks.task:TaskError",
    "showhow.settings:SettingsError",
    "showhow.guard.destinations:DestinationError",
    "showhow.evaluation.metrics.metric:MetricError",
    "showhow.oracles.skill_sources:UnknownSkillSource",
    "showhow.guard.input_bounds:InputBoundExceeded",
    "showhow.fewshot_library.formats.format:FormatError",
    "showhow.fewshot_library.library:LeakageError",
    "showhow.fewshot_library.selection:SelectionError",
    "showhow.reasoners.base:ReasonerError",
    "showhow.reasoners.skills.skill:RejectedReply",
    "showhow.reasoners.humaniq.options:AgentOptionsError",
    "showhow.reasoners.registry:UnknownReasoner",
)
"""Each as `module:class`; classes would make `showhow --help` load every room."""


def user_error_types() -> tuple[type[Exception], ...]:
    """The classes of those modules that are loaded: another one cannot have raised."""
    places = (target.split(":") for target in USER_ERRORS)
    return tuple(getattr(sys.modules[module], name) for module, name in places if module in sys.modules)
