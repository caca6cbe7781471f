"""ATIF trajectories of other agents, as chats."""

from collections.abc import Iterator
from typing import Any, Literal

from fewshot_library.formats.chat import Call, Message
from fewshot_library.formats.chat_record import Chat
from fewshot_library.formats.contents import Open, beside_calls, said
from fewshot_library.formats.documents import moment


class ToolCall(Open):
    """A call of a tool."""

    tool_call_id: str
    function_name: str
    arguments: dict[str, Any]


class Result(Open):
    """What came back, of a call where one is named."""

    source_call_id: str | None = None
    content: Any = None
    extra: dict[str, Any] | None = None


class Observation(Open):
    """What a step saw."""

    results: list[Result]


class TrajectoryStep(Open):
    """One turn of one side."""

    step_id: int
    source: Literal["system", "user", "agent"]
    message: Any
    timestamp: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[ToolCall] | None = None
    observation: Observation | None = None
    extra: dict[str, Any] | None = None


class Trajectory(Open):
    """One trajectory; of what is not named here, all is remembered."""

    schema_version: str
    agent: dict[str, Any]
    steps: list[TrajectoryStep]
    trajectory_id: str | None = None
    extra: dict[str, Any] | None = None


def chat_of_trajectory(trajectory: Trajectory) -> Chat:
    """The trajectory as a chat, with what a chat does not tell beside it."""
    messages = [message for step in trajectory.steps for message in _messages(step)]
    agent = dict(trajectory.agent)
    tools = agent.pop("tool_definitions", None)
    rest = {"agent": agent, "trajectory_id": trajectory.trajectory_id, "extra": trajectory.extra}
    chat = Chat(messages, tools if isinstance(tools, list) else [])
    chat.rest = {name: value for name, value in rest.items() if value} | trajectory.rest
    times = [message.at for message in messages if message.at is not None]
    if times:
        chat.started_at, chat.finished_at = min(times), max(times)
    return chat


def _messages(step: TrajectoryStep) -> Iterator[Message]:
    place = f"step {step.step_id}"
    content = said(step.message, place)
    reasoning = "\n\n".join(part for part in (step.reasoning_content, content.reasoning) if part)
    at = moment(step.timestamp, place) if step.timestamp is not None else None
    rest = (
        step.rest | content.rest | beside_calls(step.tool_calls or []) | ({"extra": step.extra} if step.extra else {})
    )
    calls = [Call(call.tool_call_id, call.function_name, call.arguments) for call in step.tool_calls or []]
    role = "assistant" if step.source == "agent" else step.source
    yield Message(role, content.text, reasoning, calls, at=at, rest=rest)
    for result in step.observation.results if step.observation else []:
        yield _answer(result, place, calls, at)


def _answer(result: Result, place: str, calls: list[Call], at: Any) -> Message:
    extra = dict(result.extra or {})
    rating = extra.get("rating")
    # A rating of another scale is remembered, and no rating here.
    sound = isinstance(rating, int) and not isinstance(rating, bool) and 1 <= rating <= 5
    content = said(result.content, f"{place}, its observation")
    rest = result.rest | content.rest | ({"extra": extra} if extra else {})
    call_id = result.source_call_id or (calls[0].id if len(calls) == 1 else None)
    if call_id is None:
        return Message("environment", content.text, at=at, rest=rest)
    return Message("tool", content.text, call_id=call_id, at=at, rating=rating if sound else None, rest=rest)
