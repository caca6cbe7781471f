"""An MCP server that floods its client: `flooding.py MODE`; each call starts the flood."""

import itertools
import json
import sys
import threading
from typing import Any

TOOL = {"name": "flood", "description": "Flood.", "inputSchema": {"type": "object", "properties": {}}}
SLOW_SCHEMA = {"type": "object", "properties": {"text": {"type": "string", "pattern": "^(a+)+$"}}}


def send(message: dict[str, Any]) -> None:
    """Write one message."""
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def reply(request: dict[str, Any], result: dict[str, Any]) -> None:
    """Answer a request."""
    send({"id": request["id"], "result": result})


def text(content: str) -> dict[str, Any]:
    """One block of a result."""
    return {"type": "text", "text": content}


def flood(mode: str, request: dict[str, Any]) -> None:
    """Answer a call as the mode says."""
    endless = {
        "blank lines": "\n" * 4_000_000,
        "other lines": "not a message\n" * 300_000,
        "notifications": json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info"}})
        + "\n",
        "progress": '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}\n',
        "requests": '{"jsonrpc":"2.0","id":%d,"method":"sampling/createMessage","params":{"messages":[]}}\n',
        "elicitation": '{"jsonrpc":"2.0","id":%d,"method":"elicitation/create","params":{"message":""}}\n',
    }
    if mode in endless:
        line = endless[mode]
        for number in itertools.count(1):
            sys.stdout.write(line % number if "%d" in line else line * max(1, 10_000 // len(line)))
    if mode == "blocks":
        reply(request, {"content": [text("x") for _ in range(100_000)]})
    if mode in ("values", "many values"):
        rows = [[0]] * (150_000 if mode == "values" else 1_000_000)
        reply(request, {"content": [text("x")], "structuredContent": {"rows": rows}})
    if mode == "depth":
        deep = "[" * 300_000 + "]" * 300_000
        identifier = request["id"]
        start = f'{{"jsonrpc":"2.0","id":{identifier},"result":{{"content":[],"structuredContent":'
        sys.stdout.write(start + deep + "}}\n")
        sys.stdout.flush()
    if mode == "pattern":
        reply(request, {"content": [text("x")], "structuredContent": {"text": "a" * 50 + "b"}})
    if mode == "stderr":
        while True:
            sys.stderr.write("x" * 65_536)


def main(mode: str) -> None:
    """Serve until the input ends."""
    for line in sys.stdin:
        request = json.loads(line)
        match request.get("method"):
            case "initialize":
                capabilities = {"tools": {}}
                version = request["params"]["protocolVersion"]
                server = {"name": "flooding", "version": "1"}
                reply(request, {"protocolVersion": version, "capabilities": capabilities, "serverInfo": server})
            case "tools/list" if mode == "pages":
                reply(request, {"tools": [{**TOOL, "name": f"flood{n}"} for n in range(100)], "nextCursor": "more"})
            case "tools/list" if mode == "pattern":
                reply(request, {"tools": [{**TOOL, "outputSchema": SLOW_SCHEMA}]})
            case "tools/list":
                reply(request, {"tools": [TOOL]})
            case "ping":
                reply(request, {})
            case "tools/call":
                threading.Thread(target=flood, args=(mode, request), daemon=True).start()


if __name__ == "__main__":
    main(sys.argv[1])
