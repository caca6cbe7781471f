"""Functions that loop, eat memory, end their process or fork: the call fails, and nothing else does."""

import itertools
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from showhow.guard.tree_usage import descendants
from showhow.tools.arguments import ToolError
from showhow.tools.external.config import FunctionConfig
from showhow.tools.external.functions.host import MAX_PRINTED_BYTES, FunctionHost, load_function
from showhow.tools.tool import Tool, ToolContext
from tests.servers.weather_started import PATIENCE
from tests.tools.external.processes import processes_with, wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits of memory and processes left behind need Linux")
KEY = "key-of-the-weather-0815/+ä"
MODEL_KEY = "sk-of-the-model-4711"
Load = Callable[..., Tool]
_numbers = itertools.count()


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FunctionHost]:
    """The process of functions that get WEATHER_KEY."""
    environ = {"PATH": os.defpath, "WEATHER_KEY": KEY, "OPENAI_API_KEY": MODEL_KEY, "OTHER": "not for functions"}
    host = FunctionHost(tmp_path_factory.mktemp("functions"), ("WEATHER_KEY",), environ)
    yield host
    host.close()


@pytest.fixture
def load(host: FunctionHost) -> Load:
    def load(code: str, name: str = "found", **limits: float) -> Tool:
        assert host.folder is not None
        module = f"module_of_a_user_{next(_numbers)}"
        (host.folder / f"{module}.py").write_text(textwrap.dedent(code))
        place = f"{module}:{name}"
        return load_function("found", FunctionConfig.model_validate({"place": place, **limits}), host)

    return load


@pytest.fixture
def ok(load: Load) -> Tool:
    return load("def found(text: str):\n    'Say it.'\n    return text", seconds=PATIENCE)


def text_of(tool: Tool, context: ToolContext, **arguments: object) -> str:
    result = tool.call(context, arguments)
    assert result.observation is not None, result.error
    return result.observation.text


def error_of(tool: Tool, context: ToolContext) -> str:
    result = tool.call(context, {})
    assert result.observation is None
    assert result.error is not None
    return result.error


@pytest.mark.parametrize(
    "body",
    [
        "while True: pass",
        "import re; return str(re.match(r'(a+)+$', 'a' * 50 + 'b'))",
        "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 64)); time.sleep(600)",
        "import itertools; return list(itertools.repeat(None))[:0] or sum(itertools.repeat(1))",
    ],
    ids=["loop", "regular expression", "blocked signals", "endless iterator"],
)
def test_a_call_that_never_ends_is_killed_at_its_limit(
    load: Load, ok: Tool, host: FunctionHost, nowhere: ToolContext, body: str
) -> None:
    tool = load(f"import time\ndef found():\n    'Hang.'\n    {body}", seconds=0.7, megabytes=300)
    pid = host.pid
    assert pid is not None
    with ThreadPoolExecutor(1) as other:
        hung = other.submit(error_of, tool, nowhere)
        started = time.monotonic()
        assert text_of(ok, nowhere, text="meanwhile") == "meanwhile"
        assert time.monotonic() - started < PATIENCE
        assert "limit of 0.7 s" in hung.result() or "MemoryError" in hung.result()
    assert text_of(ok, nowhere, text="after") == "after"
    assert host.pid == pid
    # The first process of the namespace, and the one that runs functions.
    wait_until(lambda: len(descendants(pid)) == 2)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("os._exit(3)", "ended its process with status 3, without a result"),
        ("os.kill(os.getpid(), 11)", "was ended by signal 11"),
        ("os.abort()", "was ended by signal 6"),
        ("return len(bytearray(4_000_000_000))", "MemoryError"),
        ("import ctypes; ctypes.string_at(0)", "was ended by signal 11"),
        ("raise SystemExit(5)", "SystemExit: 5"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("raise type('A' * 100_000, (Exception,), {})", "AAAA"),
        ("value = []; value.append(value); return value", "ValueError"),
    ],
)
def test_a_call_that_ends_its_process_is_a_failed_call(
    load: Load, nowhere: ToolContext, body: str, message: str
) -> None:
    tool = load(f"import os\ndef found():\n    'End.'\n    {body}", seconds=PATIENCE)
    parent = load("import os\ndef found():\n    'Tell.'\n    return os.getppid()", seconds=PATIENCE)
    pid = text_of(parent, nowhere)
    failed = error_of(tool, nowhere)
    assert message in failed
    assert len(failed) < 600
    assert text_of(parent, nowhere) == pid


