"""The same tasks as frameworks record the runs of their agents."""

import json
from typing import Any

from tests.fewshot_library.foreign_samples import Task

Event = dict[str, Any]


def smolagents_step(number: int, thought: str, call: Event | None, result: str | None, answer: Any = None) -> Event:
    """A step of an agent's memory, as `get_full_steps` gives it."""
    return {
        **{"step_number": number, "timing": {"start_time": 1.0, "end_time": 2.0, "duration": 1.0}},
        **{"model_input_messages": [{"role": "user", "content": [{"type": "text", "text": "New task:"}]}]},
        **{"tool_calls": [call] if call else [], "error": None},
        **{"model_output_message": {"role": "assistant", "content": thought, "tool_calls": None, "raw": None}},
        **{"model_output": thought, "code_action": None, "observations": result, "observations_images": None},
        **{"action_output": answer, "token_usage": {"input_tokens": 9, "output_tokens": 3}},
        "is_final_answer": answer is not None,
    }


def smolagents_steps(task: Task) -> Any:
    """The memory of an agent that calls tools; the last step calls the tool that answers."""
    steps: list[Event] = [{"task": task.question, "task_images": None}]
    for number, (thought, tool, arguments, result) in enumerate(task.calls, start=1):
        call = {"id": f"c{number}", "type": "function", "function": {"name": tool, "arguments": arguments}}
        steps.append(smolagents_step(number, thought, call, result))
    answering = {"name": "final_answer", "arguments": {"answer": task.answer}}
    last = {"id": "c9", "type": "function", "function": answering}
    return [*steps, smolagents_step(9, task.thought, last, f"Final answer: {task.answer}", task.answer)]


def openhands_events(task: Task) -> Any:
    """A trajectory of the first version: the calls are actions, among events of the agent's state."""
    events: list[Event] = [
        {"source": "agent", "action": "system", "message": "", "args": {"content": "You are an agent.", "tools": []}},
        {"source": "user", "message": task.question, "action": "message", "args": {"content": task.question}},
        {"source": "user", "action": "recall", "args": {"query": task.question, "thought": ""}},
        {"source": "environment", "observation": "recall", "content": "Added context", "extras": {}, "cause": 2},
        {"source": "environment", "observation": "agent_state_changed", "content": "", "extras": {}},
    ]
    for thought, tool, arguments, result in task.calls:
        number = len(events)
        function = {"name": tool, "arguments": json.dumps(arguments)}
        reply = {"content": thought, "tool_calls": [{"id": f"toolu_{number}", "function": function}]}
        made = {"tool_call_id": f"toolu_{number}", "function_name": tool}
        events += [
            {
                **{"source": "agent", "message": f"Running: {tool}", "action": "call_tool_mcp"},
                **{"args": {"name": tool, "arguments": arguments, "thought": thought}},
                "tool_call_metadata": {**made, "model_response": {"choices": [{"message": reply}]}},
            },
            {
                **{"source": "agent", "observation": "mcp", "content": result, "extras": {}, "cause": number},
                "tool_call_metadata": made,
            },
        ]
    answer = {"final_thought": task.answer, "task_completed": "true", "outputs": {}, "thought": task.thought}
    events.append({"source": "agent", "message": "All done!", "action": "finish", "args": answer})
    events.append({"source": "environment", "observation": "agent_state_changed", "content": "", "extras": {}})
    return [{"id": number, "timestamp": "2026-01-01T00:00:00", **event} for number, event in enumerate(events)]


