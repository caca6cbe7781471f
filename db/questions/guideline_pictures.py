"""The pictures of a project's guidelines, which name them by relative links such as `![map](pictures/map.png)`."""

from base64 import b64encode
from collections.abc import Mapping
from posixpath import normpath
from uuid import UUID

from sqlalchemy import delete, select
from sqlalchemy.orm import Mapped, Session, mapped_column

from showhow.db.database import Conflict
from showhow.db.people.users import ADMIN, require_acting_role
from showhow.db.types import MAX_TEXT_CHARACTERS, Base

_SIGNATURES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"RIFF": "image/webp",
}
"""How a picture's file begins, by its type."""
PICTURE_SUFFIXES = ("png", "jpg", "jpeg", "gif", "webp")
MAX_PICTURE_BYTES = MAX_TEXT_CHARACTERS * 3 // 4 - 64
MAX_PICTURES = 50


class GuidelinePicture(Base):
    """A picture as a data URI; `name` is its path in links. Without a foreign key, it outlasts its project unseen."""

    __tablename__ = "guideline_picture"

    project_id: Mapped[UUID] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    content: Mapped[str]


def normalize_picture_name(name: str) -> str:
    """The name of a picture for the path of a link or a file."""
    return normpath(name.replace("\\", "/").strip())


def load_pictures(session: Session, project_id: UUID) -> Mapping[str, str]:
    """The project's pictures as data URIs by name."""
    rows = select(GuidelinePicture.name, GuidelinePicture.content).where(GuidelinePicture.project_id == project_id)
    return dict(session.execute(rows.order_by(GuidelinePicture.name)).all())


def store_picture(session: Session, project_id: UUID, name: str, content: bytes) -> None:
    """Store a picture, in place of one with this name, as an administrator; Conflict for a file that is no picture."""
    require_acting_role(session, ADMIN)
    media_type = next((kind for start, kind in _SIGNATURES.items() if content.startswith(start)), None)
    if media_type is None:
        raise Conflict(f"{name} is no picture in the form of PNG, JPEG, GIF or WebP; convert it to one of them")
    if len(content) > MAX_PICTURE_BYTES:
        raise Conflict(f"{name} has {len(content):,} bytes, and at most {MAX_PICTURE_BYTES:,} can be stored; shrink it")
    key = normalize_picture_name(name)
    remove_picture(session, project_id, key)
    if len(load_pictures(session, project_id)) >= MAX_PICTURES:
        raise Conflict(f"the guidelines have {MAX_PICTURES} pictures already; remove one first")
    uri = f"data:{media_type};base64,{b64encode(content).decode('ascii')}"
    session.add(GuidelinePicture(project_id=project_id, name=key, content=uri))
    session.flush()


def remove_picture(session: Session, project_id: UUID, name: str) -> None:
    """Remove a picture, as an administrator."""
    require_acting_role(session, ADMIN)
    row = (GuidelinePicture.project_id == project_id, GuidelinePicture.name == normalize_picture_name(name))
    session.execute(delete(GuidelinePicture).where(*row))