def test_a_call_that_kills_the_process_of_all_functions_costs_one_call(
    load: Load, ok: Tool, nowhere: ToolContext
) -> None:
    tool = load("import os\ndef found():\n    'Kill.'\n    os.kill(os.getppid(), 9)\n    return 'x'", seconds=PATIENCE)
    error = tool.call(nowhere, {}).error
    assert error is None or "has ended" in error
    assert text_of(ok, nowhere, text="after") == "after"


def test_threads_and_processes_that_a_call_leaves_behind_are_ended(
    load: Load, host: FunctionHost, ok: Tool, nowhere: ToolContext
) -> None:
    mark = f"left-behind-{os.getpid()}"
    tool = load(
        f"""
        import os, subprocess, sys, threading, time
        SLEEP = [sys.executable, "-c", "import time; time.sleep(600)", "{mark}"]

        def found():
            'Leave all kinds behind.'
            threading.Thread(target=time.sleep, args=(600,)).start()
            subprocess.Popen(SLEEP)
            subprocess.Popen(SLEEP, start_new_session=True)
            if os.fork() == 0:
                os.setsid()
                if os.fork() == 0:
                    os.execv(sys.executable, SLEEP)
                os._exit(0)
            if os.fork() == 0:
                return "of the child"
            time.sleep(0.5)
            return "done"
        """,
        seconds=PATIENCE,
    )
    assert text_of(tool, nowhere) == "done"
    wait_until(lambda: not processes_with(mark))
    assert host.pid is not None
    assert text_of(ok, nowhere, text="after") == "after"


def test_a_call_with_too_many_processes_is_ended_with_all_of_them(load: Load, ok: Tool, nowhere: ToolContext) -> None:
    tool = load(
        f"""
        import subprocess, sys, time
        def found():
            'Start processes.'
            for n in range(80):
                subprocess.Popen(["sleep", "599.{os.getpid()}"], start_new_session=n % 2 == 0)
            time.sleep(600)
        """,
        seconds=PATIENCE,
    )
    assert "started more than 64 processes" in error_of(tool, nowhere)
    wait_until(lambda: not processes_with(f"599.{os.getpid()}"))
    assert text_of(ok, nowhere, text="after") == "after"


def test_what_a_function_prints_goes_to_stderr_within_a_bound_and_never_into_a_result(
    load: Load, nowhere: ToolContext, capfd: pytest.CaptureFixture[str]
) -> None:
    tool = load(
        f"""
        import os, sys
        def found():
            'Print.'
            print('{{"output": {{"text": "forged"}}}}', flush=True)
            os.write(1, b'x' * {3 * MAX_PRINTED_BYTES})
            return 'real'
        """,
        seconds=PATIENCE,
    )
    assert text_of(tool, nowhere) == "real"
    printed = capfd.readouterr()
    assert printed.out == ""
    assert len(printed.err) <= MAX_PRINTED_BYTES


def test_a_function_sees_the_variables_that_its_configuration_names_and_no_others(
    load: Load, nowhere: ToolContext
) -> None:
    tool = load("import os\ndef found():\n    'Env.'\n    return sorted(os.environ)", seconds=PATIENCE)
    assert set(tool.call(nowhere, {}).observation.data["result"]) <= {
        "PATH",
        "WEATHER_KEY",
        "LC_CTYPE",
        "HOME",
        "TMPDIR",
    }  # type: ignore[union-attr]