def openhands_sdk_events(task: Task) -> Any:
    """The events of a conversation of the SDK."""
    asked = {"role": "user", "content": [{"type": "text", "text": task.question}]}
    events: list[Event] = [
        {
            "kind": "SystemPromptEvent",
            "source": "agent",
            "system_prompt": {"type": "text", "text": "Act."},
            "tools": [],
        },
        {"kind": "MessageEvent", "source": "user", "llm_message": asked},
        {"kind": "ConversationStateUpdateEvent", "source": "environment", "key": "execution_status", "value": "run"},
    ]
    for number, (thought, tool, arguments, result) in enumerate(task.calls):
        made = {"tool_name": tool, "tool_call_id": f"c{number}"}
        call = {"id": f"c{number}", "name": tool, "arguments": json.dumps(arguments), "origin": "completion"}
        said = {"thought": [{"type": "text", "text": thought}], "reasoning_content": None, "thinking_blocks": []}
        action = {"kind": "MCPToolAction", "data": arguments}
        seen = {"kind": "MCPToolObservation", "content": [{"type": "text", "text": result}], "is_error": False}
        events += [
            {"kind": "ActionEvent", "source": "agent", **said, "action": action, **made, "tool_call": call},
            {"kind": "ObservationEvent", "source": "environment", **made, "observation": seen},
        ]
    end = {"tool_name": "finish", "tool_call_id": "c9", "action": {"kind": "FinishAction", "message": task.answer}}
    events.append({"kind": "ActionEvent", "source": "agent", "thought": [{"text": task.thought}], **end})
    seen = {"kind": "FinishObservation", "content": [{"type": "text", "text": task.answer}]}
    events.append({"kind": "ObservationEvent", "source": "environment", **end, "observation": seen})
    return [{"timestamp": "2026-01-01T00:00:00", **event} for event in events]


def agent_executor(task: Task) -> Any:
    """The result of an agent of LangChain that returns its intermediate steps."""
    steps = [
        [
            {
                **{"tool": tool, "tool_input": arguments, "type": "AgentAction"},
                "log": f"{thought}\nAction: {tool}\nAction Input: {json.dumps(arguments)}",
            },
            result,
        ]
        for thought, tool, arguments, result in task.calls
    ]
    earlier = [{"type": "human", "content": "Hello"}, {"type": "ai", "content": "Hi"}] * 9
    return {"input": task.question, "chat_history": earlier, "intermediate_steps": steps, "output": task.answer}


def template_text(task: Task) -> str:
    """A conversation in ChatML, with calls and results between tags."""
    turns = [("system", "Use the tools."), ("user", task.question)]
    for thought, tool, arguments, result in task.calls:
        call = json.dumps({"name": tool, "arguments": arguments})
        turns.append(("assistant", f"{thought}\n<tool_call>\n{call}\n</tool_call>"))
        turns.append(("tool", f"<tool_response>\n{result}\n</tool_response>"))
    turns.append(("assistant", f"<think>\n{task.thought}\n</think>\n\n{task.answer}"))
    return "".join(f"<|im_start|>{role}\n{text}<|im_end|>\n" for role, text in turns)


def chat_template(task: Task) -> Any:
    return {"id": "1", "text": template_text(task)}


def codex_session(task: Task) -> list[Event]:
    """The lines of a session of Codex: instructions have the role of the user, too."""

    def said(role: str, text: str) -> Event:
        kind = "output_text" if role == "assistant" else "input_text"
        return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}

    lines: list[tuple[str, Event]] = [
        ("session_meta", {"id": "0", "cwd": "/", "cli_version": "0.46.0", "instructions": None}),
        ("response_item", said("user", "<environment_context>\n  <cwd>/</cwd>\n</environment_context>")),
        ("response_item", said("user", task.question)),
        ("event_msg", {"type": "user_message", "message": task.question, "kind": "plain"}),
        ("turn_context", {"cwd": "/", "model": "gpt-5-codex"}),
    ]
    for number, (thought, tool, arguments, result) in enumerate(task.calls):
        summary = {"type": "reasoning", "summary": [{"type": "summary_text", "text": thought}], "content": None}
        call = {"type": "function_call", "name": tool, "arguments": json.dumps(arguments), "call_id": f"call_{number}"}
        lines += [
            ("event_msg", {"type": "agent_reasoning", "text": thought}),
            ("response_item", summary | {"encrypted_content": "gAAAA"}),
            ("response_item", call),
            ("response_item", {"type": "function_call_output", "call_id": f"call_{number}", "output": result}),
            ("event_msg", {"type": "token_count", "info": None}),
        ]
    lines += [("event_msg", {"type": "agent_message", "message": task.answer})]
    lines += [("response_item", said("assistant", task.answer))]
    return [{"timestamp": "2026-01-01T00:00:00Z", "type": kind, "payload": payload} for kind, payload in lines]
