"""What functions and MCP servers cannot reach, use or leave behind; and what they still can do."""

import os
import socket
import sqlite3
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from showhow.guard.confinement import Protection, describe_gaps, missing_protections
from showhow.guard.tree_usage import descendants
from showhow.runs.services import Services
from showhow.settings import Settings
from showhow.tools.external.config import load_external_tools_config
from showhow.tools.external.confinement import ToolPlaces
from showhow.tools.registry import ToolRegistry
from showhow.tools.tool import ToolContext, ToolResult
from showhow.worlds.source import World
from tests.browser.server import copy_prepared_home
from tests.servers.weather_started import PATIENCE
from tests.tools.external.processes import processes_with, wait_until

pytestmark = [pytest.mark.long, pytest.mark.skipif(sys.platform != "linux", reason="the protections are Linux's")]
SECRET = "sk-of-the-server-5f1c9"  # noqa: S105 - planted to be looked for
MODULE = """
def attempt(code: str) -> str:
    "Run the code and return its result."
    names: dict = {}
    exec(code, names)
    return str(names.get("result", "done"))
"""
SERVER = """
from mcp.server.fastmcp import FastMCP
from hostile import attempt
server = FastMCP("hostile", log_level="ERROR")
server.tool()(attempt)
server.run()
"""
TOOLS = f'''
[functions.attempt]
place = "hostile:attempt"
megabytes = 200
disk_megabytes = 100
seconds = {PATIENCE}

[servers.other]
command = "{sys.executable}"
args = ["HOME/hostile_server.py"]
megabytes = 400
disk_megabytes = 100
seconds = {PATIENCE}
'''
WITHOUT_NAMESPACES = frozenset({Protection.PROCESSES})


@dataclass(frozen=True)
class Tools:
    """The tools of a home, and where things lie that they must not reach."""

    registry: ToolRegistry
    home: Path
    person: Path
    """A person's folder, with keys."""
    is_server: bool

    def run(self, code: str) -> ToolResult:
        """Run the code in the function, or in the tool of the MCP server."""
        name = "other_attempt" if self.is_server else "attempt"
        context = ToolContext(World("none"), lambda texts: pytest.fail(f"the encoder was asked for {texts}"))
        return self.registry.get_tool(name).call(context, {"code": textwrap.dedent(code)})

    def result(self, code: str) -> str:
        """The result of code that works."""
        outcome = self.run(code)
        assert outcome.observation is not None, outcome.error
        return outcome.observation.text


def confine(home: Path, without: frozenset[Protection]) -> ToolRegistry:
    """The registry of this home, as Services makes it, without some protections."""
    services = Services(Settings.from_env({"SHOWHOW_HOME": str(home)}), {"PATH": os.defpath, "OPENAI_API_KEY": SECRET})
    private = tuple(services.settings.list_private_paths())
    places = ToolPlaces(services.settings.tool_homes_folder, private, missing_protections() | without)
    return ToolRegistry(load_external_tools_config(services.tools_path), services.environ, places=places)


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(
            (is_server, without), id=f"{'server' if is_server else 'function'}{', no namespaces' * bool(without)}"
        )
        for is_server in (False, True)
        for without in (frozenset(), WITHOUT_NAMESPACES)
    ],
)
def tools(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tools]:
    is_server, without = request.param
    folder = tmp_path_factory.mktemp("machine")
    home, person = folder / "showhow", folder / "person"
    (person / ".ssh").mkdir(parents=True)
    (person / ".ssh" / "id").write_text(SECRET)
    home.mkdir()
    (home / "hostile.py").write_text(MODULE)
    (home / "hostile_server.py").write_text(SERVER)
    (home / "notes.txt").write_text("beside the tools")
    (home / "tools.toml").write_text(TOOLS.replace("HOME", str(home)))
    (home / "models.json").write_text(f'"{SECRET}"')
    (home / "worlds").mkdir()
    (home / "worlds" / "text").write_text(SECRET)
    (home / ".env").write_text(SECRET)
    with sqlite3.connect(home / "showhow.db") as connection:
        connection.execute("CREATE TABLE step (thought TEXT)")
    connection.close()
    registry = confine(home, without)
    yield Tools(registry, home, person, is_server)
    registry.close()


