"""The documentation inside the app: every page of the app has its help, and no link of it leads nowhere."""

from showhow.app.documentation import DOCS
from showhow.app.help_site import help_pages
from showhow.app.pages.main import PAGES, help_of


def test_every_page_of_the_app_has_its_help():
    for entry in PAGES:
        assert f"The {entry.title} page" in help_of(entry.name).html


def test_the_comments_of_a_page_are_not_shown():
    assert "not run" in (DOCS / "how-to" / "install-and-serve.md").read_text(encoding="utf-8")
    assert not any("not run:" in page.html for page in help_pages().values())


def test_every_link_leads_to_a_page_a_heading_or_a_picture():
    pages = help_pages()
    assert len(pages) > 40
    for page in pages.values():
        for link in page.links:
            target, _, anchor = link.partition("#")
            if target in pages:
                assert not anchor or anchor in pages[target].anchors, (page.path, link)
            else:
                assert (DOCS / target).suffix == ".png", (page.path, link)
                assert (DOCS / target).is_file(), (page.path, link)
