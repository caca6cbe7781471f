"""Uploads: stored in a folder of the home while a job imports them."""

from pathlib import Path

from worlds.scratch_folder import ScratchFolder, claim_abandoned_folders

_PREFIX = "import-"


def create_upload_folder(uploads: Path, world: str) -> ScratchFolder:
    """A new folder for the files of which the world is made; OSError if it cannot be written."""
    return ScratchFolder(uploads, _PREFIX, world)


def remove_abandoned_uploads(uploads: Path) -> list[str]:
    """Remove the uploads of killed imports, and return a sentence about each."""
    return [
        f"Removed the files that were uploaded for the world {folder.name.split('-', 2)[-1]}: its import was killed."
        for folder in claim_abandoned_folders(uploads, _PREFIX)
    ]
