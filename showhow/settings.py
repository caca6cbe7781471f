"""What the environment says, read once at the edge and handed on as a value."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import quote, urlsplit, urlunsplit

from dotenv import dotenv_values
from platformdirs import user_data_path

from showhow.guard.destinations import InvalidOrigin
from showhow.guard.proxy import HttpProxy, parse_proxy

DEFAULT_ENCODER = "all-MiniLM-L6-v2"
DEFAULT_LIBRARY = "default"
"""What questions are answered with where no library is named."""
DEFAULT_MODEL_SECONDS = 120.0
_OWN_FILES = (
    *("showhow.db*", "models.json", "destinations.json", "cookie_secret", "drift.json"),
    *("model_limits.sqlite*", "*.lock", ".*"),
    *("backups", "libraries", "model_slots", "removed_worlds", "runs", "tool-homes", "uploads", "worlds"),
)
"""What Showhow keeps in its home."""
LOOPBACK = "loopback"
"""The word for the addresses by which a machine reaches itself."""
LOGINS = PASSWORD_LOGIN, OIDC_LOGIN, PROXY_LOGIN = ("password", "oidc", "proxy")
"""How people log in; without a login, one person on one machine works with an account of nobody."""
LINKED_LOGINS = (PASSWORD_LOGIN, OIDC_LOGIN)
"""Those to which people are invited by links."""
MIN_LOGIN_SECRET_CHARACTERS = 16
DEFAULT_URL = "http://127.0.0.1:8501"
LIBPQ_PASSWORD = "PGPASSWORD"  # noqa: S105 - a name


class SettingsError(Exception):
    """The environment says something that cannot be used; the message says what to write."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Where Showhow keeps its things and what it works with; keys of model providers are never part of it."""

    home: Path
    """The folder of the database, the worlds and the profiles."""
    database_url: str
    """SQLite in the home by default; `postgresql://...` for teams and several machines."""
    encoder: str = DEFAULT_ENCODER
    """The sentence encoder; all-MiniLM-L6-v2 by default."""
    model: str | None = None
    """The model of the profile `default`, as `provider:model`."""
    model_base_url: str | None = None
    """The address of an OpenAI-compatible server for that model."""
    model_seconds: float = DEFAULT_MODEL_SECONDS
    """How long a reply of the language model may take."""
    model_temperature: float | None = 0.0
    """None leaves it to the provider; some models take no other."""
    model_key_variable: str | None = None
    """The environment variable that holds the key of the model's server; None for the provider's usual one."""
    model_price: tuple[float, ...] | None = None
    """US dollars for a million tokens of input, output, cached input and input written to the cache, the last two
    optional; None if no price is known."""
    contact: str | None = None
    """An e-mail address or a page, sent with requests of live worlds, which are not made without it."""
    offline: bool = False
    """Whether live worlds answer from their record only."""
    proxy: HttpProxy | None = field(default=None, repr=False)
    """The HTTP proxy through which models, live worlds and web search are reached; this machine itself never is."""
    telemetry: str = "off"
    """Which OpenTelemetry spans are sent: none (off), spans without texts (spans), or with texts (content)."""
    as_of: datetime | None = None
    """The moment as of which live worlds answer, from their record."""
    tools_file: Path | None = None
    """The file that declares tools of others, where it is not tools.toml in the home."""
    import_folder: Path | None = None
    """The folder whose files administrators may import on the Worlds page; None offers uploads only."""
    plugins: bool = True
    """Whether what other installed packages add is loaded, which is code that runs as Showhow does; 0 turns it off."""
    local_addresses: tuple[str, ...] = (LOOPBACK,)
    """The addresses of clients that count as this machine itself: LOOPBACK, and those that were added."""

    login: str = ""
    """How people log in: `password`; `oidc`, at a provider of identities; `proxy`, whose header names them; empty: not
    at all, so that only this machine is served."""
    login_header: str = "X-Forwarded-User"
    """With the login `proxy`, the header in which the proxy names the person."""
    login_secret: str = field(default="", repr=False)
    """With the login `proxy`, what the proxy sends in the header X-Showhow-Secret, at least 16 characters."""
    oidc_issuer: str = ""
    """With the login `oidc`, the issuer, such as https://idp.example.org, with its metadata below /.well-known/."""
    oidc_client: str = ""
    """With the login `oidc`, the client's id; its redirect URI is SHOWHOW_URL followed by /login/callback."""
    oidc_secret: str = field(default="", repr=False)
    """With the login `oidc`, the client's secret."""
    url: str = DEFAULT_URL
    """The address at which people open the pages: for links of invitations, and the way back from a provider."""

    def __post_init__(self) -> None:
        """SettingsError where settings contradict each other."""
        if self.login == PROXY_LOGIN and len(self.login_secret) < MIN_LOGIN_SECRET_CHARACTERS:
            raise SettingsError(
                f"SHOWHOW_LOGIN is {PROXY_LOGIN}, but SHOWHOW_LOGIN_SECRET has fewer than "
                f"{MIN_LOGIN_SECRET_CHARACTERS} characters; write there what the proxy sends in X-Showhow-Secret."
            )
        if self.login == OIDC_LOGIN and not (self.oidc_issuer and self.oidc_client and self.oidc_secret):
            raise SettingsError(
                f"SHOWHOW_LOGIN is {OIDC_LOGIN}, but SHOWHOW_OIDC_ISSUER, SHOWHOW_OIDC_CLIENT or SHOWHOW_OIDC_SECRET "
                "is empty; write there what the provider has given this server."
            )

    @classmethod
    def from_env(cls, environ: Mapping[str, str], dotenv: Path | None = None) -> "Settings":
        """Settings from `environ`, which wins over the optional `.env` file; empty values count as unset."""
        from_file = dotenv_values(dotenv) if dotenv is not None and dotenv.is_file() else {}
        values = {**from_file, **{name: value for name, value in environ.items() if value}}
        home = Path(values.get("SHOWHOW_HOME") or user_data_path("showhow", appauthor=False)).expanduser().resolve()
        return cls(
            home=home,
            database_url=add_password(values.get("SHOWHOW_DATABASE_URL"), values.get(LIBPQ_PASSWORD))
            or f"sqlite:///{home / 'showhow.db'}",
            encoder=values.get("SHOWHOW_ENCODER") or DEFAULT_ENCODER,
            model=values.get("SHOWHOW_MODEL"),
            model_base_url=values.get("SHOWHOW_MODEL_BASE_URL"),
            model_seconds=_parse_seconds(values.get("SHOWHOW_MODEL_SECONDS")),
            model_temperature=_parse_temperature(values.get("SHOWHOW_MODEL_TEMPERATURE")),
            model_key_variable=values.get("SHOWHOW_MODEL_KEY_VARIABLE"),
            model_price=_parse_price(values.get("SHOWHOW_MODEL_PRICE")),
            contact=values.get("SHOWHOW_CONTACT"),
            offline=_parse_flag(values, "SHOWHOW_OFFLINE"),
            proxy=_parse_proxy(values.get("SHOWHOW_PROXY")),
            telemetry=_parse_telemetry(values.get("SHOWHOW_TELEMETRY")),
            as_of=_parse_datetime(values.get("SHOWHOW_AS_OF")),
            tools_file=_parse_path(values.get("SHOWHOW_TOOLS")),
            import_folder=_parse_path(values.get("SHOWHOW_IMPORT_FOLDER")),
            plugins=_parse_flag(values, "SHOWHOW_PLUGINS", default="1"),
            local_addresses=_parse_local_addresses(values.get("SHOWHOW_LOCAL_ADDRESSES")),
            login=_parse_login(values.get("SHOWHOW_LOGIN")),
            login_header=values.get("SHOWHOW_LOGIN_HEADER") or "X-Forwarded-User",
            login_secret=values.get("SHOWHOW_LOGIN_SECRET") or "",
            oidc_issuer=(values.get("SHOWHOW_OIDC_ISSUER") or "").rstrip("/"),
            oidc_client=values.get("SHOWHOW_OIDC_CLIENT") or "",
            oidc_secret=values.get("SHOWHOW_OIDC_SECRET") or "",
            url=(values.get("SHOWHOW_URL") or DEFAULT_URL).rstrip("/"),
        )

    @property
    def uploads_folder(self) -> Path:
        """The folder of uploads that are being imported."""
        return self.home / "uploads"

    @property
    def imports_folder(self) -> Path:
        """The folder of imports that are being written, each with a copy of its file."""
        return self.home / "imports"

    @property
    def worlds_folder(self) -> Path:
        """The folder that holds one folder a world."""
        return self.home / "worlds"

    @property
    def tool_homes_folder(self) -> Path:
        """The folder that holds a home for each tool of others."""
        return self.home / "tool-homes"

    def list_private_paths(self) -> list[Path]:
        """What stays closed to tools of others: what Showhow keeps in its home, its database, and `.env`.

        Other files beside tools.toml are the operator's, for tools to read.
        """
        own = [path for pattern in _OWN_FILES for path in self.home.glob(pattern)]
        database = Path(self.database_url.removeprefix("sqlite:///"))
        own += database.parent.glob(f"{database.name}*") if self.database_url.startswith("sqlite:///") else []
        folders = [self.home, Path.cwd(), *([self.tools_file.parent] if self.tools_file else [])]
        return [*own, *(folder / ".env" for folder in folders)]


