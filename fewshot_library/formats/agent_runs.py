"""Turns the steps and events that frameworks record of an agent into messages in OpenAI's form.

smolagents: the steps of an agent's memory. OpenHands: the events of a trajectory, in the forms of both versions.
LangChain: the result of an AgentExecutor with its intermediate steps. Alpaca: an instruction with its output.
"""

from typing import Any

from showhow.fewshot_library.formats.content_parts import read_arguments, result_text
from showhow.fewshot_library.formats.react_text import normalize_markers, parse_transcript
from showhow.fewshot_library.formats.thoughts import THOUGHT_NAMES, read_thought
from showhow.fewshot_library.formats.tool_calls import as_list
from showhow.llm.text_tool_calls import parse_json_call

_EVENT = "event"
"""The role of an event that is no message, call or result, such as a change of the agent's state."""
_ANSWERING_TOOL = "final_answer"
_STEP_FIELDS = {"model_output", "observations", "action_output", "tool_calls"}
_PROMPTS = ("model_input_messages", "model_output_message")
"""What the steps of smolagents repeat of the steps before them."""
_QUESTIONS = ("input", "question", "query")
_INVOKING, _RESPONDED = "Invoking: ", "\nresponded: "


def usual_step(raw: Any) -> dict[str, Any] | None:
    """A step or an event as a message; None if the value is neither."""
    message: dict[str, Any] | None = None
    match raw:
        case {"step_number": int()} if raw.keys() & _STEP_FIELDS:
            message = _of_action_step(raw)
        case {"task": str(text), "task_images": images}:
            message = {"role": "user", "content": _with_images(text, images)}
        case {"system_prompt": str(text)} if len(raw) == 1:
            message = {"role": "system", "content": text}
        case {"plan": str(plan)} if raw.keys() & {"timing", *_PROMPTS}:
            message = {"role": "assistant", "content": "", "reasoning": plan}
        case {"action": str(kind), "args": dict(arguments), "source": str()}:
            message = _of_action(raw, kind, arguments)
        case {"observation": str(kind), "content": content} if raw.keys() & {"extras", "cause"}:
            message = _result(raw, content, failed=kind == "error")
        case {"kind": str(), "source": str(), "timestamp": _}:
            message = _of_sdk_event(raw)
    return message


def _result(raw: dict[str, Any], content: Any, *, failed: bool) -> dict[str, Any]:
    result = {"role": "tool", "tool_call_id": _result_ids(raw)[0], "content": content}
    return result | ({"status": "error"} if failed else {})


def _of_action_step(raw: dict[str, Any]) -> dict[str, Any]:
    """A step of smolagents: its text, its calls, what they returned in one text, and the answer of the last step."""
    calls = [_call_part(call, raw) for call in as_list(raw.get("tool_calls"))]
    answer, output_message = raw.get("action_output"), _fields(raw.get("model_output_message"))
    answering = next((call for call in calls if call.get("name") == _ANSWERING_TOOL), None)
    is_last = raw.get("is_final_answer") is True or answering is not None or (not calls and answer is not None)
    if answering is not None:
        calls.remove(answering)
        given, _ = read_arguments(answering["arguments"])
        if answer is None:
            answer = next(iter(given.values())) if len(given) == 1 else given or None
    text = raw.get("model_output") or output_message.get("content") or ""
    error = _fields(raw.get("error")).get("message")
    results = [part for part in (raw.get("observations"), error) if part]
    content: list[Any] = [
        {"type": "thinking" if is_last and not calls else "text", "text": part} for part in _texts(text)
    ]
    content += calls
    if is_last and not calls:
        # The answer after the last step that was allowed has an error, and no call.
        content += [{"type": "thinking", "text": error}] if error else []
    elif results or is_last:
        content.append(
            {"type": "tool_result", "content": "\n".join(map(result_text, results)), "is_error": bool(error)}
        )
    if is_last and answer is not None:
        content.append({"type": "text", "text": result_text(answer)})
    thoughts = {name: output_message[name] for name in THOUGHT_NAMES if output_message.get(name)}
    used = {"model_output", "observations", "action_output", "tool_calls", "error", *_PROMPTS}
    rest = {name: value for name, value in raw.items() if name not in used}
    return rest | thoughts | {"role": "assistant", "content": content}


def _call_part(call: Any, step: dict[str, Any]) -> dict[str, Any]:
    function = _fields(_fields(call).get("function")) or _fields(call)
    arguments = function.get("arguments")
    if isinstance(arguments, str) and read_arguments(arguments)[1]:
        # The code of an agent that writes code is no JSON.
        arguments = {"code" if arguments == step.get("code_action") else "input": arguments}
    return {"type": "tool_call", "id": _fields(call).get("id"), "name": function.get("name"), "arguments": arguments}


