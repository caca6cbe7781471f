"""The environment of a process, its children, and what they show in /proc."""

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from showhow.guard.environment import is_needed, is_secret_name, list_secrets

ROOT = Path(__file__).parents[2]
PLANTED = {
    "OPENAI_API_KEY": "planted-1-openai",
    "STRIPE_API_KEY": "planted-2-stripe",
    "GITHUB_PAT": "planted-3-github",
    "SHOWHOW_DATABASE_URL": "sqlite:////nowhere/planted-4",
    "SOMETHING_ELSE": "planted-5-without-a-telling-name",
    "HTTPS_PROXY": "http://planted-6:3128",
    "ANTHROPIC_BASE_URL": "https://planted-7.example",
    "OTEL_EXPORTER_OTLP_HEADERS": "Authorization=Basic planted-8",
    "PGPASSWORD": "planted-9-of-the-database",
    "LANGSMITH_API_KEY": "planted-10",
    "SHOWHOW_WEATHER_TOKEN": "planted-13-named-like-a-setting",
    "PIP_INDEX_URL": "https://me:planted-11@index.example",
    "BYTES_TOKEN": os.fsdecode(b"planted-12-\xff\xfe"),
}
TAKE = """
import os, sys
from showhow.guard.environment import open_held_variables, read_environment, take_environment
take_environment()
values = read_environment()
assert {name: os.fsencode(values[name]) for name in eval(sys.argv[1])} == eval(sys.argv[1]), values
assert not any(name in os.environ for name in eval(sys.argv[1]))
assert "PATH" in os.environ and os.environ["OMP_NUM_THREADS"] == "1"
if sys.argv[2:] and (times := int(sys.argv[2])):
    # The program that replaces this one gets everything by a descriptor.
    environment, held = open_held_variables(values)
    os.set_inheritable(held, True)
    command = [sys.executable, "-c", sys.argv[3], sys.argv[1], str(times - 1), sys.argv[3]]
    os.execve(sys.executable, command, environment)
print("taken", flush=True)
input()
"""


@pytest.mark.parametrize("replacements", [0, 2], ids=["as started", "replaced twice"])
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows the environment in /proc")
def test_a_process_shows_no_variable_that_it_does_not_need(replacements: int):
    expected = repr({name: os.fsencode(value) for name, value in PLANTED.items()})
    with subprocess.Popen(
        [sys.executable, "-c", TAKE, expected, str(replacements), TAKE],
        env={"PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1", **PLANTED},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"taken\n"
        shown = Path(f"/proc/{process.pid}/environ").read_bytes()
        descriptors = [file.path for file in psutil.Process(process.pid).open_files()]
        process.communicate(b"\n", timeout=30)
    assert b"planted" not in shown
    assert b"OMP_NUM_THREADS=1" in shown
    assert not any("held" in path for path in descriptors)


@pytest.mark.parametrize(
    "name",
    [
        *(
            "OPENAI_API_KEY",
            "openai_api_key",
            "AWS_ACCESS_KEY_ID",
            "AWS_SECRET_ACCESS_KEY",
            "GITHUB_TOKEN_2",
            "DB_PASS",
        ),
        *("DB_PASS", "PGPASSWORD", "MYAPIKEY", "GITHUB_PAT", "DB_PWD", "GOOGLE_APPLICATION_CREDENTIALS", "HF_TOKEN"),
        *("OTEL_EXPORTER_OTLP_HEADERS", "SESSION_COOKIE", "BASIC_AUTH", "SENTRY_DSN", "SHOWHOW_WEATHER_API_KEY"),
    ],
)
def test_a_name_says_that_its_value_is_secret(name: str):
    assert is_secret_name(name)
    assert not is_needed(name, "value")


@pytest.mark.parametrize(
    "name", ["PATH", "PWD", "OLDPWD", "SHOWHOW_MODEL_KEY_VARIABLE", "TOKENIZERS_PARALLELISM", "COMPAT", "KEYBOARD"]
)
def test_other_names_do_not(name: str):
    assert not is_secret_name(name)


@pytest.mark.parametrize("name", ["FORWARDED_ALLOW_IPS", "SHOWHOW_LOCAL_ADDRESSES", "SSL_CERT_FILE", "HF_HUB_OFFLINE"])
def test_what_the_server_and_its_libraries_read_stays(name: str):
    assert is_needed(name, "127.0.0.1")


def test_secrets_are_values_that_names_or_addresses_mark_and_no_short_ones():
    environ = {
        "A_KEY": "secret-one-4711",
        "B_KEY": "none",
        "ODD": "secret-two-4711",
        "PATH": "/usr/bin:/bin",
        "SHOWHOW_DATABASE_URL": "postgresql://me:secret%2Dthree-4711@db.example/x",
        "OTHER_URL": "postgresql://db.example/x?user=me&password=secret-four-4711",
        "OTEL_EXPORTER_OTLP_HEADERS": "Authorization=Basic%20secret-five-4711,x-a=b",
        "SHOWHOW_MODEL_KEY_VARIABLE": "ODD_API_KEY",
    }
    secrets = list_secrets(environ, {"ODD", "PATH"})
    assert {
        "secret-one-4711",
        "secret-two-4711",
        "secret%2Dthree-4711",
        "secret-three-4711",
        "secret-four-4711",
        "Basic secret-five-4711",
    } <= {*secrets}
    assert not {"none", "/usr/bin:/bin", "ODD_API_KEY"} & {*secrets}