def add_password(url: str | None, password: str | None) -> str | None:
    """The URL with the password of libpq's variable, which is taken out of the environment, unless it has its own."""
    if not url or not password or not url.startswith("postgresql"):
        return url
    parts = urlsplit(url)
    user, _, host = parts.netloc.rpartition("@")
    if ":" in user or "password=" in parts.query:
        return url
    return urlunsplit(parts._replace(netloc=f"{user}:{quote(password, safe='')}@{host}"))


def _parse_path(written: str | None) -> Path | None:
    return Path(written).expanduser().resolve() if written else None


def _parse_proxy(written: str | None) -> HttpProxy | None:
    try:
        return parse_proxy(written) if written else None
    except InvalidOrigin as error:
        # The value is not quoted, since it may have a password.
        raise SettingsError(
            f"The address in SHOWHOW_PROXY {error}; write one such as http://proxy.example:3128, or "
            "http://NAME:PASSWORD@proxy.example:3128 with what is not a letter or digit as %40."
        ) from error


def _parse_local_addresses(written: str | None) -> tuple[str, ...]:
    if (written or "").strip().casefold() == "none":
        return ()
    try:
        return (LOOPBACK, *(str(ip_address(part.strip())) for part in (written or "").split(",") if part.strip()))
    except ValueError as error:
        raise SettingsError(
            f"SHOWHOW_LOCAL_ADDRESSES is {written!r}; write addresses with commas between them, such as 172.17.0.1, or "
            "none if every visitor comes through a proxy."
        ) from error


