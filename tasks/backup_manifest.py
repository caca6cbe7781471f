"""The manifest of a backup folder: what it must contain, checked before anything of the folder is used."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, field_validator

from showhow.folder_names import NAME_RULE, is_safe_name
from showhow.guard.files import open_regular
from showhow.tasks.task import TaskError

MANIFEST_FILE = "backup.json"
MAX_WORLDS = 10_000
_MAX_MANIFEST_BYTES = 8 * 1024 * 1024

_Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}\z")]
_ContentHash = Annotated[str, StringConstraints(pattern=r"^[0-9A-Za-z]{1,128}\z")]
_DatabaseName = Annotated[str, StringConstraints(pattern=r"^database-[0-9A-Za-z]{1,64}\.(db|dump)\z")]
_FolderName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,159}\z")]
_Bytes = Annotated[int, Field(ge=0, lt=2**63)]


class BackedUpWorld(BaseModel):
    """A world in a backup: the hash of its content (None for a live world), its folder, the digest of its files."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    name: Annotated[str, StringConstraints(max_length=64)]
    hash: _ContentHash | None
    folder: _FolderName
    digest: _Sha256
    bytes: _Bytes | None = None
    """The size of its files; former versions did not write it."""

    @field_validator("name")
    @classmethod
    def _check_name(cls, name: str) -> str:
        if not is_safe_name(name):
            raise ValueError(f"no world can be called so: {NAME_RULE}")
        return name


class BackupManifest(BaseModel):
    """The contents of a backup folder."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    version: Literal[1] = 1
    made: Annotated[str, StringConstraints(max_length=64)]
    database: _DatabaseName
    database_digest: _Sha256
    database_bytes: _Bytes | None = None
    worlds: Annotated[list[BackedUpWorld], Field(max_length=MAX_WORLDS)]

    @field_validator("worlds")
    @classmethod
    def _check_worlds(cls, worlds: list[BackedUpWorld]) -> list[BackedUpWorld]:
        for values in ([world.name.casefold() for world in worlds], [world.folder.casefold() for world in worlds]):
            if len(set(values)) < len(values):
                raise ValueError("two worlds have one name or folder")
        return worlds

    @classmethod
    def read(cls, folder: Path) -> "BackupManifest":
        """Read the manifest of the folder; TaskError if it is no backup."""
        try:
            with open_regular(folder / MANIFEST_FILE, follow_links=False) as stream:
                content = stream.read(_MAX_MANIFEST_BYTES + 1)
            if len(content) > _MAX_MANIFEST_BYTES:
                raise TaskError(
                    f"{folder} is no backup: its {MANIFEST_FILE} has more than {_MAX_MANIFEST_BYTES:,} bytes"
                )
            return cls.model_validate_json(content)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(map(str, first["loc"])) or "as a whole"
            raise TaskError(
                f"{folder} is no backup that this version restores ({MANIFEST_FILE}, {place[:80]}: {first['msg'][:99]})"
            ) from error
        except OSError as error:
            raise TaskError(
                f"{folder} is no backup that `showhow backup` completed ({MANIFEST_FILE}: {error.strerror})"
            ) from error