@pytest.fixture(scope="module")
def victim() -> Iterator[subprocess.Popen[bytes]]:
    """A process of the same user as this one, with a secret in its environment."""
    process = subprocess.Popen(
        [sys.executable, "-c", "import sys; print(1, flush=True); sys.stdin.read()"],
        env={"KEY": SECRET},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.readline()
    yield process
    process.kill()
    process.communicate()


@pytest.mark.parametrize(
    "code",
    [
        "result = open('/proc/VICTIM/environ').read()",
        "result = open('/proc/VICTIM/mem', 'rb').read(1)",
        "result = open('/proc/VICTIM/root/PERSON/.ssh/id').read()",
        "result = open('/proc/VICTIM/cwd/pyproject.toml').read()",
        "result = open('PERSON/.ssh/id').read()",
        "import shutil; shutil.copytree('PERSON', __import__('os').environ['HOME'] + '/copy')",
        "result = open('SHOWHOW/models.json').read()",
        "result = open('SHOWHOW/worlds/text').read()",
        "result = open('SHOWHOW/.env').read()",
        "import sqlite3; result = sqlite3.connect('SHOWHOW/showhow.db').execute('SELECT * FROM step').fetchall()",
        "import sqlite3; sqlite3.connect('SHOWHOW/showhow.db').execute('INSERT INTO step VALUES (1)')",
        "open('SHOWHOW/showhow.db', 'a')",
        "import os; os.truncate('SHOWHOW/showhow.db', 0)",
        "import os; os.unlink('SHOWHOW/showhow.db')",
        "import os; os.rename('SHOWHOW/showhow.db', os.environ['HOME'] + '/x')",
        "import os; os.chdir(os.environ['HOME']); os.link('SHOWHOW/models.json', 'y'); result = open('y').read()",
        "import os; os.chdir(os.environ['HOME']); os.symlink('SHOWHOW/models.json', 'z'); open('z').read()",
        "open('SHOWHOW/hostile.py', 'a')",
        "open('SHOWHOW/new.py', 'w')",
        "open('PERSON/new', 'w')",
        "open('/etc/shadow').read()",
        "import subprocess; subprocess.run(['cat', 'PERSON/.ssh/id'], check=True)",
        "import os; os.kill(VICTIM, 15)",
        "import os; os.setuid(0); open('SHOWHOW/showhow.db')",
        "import os, socket; socket.socket(socket.AF_UNIX).connect('PERSON/bus')",
        "import socket; socket.socket(socket.AF_UNIX).connect('\\0showhow-test-bus')",
        "import ctypes, os; assert ctypes.CDLL(None, use_errno=True).ptrace(16, VICTIM, 0, 0) == 0",
        "import ctypes; assert ctypes.CDLL(None).mount(b'none', b'/mnt', b'tmpfs', 0, None) == 0",
        "import ctypes; c = ctypes.CDLL(None); c.unshare(0x10020000); c.chroot(b'PERSON'); open('/.ssh/id').read()",
        "import os; os.memfd_create('x')",
    ],
)
def test_nothing_of_the_account_and_of_showhow_is_open(
    tools: Tools, victim: subprocess.Popen[bytes], code: str
) -> None:
    for old, new in {"VICTIM": victim.pid, "PERSON": tools.person, "SHOWHOW": tools.home}.items():
        code = code.replace(old, str(new))
    with (
        socket.socket(socket.AF_UNIX) as bus,
        socket.socket(socket.AF_UNIX) as abstract,
    ):
        (tools.person / "bus").unlink(missing_ok=True)
        bus.bind(str(tools.person / "bus"))
        bus.listen()
        abstract.bind(b"\0showhow-test-bus")
        abstract.listen()
        outcome = tools.run(code)
    assert outcome.observation is None, outcome.observation
    assert SECRET not in str(outcome.error)
    assert victim.poll() is None
    assert (tools.home / "showhow.db").stat().st_size > 0
    assert (tools.home / "hostile.py").read_text() == MODULE


def test_no_process_shows_a_secret_in_proc(tools: Tools, victim: subprocess.Popen[bytes]) -> None:
    seen = tools.result("""
        import os
        texts = []
        for process in os.listdir("/proc"):
            for name in ("environ", "maps", "auxv"):
                try:
                    texts.append(open(f"/proc/{process}/{name}", errors="replace").read())
                except OSError:
                    pass
        result = str(len(texts)) + "".join(texts).replace("\\0", " ")
    """)
    assert int(seen[0]) > 0
    assert SECRET not in seen
    assert victim.args[0] not in seen or not tools.is_server


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (
            "import os; result = open(os.path.dirname(__import__('hostile').__file__) + '/notes.txt').read()",
            "beside the",
        ),
        ("import os; open(os.environ['HOME'] + '/a', 'w').write('x'); result = os.listdir(os.environ['HOME'])", "'a'"),
        ("import tempfile; result = tempfile.TemporaryFile('w').write('four')", "4"),
        ("import ssl; result = ssl.create_default_context().cert_store_stats()", "x509"),
        ("import socket; result = socket.getaddrinfo('localhost', 80)[0][4][0]", "1"),
        ("import subprocess, sys; result = subprocess.check_output([sys.executable, '-c', 'print(6 * 7)'])", "42"),
        ("import datetime, zoneinfo; result = datetime.datetime.now(zoneinfo.ZoneInfo('Europe/Bern' and 'UTC'))", "20"),
        ("import pydantic, numpy; result = numpy.ones(3).sum()", "3.0"),
        ("from concurrent.futures import ThreadPoolExecutor as T; result = T().submit(abs, -7).result()", "7"),
    ],
)
def test_ordinary_work_goes_on(tools: Tools, code: str, expected: str) -> None:
    assert expected in tools.result(code)


