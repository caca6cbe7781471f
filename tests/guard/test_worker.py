"""Bounded work: a function in a process of its own, which is killed at its limits."""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

import pytest

from showhow.guard.worker import WorkFailed, WorkLimitExceeded, WorkLimits, run_bounded
from tests.guard import bounded_functions as work

ROOT = Path(__file__).resolve().parents[2]
BRIEF = WorkLimits(seconds=0.5)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except FileNotFoundError:
        return False


def wait_until_gone(pid: int) -> None:
    deadline = time.monotonic() + 20
    while is_alive(pid):
        assert time.monotonic() < deadline, f"the process {pid} lives on"
        threading.Event().wait(0.01)


def test_a_result_comes_back_and_a_warm_call_is_quick():
    assert run_bounded(work.add, 2, 3) == 5
    seconds = []
    for _ in range(50):
        start = time.perf_counter()
        run_bounded(work.add, 1, 1)
        seconds.append(time.perf_counter() - start)
    assert median(seconds) < 0.02


def test_a_regular_expression_that_holds_the_interpreter_ends_at_its_limit():
    start = time.monotonic()
    with pytest.raises(WorkLimitExceeded, match=r"0\.5 s") as error:
        run_bounded(work.backtrack, 60, limits=BRIEF)
    assert error.value.what == "seconds"
    assert time.monotonic() - start < 10
    assert run_bounded(work.add, 2, 2) == 4


def test_a_function_that_ignores_every_signal_ends_at_its_limit():
    pid = run_bounded(work.own_pid)
    with pytest.raises(WorkLimitExceeded):
        run_bounded(work.ignore_signals, 60, limits=BRIEF)
    wait_until_gone(pid)


def test_memory_over_the_limit_is_told_and_the_next_call_works():
    with pytest.raises(WorkLimitExceeded, match="100 MB of memory") as error:
        run_bounded(work.hold_memory, 300, limits=WorkLimits(megabytes=100))
    assert error.value.what == "megabytes"
    assert run_bounded(work.hold_memory, 50, limits=WorkLimits(megabytes=100)) == 50 << 20


def test_a_result_is_bounded_in_size_and_depth():
    with pytest.raises(WorkLimitExceeded) as error:
        run_bounded(work.repeat, "x", 2_000_000, limits=WorkLimits(reply_bytes=1_000_000))
    assert error.value.what == "reply_bytes"
    with pytest.raises((RecursionError, WorkFailed)):
        run_bounded(work.nest, 100_000)
    assert run_bounded(work.add, 1, 2) == 3


def test_errors_of_the_function_are_raised_as_they_are():
    with pytest.raises(ValueError, match="no such thing \ud800"):
        run_bounded(work.refuse, "no such thing \ud800")
    with pytest.raises(ZeroDivisionError):
        run_bounded(divmod, 1, 0)


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL])
def test_a_worker_that_dies_is_told_and_replaced(number: signal.Signals):
    with pytest.raises(WorkFailed, match=f"signal {int(number)}"):
        run_bounded(work.end, int(number))
    assert run_bounded(work.add, 1, 1) == 2


def test_a_worker_gets_no_secret_no_file_and_no_network(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-a-person")
    with pytest.raises(WorkFailed):
        run_bounded(work.end, int(signal.SIGKILL))
    environment = run_bounded(work.list_environment)
    assert "OPENAI_API_KEY" not in environment
    assert not {name for name in environment if "KEY" in name or "TOKEN" in name or "HOME" in name}
    assert run_bounded(work.count_descriptors) <= 6
    with pytest.raises(PermissionError):
        run_bounded(work.connect)


@pytest.mark.long
def test_threads_that_end_take_no_worker_with_them_and_a_slow_call_delays_no_other():
    with ThreadPoolExecutor(2) as threads:
        assert threads.submit(run_bounded, work.add, 1, 1).result() == 2
    assert run_bounded(work.add, 2, 1) == 3
    with ThreadPoolExecutor(3) as threads:
        slow = [threads.submit(run_bounded, work.backtrack, 60, limits=WorkLimits(seconds=3)) for _ in range(2)]
        assert threads.submit(run_bounded, work.add, 3, 1).result() == 4
        assert not any(call.done() for call in slow)
        assert all(isinstance(call.exception(), WorkLimitExceeded) for call in slow)


PARENT = """
import threading
from showhow.guard.worker import WorkLimits, run_bounded
from tests.guard import bounded_functions as work
print(run_bounded(work.own_pid), flush=True)
threading.Thread(target=run_bounded, args=(work.backtrack, 60), kwargs={"limits": WorkLimits(seconds=300)}).start()
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_survives_the_parent(number: signal.Signals):
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, cwd=ROOT) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert is_alive(pid)
        os.kill(parent.pid, number)
    wait_until_gone(pid)