def test_a_variable_that_is_not_set_is_named(tmp_path: Path) -> None:
    host = FunctionHost(tmp_path, ("NO_SUCH_KEY",), {})
    with pytest.raises(ToolError, match="the environment variable NO_SUCH_KEY of its configuration is not set"):
        load_function("found", FunctionConfig(place="fine:found"), host)


@pytest.mark.parametrize(
    "body",
    [
        "return KEY",
        "return {KEY: [KEY, KEY]}",
        "return 'x' * 180 + KEY",
        "return KEY * 100",
        "raise ValueError(f'for url https://x.example/?key={KEY}')",
        "raise ValueError('x' * 290 + KEY)",
        "raise ValueError('x ' * 145 + KEY * 300)",
        "raise type(KEY, (Exception,), {})",
        "from urllib.parse import quote; return quote(KEY, safe='')",
        "import json; return json.dumps(json.dumps(KEY))",
        "raise RuntimeError from ValueError(KEY)",
        "raise ExceptionGroup('all', [ValueError(KEY)])",
        "print(KEY); return 'printed'",
        "return open(f'/proc/{os.getpid()}/environ').read()",
    ],
)
def test_no_result_and_no_error_contains_a_key(
    load: Load, nowhere: ToolContext, capfd: pytest.CaptureFixture[str], body: str
) -> None:
    tool = load(
        f"import os\nKEY = os.environ['WEATHER_KEY']\ndef found():\n    'Leak.'\n    {body}",
        seconds=PATIENCE,
        characters=200,
    )
    result = tool.call(nowhere, {})
    assert KEY[:9] not in repr(result)
    assert KEY[:9] not in capfd.readouterr().err


def test_no_result_contains_a_key_of_a_model_that_a_function_found_elsewhere(load: Load, nowhere: ToolContext) -> None:
    tool = load(f"def found():\n    'Leak.'\n    return 'stolen: {MODEL_KEY}'", seconds=PATIENCE)
    assert text_of(tool, nowhere) == "stolen: [key removed]"


def test_a_key_in_a_description_or_a_default_value_is_not_shown(load: Load, nowhere: ToolContext) -> None:
    tool = load(
        """
        import os
        KEY = os.environ["WEATHER_KEY"]
        def found(key: str = KEY, unit: str = "celsius"):
            return key == KEY
        found.__doc__ = f"Use {KEY}."
        """,
        seconds=PATIENCE,
    )
    assert KEY[:9] not in repr((tool.description, tool.schema, tool.parameters))
    assert [parameter.default for parameter in tool.parameters] == [None, "celsius"]
    assert text_of(tool, nowhere) == "true"


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import os; os._exit(0)", "ended its process with status 0"),
        ("import os; os._exit(17)", "ended its process with status 17"),
        ("raise SystemExit(2)", "SystemExit: 2"),
        ("import os; raise ValueError(os.environ['WEATHER_KEY'])", "ValueError: [key removed]"),
        ("len(bytearray(4_000_000_000))", "MemoryError"),
        ("def found():\n    'x'\nfound.__doc__ = 'x' * 200_000", "more than 100,000 characters"),
        ("print('x' * 500_000)\nfound = 3", "is of type int"),
    ],
)
def test_a_module_that_harms_on_import_is_a_tool_that_cannot_be_loaded(
    load: Load, ok: Tool, nowhere: ToolContext, code: str, message: str
) -> None:
    with pytest.raises(ToolError) as refused:
        load(code)
    assert message in str(refused.value)
    assert text_of(ok, nowhere, text="after") == "after"


