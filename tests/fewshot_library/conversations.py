"""The same tasks as the messages of other interfaces and tools; what each form tells is in `Task`."""

import json
from typing import Any

from tests.fewshot_library.agent_runs import (
    agent_executor,
    chat_template,
    openhands_events,
    openhands_sdk_events,
    smolagents_steps,
)
from tests.fewshot_library.foreign_samples import TASKS, Task

Message = dict[str, Any]


def function_calls(calls: list[tuple[str, str, dict[str, Any], str]], first: int = 0) -> list[Message]:
    return [
        {"id": f"c{n}", "type": "function", "function": {"name": tool, "arguments": json.dumps(arguments)}}
        for n, (_, tool, arguments, _) in enumerate(calls, start=first)
    ]


def in_turn(task: Task, ask: Message, step: Any, answer: Message) -> list[Message]:
    """The question, what `step` makes of each call, and the answer."""
    steps = [message for number, call in enumerate(task.calls) for message in step(f"c{number}", *call)]
    return [ask, *steps, answer]


def plain_messages(task: Task) -> list[Message]:
    def step(call_id, thought, tool, arguments, result):
        function = {"name": tool, "arguments": json.dumps(arguments)}
        call = {"id": call_id, "type": "function", "function": function}
        yield {"role": "assistant", "content": thought, "tool_calls": [call]}
        yield {"role": "tool", "tool_call_id": call_id, "content": result}

    ask, answer = {"role": "user", "content": task.question}, {"role": "assistant", "content": task.answer}
    return in_turn(task, ask, step, answer)


def gemini(task: Task) -> Any:
    """Thoughts are marked texts, calls have no ids, and results are objects."""

    def step(call_id, thought, tool, arguments, result):
        call = {"functionCall": {"name": tool, "args": arguments}, "thoughtSignature": "Cg"}
        yield {"role": "model", "parts": [{"text": thought, "thought": True}, call]}
        response = {"name": tool, "response": {"result": result}}
        yield {"role": "user", "parts": [{"functionResponse": response}]}

    answer = {"role": "model", "parts": [{"text": task.thought, "thought": True}, {"text": task.answer}]}
    contents = in_turn(task, {"role": "user", "parts": [{"text": task.question}]}, step, answer)
    declared = [{"functionDeclarations": [{"name": "read"}, {"name": "search"}]}]
    return {"systemInstruction": {"parts": [{"text": "Be brief."}]}, "contents": contents, "tools": declared}


def gemini_batch(task: Task) -> Any:
    *contents, answer = gemini(task)["contents"]
    return {"key": "1", "request": {"contents": contents}, "response": {"candidates": [{"content": answer}]}}


def bedrock(task: Task) -> Any:
    """Each part is under its kind, without a field for it."""

    def step(call_id, thought, tool, arguments, result):
        reasoning = {"reasoningContent": {"reasoningText": {"text": thought, "signature": "Zz"}}}
        call = {"toolUse": {"toolUseId": call_id, "name": tool, "input": arguments}}
        yield {"role": "assistant", "content": [reasoning, call]}
        outcome = {"toolUseId": call_id, "content": [{"text": result}], "status": "success"}
        yield {"role": "user", "content": [{"toolResult": outcome}]}

    ask = {"role": "user", "content": [{"text": task.question}]}
    answer = {"role": "assistant", "content": [{"text": task.answer}]}
    return {"modelId": "m", "system": [{"text": "Be brief."}], "messages": in_turn(task, ask, step, answer)}


def bedrock_log(task: Task) -> Any:
    *messages, answer = bedrock(task)["messages"]
    output = {"outputBodyJson": {"output": {"message": answer}, "stopReason": "end_turn"}}
    return {"operation": "Converse", "input": {"inputBodyJson": {"messages": messages}}, "output": output}


def anthropic(task: Task) -> Any:
    def step(call_id, thought, tool, arguments, result):
        thinking = {"type": "thinking", "thinking": thought, "signature": "Zz"}
        yield {
            "role": "assistant",
            "content": [thinking, {"type": "tool_use", "id": call_id, "name": tool, "input": arguments}],
        }
        text = [{"type": "text", "text": result}]
        yield {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call_id, "content": text}]}

    answer = {
        "role": "assistant",
        "content": [{"type": "redacted_thinking", "data": "Em"}, {"type": "text", "text": ""}],
    }
    answer["content"][1] = {"type": "text", "text": task.answer}
    return {"messages": in_turn(task, {"role": "user", "content": task.question}, step, answer)}