def _texts(value: Any) -> list[str]:
    """The texts of a content, which may be a list of parts."""
    parts = [_fields(part).get("text", part) for part in as_list(value)]
    return [result_text(part) for part in parts]


def _with_images(text: Any, images: Any) -> list[Any]:
    return [text, *({"type": "image", "data": image} for image in as_list(images))]


def _fields(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _of_action(raw: dict[str, Any], kind: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """An action of OpenHands: a message, an answer, or a call if the agent chose it."""
    call, thought = _fields(raw.get("tool_call_metadata")), read_thought(arguments.get("thought"))
    is_own = raw.get("source") == "agent"
    if kind == "system":
        return {"role": "system", "content": arguments.get("content")}
    if kind == "message":
        content = _with_images(arguments.get("content"), arguments.get("image_urls"))
        return {"role": "assistant" if is_own else "user", "content": content}
    if kind == "finish" and is_own:
        outputs = arguments.get("outputs") or None
        answer = arguments.get("final_thought") or _fields(outputs).get("content") or outputs
        if not arguments.keys() & {"final_thought", "task_completed"}:
            # Before an action had an answer of its own.
            answer, thought = answer or thought, thought if answer else ""
        return {"role": "assistant", "reasoning": thought, "content": result_text(answer)}
    if not is_own or not (call or "thought" in arguments):
        return {"role": _EVENT}
    reply = _fields(
        _fields(next(iter(as_list(_fields(call.get("model_response")).get("choices"))), None)).get("message")
    )
    written = as_list(reply.get("tool_calls"))
    place = next((n for n, one in enumerate(written) if _fields(one).get("id") == call.get("tool_call_id")), None)
    given = {name: value for name, value in arguments.items() if name != "thought"}
    if place is not None:
        given = _fields(written[place].get("function")).get("arguments", given)
    # Each call of a reply repeats the thought before the first one.
    thoughts = {name: reply[name] for name in THOUGHT_NAMES if reply.get(name)} if place == 0 else {}
    name = call.get("function_name") or kind
    return thoughts | _message_with_call(thought, name, call.get("tool_call_id") or raw.get("id"), given)


def _message_with_call(thought: str, name: str, call_id: Any, arguments: Any) -> dict[str, Any]:
    call = {"id": "" if call_id is None else str(call_id), "name": name, "arguments": arguments}
    return {"role": "assistant", "content": thought, "tool_calls": [call]}


def _result_ids(raw: dict[str, Any]) -> list[str]:
    """The ids by which the call of an observation may be known."""
    ids = (_fields(raw.get("tool_call_metadata")).get("tool_call_id"), raw.get("tool_call_id"), raw.get("cause"))
    return [str(call_id) for call_id in ids if call_id is not None] or [""]


def _of_sdk_event(raw: dict[str, Any]) -> dict[str, Any]:
    """An event of OpenHands' SDK."""
    message: dict[str, Any] = {"role": _EVENT}
    match raw:
        case {"llm_message": dict(written)}:
            message = {"role": "user" if raw["source"] == "user" else "assistant", **written}
        case {"system_prompt": prompt}:
            message = {"role": "system", "content": read_thought(prompt)}
        case {"observation": observation}:
            seen = {name: value for name, value in _fields(observation).items() if name not in ("kind", "is_error")}
            content = next((seen[name] for name in ("content", "output") if name in seen), seen or None)
            message = _result(raw, content, failed=bool(_fields(observation).get("is_error")))
        case {"error": text, "tool_call_id": str()} | {"rejection_reason": text, "tool_call_id": str()}:
            message = _result(raw, result_text(text), failed=True)
        case {"action": action, "tool_name": str(name)}:
            message = _of_sdk_action(raw, _fields(action), name)
    return message


def _of_sdk_action(raw: dict[str, Any], action: dict[str, Any], name: str) -> dict[str, Any]:
    thoughts = {field: raw[field] for field in THOUGHT_NAMES if raw.get(field) and field != "thought"}
    thought = "\n\n".join(_texts(raw.get("thought")))
    if name == "finish" and action.get("message"):
        return thoughts | {"role": "assistant", "thinking": thought, "content": action["message"]}
    call = _fields(raw.get("tool_call"))
    given = {field: value for field, value in action.items() if field != "kind"}
    arguments = (_fields(call.get("function")) or call).get("arguments", given)
    return thoughts | _message_with_call(thought, name, raw.get("tool_call_id"), arguments)


def without_events(values: list[Any]) -> tuple[list[Any], list[str]]:
    """The messages of a log of events, and a remark on those that are left out as no message, call or result."""
    kept: list[Any] = []
    left_out: list[str] = []
    # The ids of calls by those of their events, too.
    calls: dict[str, str] = {}
    for value in values:
        message = usual_step(value)
        if message is None:
            kept.append(value)
            continue
        for call in message.get("tool_calls", ()):
            calls |= {call["id"]: call["id"], str(value.get("id")): call["id"]}
        if message["role"] == "tool":
            own = next((calls[call_id] for call_id in _result_ids(value) if call_id in calls), None)
            message = {**message, "tool_call_id": own} if own is not None else {"role": _EVENT}
        if message["role"] == _EVENT:
            kind = next((value[name] for name in ("kind", "action", "observation") if name in value), "")
            left_out.append(str(kind))
        else:
            kept.append(message)
    if not left_out:
        return kept, []
    names, count = ", ".join(dict.fromkeys(left_out)), len(left_out)
    are = "event is" if count == 1 else "events are"
    return kept, [f"{count} {are} no message, call or result of the agent, and left out: {names}"]


def usual_run(raw: dict[str, Any]) -> tuple[list[Any], dict[str, Any]] | None:
    """The messages of the result of a LangChain agent, and the other fields; None for any other record."""
    # LangSmith's runs have what went in and out apart.
    fields = {**_fields(raw.get("inputs")), **_fields(raw.get("outputs"))} if "outputs" in raw else raw
    name = next((name for name in _QUESTIONS if isinstance(fields.get(name), str)), None)
    steps, answer = fields.get("intermediate_steps"), fields.get("output")
    if name is None or not isinstance(steps, list):
        return None
    messages = [{"role": "user", "content": fields[name]}, *map(_of_intermediate_step, steps)]
    if answer not in (None, ""):
        messages.append({"role": "assistant", "content": result_text(answer)})
    used = ("intermediate_steps", "output", name, *(() if fields is raw else ("inputs", "outputs")))
    return messages, {field: value for field, value in (raw | fields).items() if field not in used}


def _of_intermediate_step(raw: Any) -> dict[str, Any]:
    match raw:
        case [action, observation] | {"action": action, "observation": observation}:
            fields = _fields(_fields(action).get("kwargs")) or _fields(action)
            if isinstance(name := fields.get("tool"), str):
                given = fields.get("tool_input")
                arguments, problem = read_arguments(given)
                call = {"type": "tool_call", "id": fields.get("tool_call_id"), "name": name}
                call["arguments"] = {"input": given} if problem or not isinstance(arguments, dict) else arguments
                result = {"type": "tool_result", "content": observation}
                return {"role": "assistant", "content": [_read_log(fields), call, result]}
    return {"role": "assistant", "content": [{"type": "intermediate step", "data": raw}]}


def _read_log(action: dict[str, Any]) -> str:
    """The thought before an action, in its message or in what the model wrote of it."""
    message = _fields(next(iter(as_list(action.get("message_log"))), None))
    if texts := _texts((_fields(message.get("kwargs")) or message).get("content")):
        return "\n\n".join(texts)
    log = result_text(action.get("log")).strip()
    if log.startswith(_INVOKING):
        return log.partition(_RESPONDED)[2].strip()
    transcript = parse_transcript(normalize_markers(log))
    thought = next((turn.thought for turn in transcript.turns if turn.thought), transcript.preamble)
    return "" if thought and parse_json_call(thought.strip("`").removeprefix("json").strip()) else thought


def usual_instruction(raw: dict[str, Any]) -> tuple[list[Any], dict[str, Any]] | None:
    """The messages of an instruction and its output, and the other fields; None for any other record."""
    answer = next((name for name in ("output", "response") if isinstance(raw.get(name), str)), None)
    texts = [raw[name] for name in ("instruction", "input", "context") if isinstance(raw.get(name), str) and raw[name]]
    if answer is None or not raw.get("instruction") or texts[:1] != [raw["instruction"]]:
        return None
    system = [{"role": "system", "content": raw["system"]}] if raw.get("system") else []
    messages = [{"role": "user", "content": "\n\n".join(texts)}, {"role": "assistant", "content": raw[answer]}]
    used = ("instruction", "input", "context", "system", answer)
    return [*system, *messages], {name: value for name, value in raw.items() if name not in used}