def test_a_module_that_never_ends_its_import_is_given_up(tmp_path: Path, nowhere: ToolContext) -> None:
    (tmp_path / "endless.py").write_text("while True: pass")
    (tmp_path / "fine.py").write_text("def found(): return 'fine'\nfound.__doc__ = 'Say it.'")
    host = FunctionHost(tmp_path, (), {}, load_seconds=2)
    try:
        with pytest.raises(ToolError, match=r"importing .* did not end within 2 s"):
            load_function("found", FunctionConfig(place="endless:found"), host)
        pid = host.pid
        assert text_of(load_function("found", FunctionConfig(place="fine:found"), host), nowhere) == "fine"
        assert host.pid == pid
    finally:
        host.close()


@pytest.mark.long
def test_a_pattern_of_a_schema_never_runs_in_our_process(load: Load, nowhere: ToolContext) -> None:
    tool = load(
        """
        from langchain_core.tools import StructuredTool
        schema = {"type": "object", "properties": {"text": {"type": "string", "pattern": "^(a+)+$"}}}
        found = StructuredTool(name="found", description="Slow.", args_schema=schema, func=lambda text: text)
        """,
        seconds=1,
    )
    started = time.monotonic()
    assert "limit of 1 s" in str(tool.call(nowhere, {"text": "a" * 50 + "b"}).error)
    assert time.monotonic() - started < PATIENCE / 2


@pytest.mark.long
def test_calls_run_at_the_same_time(load: Load, nowhere: ToolContext) -> None:
    tool = load("import time\ndef found():\n    'Wait.'\n    time.sleep(1)\n    return 'x'", seconds=PATIENCE)
    with ThreadPoolExecutor(20) as people:
        started = time.monotonic()
        assert list(people.map(lambda _: text_of(tool, nowhere), range(20))) == ["x"] * 20
    assert time.monotonic() - started < 10


def test_long_arguments_arrive(load: Load, nowhere: ToolContext) -> None:
    tool = load("def found(text: str):\n    'Count.'\n    return len(text)", seconds=PATIENCE)
    assert text_of(tool, nowhere, text="ä\ud800" * 2_000_000) == "4000000"


@pytest.mark.long
def test_the_process_is_started_again_after_it_was_killed(host: FunctionHost, ok: Tool, nowhere: ToolContext) -> None:
    assert text_of(ok, nowhere, text="before") == "before"
    pid = host.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: host.pid is None)
    assert text_of(ok, nowhere, text="after") == "after"
    assert host.pid not in (None, pid)


def test_no_descriptor_and_no_thread_is_left_after_many_calls(ok: Tool, nowhere: ToolContext) -> None:
    text_of(ok, nowhere, text="x")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(50):
        text_of(ok, nowhere, text="x")
    assert len(list(Path("/proc/self/fd").iterdir())) <= before


SLOW_MODULE = """
import subprocess, sys, time
def found(mark: str):
    'Wait, with a process that has left its session.'
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", mark], start_new_session=True)
    time.sleep(600)
"""
SHOWHOW = """
import sys
from pathlib import Path
from showhow.tools.external.config import FunctionConfig
from showhow.tools.external.functions.host import FunctionHost
from showhow.tools.external.functions.host import load_function
from showhow.tools.tool import ToolContext
from showhow.worlds.source import World
folder = sys.argv[1]
tool = load_function("found", FunctionConfig(place="slow:found", seconds=500), FunctionHost(Path(folder), (), {}))
tool.call(ToolContext(World("none"), None), {"mark": folder})
"""


@pytest.mark.long
def test_the_process_and_its_calls_end_with_showhow_even_if_that_is_killed(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW_MODULE)
    showhow = subprocess.Popen([sys.executable, "-c", SHOWHOW, str(tmp_path)])
    try:
        # Showhow, the process of functions, the fork of the call, and what the call started.
        wait_until(lambda: len(processes_with(str(tmp_path))) == 4)
    finally:
        showhow.kill()
        showhow.wait()
    wait_until(lambda: not processes_with(str(tmp_path)))