def anthropic_log(task: Task) -> Any:
    *messages, answer = anthropic(task)["messages"]
    return {"request": {"messages": messages}, "response": {"type": "message", **answer}}


def responses(task: Task) -> Any:
    """Items between the messages, as in OpenAI's Responses."""

    def step(call_id, thought, tool, arguments, result):
        yield {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": thought}]}
        yield {"type": "function_call", "call_id": call_id, "name": tool, "arguments": json.dumps(arguments)}
        yield {"type": "function_call_output", "call_id": call_id, "output": result}

    text = {"type": "output_text", "text": task.answer, "annotations": []}
    answer = {"type": "message", "role": "assistant", "content": [text]}
    return in_turn(task, {"role": "user", "content": task.question}, step, answer)


def response_object(task: Task) -> Any:
    ask, *items, answer = responses(task)
    thought = {"type": "reasoning", "summary": [{"type": "summary_text", "text": task.thought}]}
    return {"object": "response", "output": [thought, answer], "input": [ask, *items], "model": "m"}


def logged_request(task: Task) -> Any:
    *messages, answer = plain_messages(task)
    return {"request": {"messages": messages}, "response": {"choices": [{"index": 0, "message": answer}]}}


def request_with_reply(task: Task) -> Any:
    *messages, answer = plain_messages(task)
    return {"messages": messages, "model": "m", "response": {"choices": [{"message": answer}]}}


def preference(task: Task) -> Any:
    *messages, answer = plain_messages(task)
    return {"rejected": [{"role": "assistant", "content": "no"}], "prompt": messages, "chosen": [answer]}


def ollama(task: Task) -> Any:
    """All calls at once, without ids; the results name their tools, and come in the other order where these differ."""
    calls = [{"function": {"name": f"{tool}{n}", "arguments": args}} for n, (_, tool, args, _) in enumerate(task.calls)]
    results = [
        {"role": "tool", "tool_name": f"{tool}{n}", "content": result}
        for n, (_, tool, _, result) in enumerate(task.calls)
    ]
    ask = {"role": "user", "content": task.question}
    called = {"role": "assistant", "thinking": task.calls[0][0], "content": "", "tool_calls": calls}
    return {"messages": [ask, called, *results[::-1], {"role": "assistant", "content": task.answer}]}


def cohere(task: Task) -> Any:
    messages = plain_messages(task)
    for message in messages:
        if "tool_calls" in message:
            message["tool_plan"] = message.pop("content")
    return {"messages": messages}


def hermes(task: Task) -> Any:
    """Thoughts, calls and results between tags, as templates of open models write them."""

    def step(call_id, thought, tool, arguments, result):
        call = json.dumps({"name": tool, "arguments": arguments})
        yield {"from": "gpt", "value": f"<think>\n{thought}\n</think>\n<tool_call>\n{call}\n</tool_call>"}
        yield {"from": "human", "value": f"<tool_response>\n{result}\n</tool_response>"}

    answer = {"from": "gpt", "value": task.answer}
    return {"conversations": in_turn(task, {"from": "human", "value": task.question}, step, answer)}


def react_chat(task: Task) -> Any:
    """Turns of ReAct as texts, as in ToolBench."""

    def step(call_id, thought, tool, arguments, result):
        text = f"\nThought: {thought}\nAction: {tool}\nAction Input: {json.dumps(arguments)}"
        yield {"from": "assistant", "value": text}
        yield {"from": "user", "value": f"Observation: {result}"}

    end = json.dumps({"return_type": "give_answer", "final_answer": task.answer})
    answer = {"from": "assistant", "value": f"\nThought: {task.thought}\nAction: Finish\nAction Input: {end}"}
    return {"conversations": in_turn(task, {"from": "user", "value": task.question}, step, answer)}


def pydantic_ai(task: Task) -> Any:
    """Requests and responses of parts."""

    def step(call_id, thought, tool, arguments, result):
        call = {"tool_name": tool, "args": json.dumps(arguments), "tool_call_id": call_id, "part_kind": "tool-call"}
        yield {"kind": "response", "parts": [{"content": thought, "part_kind": "thinking"}, call]}
        back = {"tool_name": tool, "content": result, "tool_call_id": call_id, "part_kind": "tool-return"}
        yield {"kind": "request", "parts": [back]}

    ask = {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": task.question}]}
    answer = {"kind": "response", "parts": [{"part_kind": "text", "content": task.answer}]}
    return in_turn(task, ask, step, answer)


def interface_messages(task: Task) -> Any:
    """One message of the assistant with a part for each call with its result, as Vercel's interface keeps them."""
    parts = [{"type": "step-start"}]
    for number, (thought, tool, arguments, result) in enumerate(task.calls):
        call = {"type": f"tool-{tool}", "toolCallId": f"c{number}", "input": arguments, "output": result}
        parts += [{"type": "reasoning", "text": thought}, call]
    ask = {"id": "1", "role": "user", "parts": [{"type": "text", "text": task.question}]}
    return [ask, {"id": "2", "role": "assistant", "parts": [*parts, {"type": "text", "text": task.answer}]}]


def older_interface_messages(task: Task) -> Any:
    """The same in its former form, in which the answer stands beside the parts too."""
    ask, reply = interface_messages(task)
    for part in reply["parts"]:
        if "toolCallId" in part:
            run = {"state": "result", "toolCallId": part.pop("toolCallId"), "toolName": part.pop("type")[5:]}
            run |= {"args": part.pop("input"), "result": part.pop("output")}
            part |= {"type": "tool-invocation", "toolInvocation": run}
    return {"messages": [{**ask, "content": task.question}, {**reply, "content": task.answer}]}


def blocks(task: Task) -> Any:
    """Blocks of LlamaIndex, with the calls among the provider's fields."""

    def step(call_id, thought, tool, arguments, result):
        call = {"id": call_id, "type": "function", "function": {"name": tool, "arguments": json.dumps(arguments)}}
        thinking = [{"block_type": "thinking", "content": thought}]
        yield {"role": "assistant", "additional_kwargs": {"tool_calls": [call]}, "blocks": thinking}
        beside = {"name": tool, "tool_call_id": call_id}
        yield {"role": "tool", "additional_kwargs": beside, "blocks": [{"block_type": "text", "text": result}]}

    ask, answer = (
        {"role": role, "additional_kwargs": {}, "blocks": [{"block_type": "text", "text": text}]}
        for role, text in (("user", task.question), ("assistant", task.answer))
    )
    return {"messages": in_turn(task, ask, step, answer)}


def agent_events(task: Task) -> Any:
    """Events of AutoGen, each with its source."""

    def step(call_id, thought, tool, arguments, result):
        call = {"id": call_id, "name": tool, "arguments": json.dumps(arguments)}
        back = {"call_id": call_id, "name": tool, "content": result, "is_error": False}
        yield {"source": "helper", "type": "ThoughtEvent", "content": thought}
        yield {"source": "helper", "type": "ToolCallRequestEvent", "content": [call]}
        yield {"source": "helper", "type": "ToolCallExecutionEvent", "content": [back]}

    ask = {"source": "user", "type": "TextMessage", "content": task.question}
    return in_turn(task, ask, step, {"source": "helper", "type": "TextMessage", "content": task.answer})


def newest_first(task: Task) -> Any:
    """A list of an interface whose newest message comes first."""
    messages = [{**message, "created_at": n} for n, message in enumerate(plain_messages(task))]
    return {"object": "list", "data": messages[::-1]}


FORMS = {
    form.__name__: [form(task) for task in TASKS]
    for form in (
        *(gemini, gemini_batch, bedrock, bedrock_log, anthropic, anthropic_log, responses, response_object),
        *(logged_request, request_with_reply, preference, ollama, cohere, hermes, react_chat, pydantic_ai),
        *(interface_messages, older_interface_messages, blocks, agent_events, newest_first),
        *(smolagents_steps, openhands_events, openhands_sdk_events, agent_executor, chat_template),
    )
}
"""The records of a file in each form; some are lists."""