def test_the_network_stays_open_also_to_this_machine(tools: Tools) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert tools.result(f"import socket; socket.create_connection(('127.0.0.1', {port}), 5)") == "done"


MANY_CHILDREN = """
import os, time
for _ in range(20):
    if os.fork() == 0:
        DETACH
        memory = bytearray(os.urandom(1 << 20)) * 120
        time.sleep(600)
        os._exit(0)
time.sleep(600)
"""
MANY_FILES = """
import os
for number in range(40):
    with open(os.environ["HOME"] + f"/large{number}", "wb") as file:
        for _ in range(25):
            file.write(os.urandom(1 << 20))
        KEEP
"""
MANY_ACCEPTED = "socket.create_connection(server.getsockname()), server.accept()[0]"
MANY_SOCKETS = """
import os, socket, time
server = socket.create_server(("127.0.0.1", 0), backlog=4096)
kept = []
for _ in range(12):
    if os.fork() == 0:
        for _ in range(400):
            one, other = FILLED
            one.setblocking(False)
            try:
                while True:
                    one.send(bytes(1 << 20))
            except OSError:
                pass
            kept.append((other, one))
        time.sleep(600)
        os._exit(0)
time.sleep(600)
"""


@pytest.mark.parametrize(
    ("code", "messages"),
    [
        (MANY_CHILDREN.replace("DETACH", ""), ["MB of memory together"]),
        (MANY_CHILDREN.replace("DETACH", "os.setsid()"), ["MB of memory together"]),
        (MANY_SOCKETS.replace("FILLED", "socket.socketpair()"), ["MB of memory together"]),
        (
            MANY_SOCKETS.replace("FILLED", "socket.create_connection(server.getsockname()), None"),
            ["MB of memory together"],
        ),
        (MANY_SOCKETS.replace("FILLED", MANY_ACCEPTED), ["MB of memory together"]),
        (MANY_FILES.replace("KEEP", ""), ["MB of files together"]),
        (MANY_FILES.replace("KEEP", "os.unlink(file.name); os.dup(file.fileno())"), ["MB of files together"]),
        ("import os; open(os.environ['HOME'] + '/sparse', 'wb').truncate(1 << 40)", ["File too large"]),
        ("import os; os.posix_fallocate(os.open(os.environ['HOME'] + '/one', 66), 0, 1 << 30)", ["File too large"]),
        ("open('/dev/shm/x', 'wb').write(bytes(80 << 20))", ["No space left", "Permission denied", "MemoryError"]),
        (
            "import os, time\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        time.sleep(0.01)",
            ["processes", "has ended", "it ended"],
        ),
        ("import os; kept = [open('/dev/null') for _ in range(5000)]", ["Too many open files"]),
    ],
    ids=[
        "children",
        "detached children",
        "socket pairs",
        "waiting connections",
        "connections",
        "files",
        "deleted files",
        "sparse",
        "one file",
        "shm",
        "forks",
        "open files",
    ],
)
def test_a_limit_holds_for_all_processes_of_a_tool_together(tools: Tools, code: str, messages: list[str]) -> None:
    # Other files' fixtures may have left servers and a browser.
    before = len(descendants(os.getpid()))
    error = str(tools.run(code).error)
    assert any(message in error for message in messages), error
    for file in (tools.home / "tool-homes").glob("*/*"):
        if file.is_file():
            file.unlink()
    wait_until(lambda: len(descendants(os.getpid())) < before + 40)
    assert tools.result("result = 'after'") == "after"


