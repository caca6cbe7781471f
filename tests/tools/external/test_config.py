"""The configuration file of external tools."""

from pathlib import Path

import pytest

from showhow.tools.external.config import load_external_tools_config

GOOD = """
[functions.count]
place = "my_tools:count"
seconds = 2
[servers.weather]
command = "weather-mcp"
environment = ["WEATHER_KEY"]
[servers.library]
url = "https://tools.example/mcp"
transport = "sse"
token = "LIBRARY_TOKEN"
prefix = ""
"""


def test_functions_and_servers_are_read_with_their_limits(tmp_path: Path) -> None:
    file = tmp_path / "tools.toml"
    file.write_text(GOOD)
    config = load_external_tools_config(file)
    assert not config.errors
    assert config.functions["count"].limits.seconds == 2
    assert config.servers["weather"].environment == ("WEATHER_KEY",)
    assert (config.servers["library"].transport, config.servers["library"].prefix) == ("sse", "")
    assert config.folder == tmp_path


@pytest.mark.parametrize(
    ("entry", "name", "why"),
    [
        ('[functions.a]\nplace = "no place"', "a", "[functions.a]: place: it must be module:function"),
        ("[functions.a]\n", "a", "place: it must be module:function"),
        (
            '[functions.a]\nplace = "m:f"\nsecond = 3',
            "a",
            "second is not a known field; the fields are seconds, characters, environment, folders, place, title",
        ),
        ('[functions.a]\nplace = "m:f"\nseconds = 0', "a", "seconds: input should be greater than 0"),
        ('[functions."a b"]\nplace = "m:f"', "a b", "has a name that models cannot use"),
        ("[servers.a]\nseconds = 3", "a", "a server has either a command"),
        ('[servers.a]\ncommand = "x"\nurl = "http://y"', "a", "a server has either a command"),
        ('[servers.a]\nurl = "ftp://y"', "a", "url: it must be an address"),
        ('[servers.a]\nurl = "http://y"\ntoken = "a secret!"', "a", "token: it must name the environment variable"),
        ('[servers.a]\nurl = "http://y:99999"', "a", "url: it must be an address"),
        ('[servers.a]\nurl = "http://[y"', "a", "url: it must be an address"),
        ('[servers.a]\ncommand = "x"\nargs = "one two"', "a", "args: it must be a list of texts"),
        ("[functions]\na = 3", "a", "the entry: it is not a table of fields"),
        ('[functions.a]\nplace = "m:f"\n[servers.a]\nurl = "http://y"', "a", "both a function and a server"),
        ("[tools.a]\n", "", "has 'tools', but only the tables functions and servers"),
        ("functions = 3", "", "is not a table"),
    ],
)
def test_a_wrong_entry_is_an_error_and_the_others_are_used(tmp_path: Path, entry: str, name: str, why: str) -> None:
    file = tmp_path / "tools.toml"
    file.write_text(f'{entry}\n[servers.good]\nurl = "http://127.0.0.1:9/mcp"\n')
    config = load_external_tools_config(file)
    assert list(config.servers) == ["good"]
    assert why in config.errors[name]
    assert str(file) in config.errors[name]


def test_a_byte_order_mark_is_ignored(tmp_path: Path) -> None:
    file = tmp_path / "tools.toml"
    file.write_text(GOOD, encoding="utf-8-sig")
    assert not load_external_tools_config(file).errors


def test_the_error_of_an_unreadable_file_is_one_sentence(tmp_path: Path) -> None:
    file = tmp_path / "tools.toml"
    assert "cannot be read" in load_external_tools_config(file).errors[""]
    file.write_bytes(b"\xff\xfe")
    assert "not valid TOML" in load_external_tools_config(file).errors[""]
    file.write_text("[functions\n")
    assert "not valid TOML" in load_external_tools_config(file).errors[""]
