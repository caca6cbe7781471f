"""A hook of MkDocs: adds the guides of the repository's top, and reference pages that are generated from the code.

The guides are pages of the site; their links begin at the top of the repository.
"""

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from showhow.app.reference_pages import reference_pages

ROOT = Path(__file__).resolve().parents[1]
GUIDES = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the guides and the generated pages to the files of the site."""
    for name in GUIDES:
        text = (ROOT / name).read_text(encoding="utf-8").replace("](docs/", "](")
        files.append(File.generated(config, name, content=text))
    for name, text in reference_pages().items():
        files.append(File.generated(config, f"reference/{name}.md", content=text))
    return files