# Only calls of functions are counted by a process that they can reach.
@pytest.mark.parametrize(
    "tools", [(False, frozenset()), (False, WITHOUT_NAMESPACES)], indirect=True, ids=["function", "no namespaces"]
)
def test_memory_is_limited_even_if_the_process_that_counts_a_call_is_stopped(tools: Tools) -> None:
    stopping = "import os, signal; os.kill(os.getppid(), signal.SIGSTOP)\n" + MANY_CHILDREN.replace(
        "range(20)", "range(60)"
    )
    assert "MB of memory together" in str(tools.run(stopping.replace("DETACH", "os.setsid()")).error)
    assert tools.result("result = 'after'") == "after"


DAEMONS = """
import ctypes, os, signal, sys
for resets in (False, True):
    if os.fork() == 0:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        if resets:
            ctypes.CDLL(None).prctl(1, 0, 0, 0, 0)
        if os.fork() == 0:
            for descriptor in range(3):
                os.close(descriptor)
            os.closerange(3, 100)
            os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(600)", "MARK"])
        os._exit(0)
"""


def test_nothing_is_left_when_the_registry_closes(tools: Tools) -> None:
    mark = f"left-by-{os.getpid()}-{time.monotonic_ns()}"
    tools.run(DAEMONS.replace("MARK", mark) + "\nimport time; time.sleep(0.5)")
    if tools.is_server:
        wait_until(lambda: len(processes_with(mark)) == 2)
        tools.registry.close()
    # The daemons of a function end with its call.
    wait_until(lambda: not processes_with(mark))


SHOWHOW = """
import sys
from pathlib import Path
from tests.tools.external.test_confinement import Tools, confine, Protection
home, code, is_server, without = sys.argv[1:]
registry = confine(Path(home), frozenset(map(Protection, without.split())))
Tools(registry, Path(home), Path(home), is_server == "yes").run(code)
"""


def test_nothing_outlives_a_killed_showhow(tools: Tools, tmp_path: Path) -> None:
    mark = f"orphan-of-{os.getpid()}-{time.monotonic_ns()}"
    code = DAEMONS.replace("MARK", mark) + "\nimport time; time.sleep(600)"
    places = tools.registry._places
    without = " ".join(places.without or ())
    root = Path(__file__).parents[3]
    showhow = subprocess.Popen(
        [sys.executable, "-c", SHOWHOW, str(tools.home), code, "yes" if tools.is_server else "no", without],
        env={**os.environ, "PYTHONPATH": str(root)},
        cwd=root,
    )
    try:
        # Two daemons, and Showhow, which has the code as an argument.
        wait_until(lambda: len(processes_with(mark)) == 3)
        started = descendants(showhow.pid)
    finally:
        showhow.kill()
        showhow.wait()
    wait_until(lambda: not processes_with(mark) and not any(Path(f"/proc/{process}").exists() for process in started))


def test_everything_that_showhow_keeps_in_its_home_stays_closed(tmp_path: Path) -> None:
    copy_prepared_home(tmp_path)
    settings = Settings.from_env({"SHOWHOW_HOME": str(tmp_path)})
    assert {*tmp_path.iterdir()} <= {*settings.list_private_paths()}


@pytest.mark.parametrize("missing", Protection)
def test_each_missing_protection_is_told_in_a_sentence(missing: Protection) -> None:
    gaps = describe_gaps(frozenset({missing, Protection.PROCESSES}), is_root=True)
    assert gaps
    assert all(gap.startswith("Functions and MCP servers ") and gap.endswith(".") for gap in gaps)
    assert describe_gaps(frozenset(), is_root=True) == []