def _parse_login(written: str | None) -> str:
    login = (written or "").strip().casefold()
    if login and login not in LOGINS:
        raise SettingsError(
            f"SHOWHOW_LOGIN is {written!r}; write {' or '.join(LOGINS)}, or nothing if you are here alone."
        )
    return login


def _parse_seconds(written: str | None) -> float:
    if not written:
        return DEFAULT_MODEL_SECONDS
    values = _parse_number(written)
    if values is None or values == 0:
        raise SettingsError(f"SHOWHOW_MODEL_SECONDS is {written!r}; write a number of seconds, such as 120.")
    return values


def _parse_temperature(written: str | None) -> float | None:
    if not written:
        return 0.0
    values = _parse_number(written)
    if values is None and written != "default":
        raise SettingsError(
            f"SHOWHOW_MODEL_TEMPERATURE is {written!r}; write a number such as 0, or default for the provider's own."
        )
    return values


def _parse_price(written: str | None) -> tuple[float, ...] | None:
    if not written:
        return None
    prices = [price for part in written.split("/") if (price := _parse_number(part)) is not None]
    if len(prices) != len(written.split("/")) or not 2 <= len(prices) <= 4:
        raise SettingsError(
            f"SHOWHOW_MODEL_PRICE is {written!r}; write US dollars per million tokens of input and output, such as "
            "2.50/10, or also of cached input and of input written to the cache, such as 3/15/0.30/3.75."
        )
    return tuple(prices)


def _parse_flag(values: Mapping[str, str | None], name: str, default: str = "0") -> bool:
    written = values.get(name) or default
    if written.casefold() not in {"0", "1", "no", "yes", "false", "true"}:
        raise SettingsError(f"{name} is {written!r}; write 1 or 0.")
    return written.casefold() in {"1", "yes", "true"}


def _parse_telemetry(written: str | None) -> str:
    value = (written or "off").casefold()
    if value not in {"off", "spans", "content"}:
        raise SettingsError(
            f"SHOWHOW_TELEMETRY is {written!r}; write off, spans, or content, which also sends prompts and answers."
        )
    return value


def _parse_datetime(written: str | None) -> datetime | None:
    """A moment; one without a time zone is of this machine's."""
    if not written:
        return None
    try:
        return datetime.fromisoformat(written).astimezone()
    except ValueError:
        raise SettingsError(f"SHOWHOW_AS_OF is {written!r}; write a moment such as 2026-11-21T14:00.") from None


def _parse_number(written: str) -> float | None:
    try:
        values = float(written)
    except ValueError:
        return None
    return values if math.isfinite(values) and values >= 0 else None
