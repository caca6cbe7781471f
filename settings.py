"""What the environment says, read once at the edge and handed on as a value."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dotenv import dotenv_values
from platformdirs import user_data_path

DEFAULT_ENCODER = "all-MiniLM-L6-v2"


@dataclass(frozen=True, slots=True)
class Settings:
    """Where Showhow keeps its things and what it works with; keys of model providers are never part of it."""

    home: Path
    database_url: str
    encoder: str = DEFAULT_ENCODER
    model: str | None = None
    model_base_url: str | None = None
    contact: str | None = None

    @classmethod
    def from_env(cls, environ: Mapping[str, str], dotenv: Path | None = None) -> "Settings":
        """Settings from `environ`, which wins over the optional `.env` file; empty values count as unset."""
        from_file = dotenv_values(dotenv) if dotenv is not None and dotenv.is_file() else {}
        found = {**from_file, **{name: value for name, value in environ.items() if value}}
        home = Path(found.get("SHOWHOW_HOME") or user_data_path("showhow", appauthor=False)).expanduser().resolve()
        return cls(
            home=home,
            database_url=found.get("SHOWHOW_DATABASE_URL") or f"sqlite:///{home / 'showhow.db'}",
            encoder=found.get("SHOWHOW_ENCODER") or DEFAULT_ENCODER,
            model=found.get("SHOWHOW_MODEL"),
            model_base_url=found.get("SHOWHOW_MODEL_BASE_URL"),
            contact=found.get("SHOWHOW_CONTACT"),
        )

    @property
    def worlds(self) -> Path:
        """The folder that holds one folder a world."""
        return self.home / "worlds"
