"""Guidelines as HTML: their own pictures are shown, and nothing names another host that a browser would load."""

import re

from showhow.app.guideline_text import list_picture_names, render_guidelines

URI = "data:image/png;base64,AAAA"
FOREIGN = [
    "https://h.example/p.png",
    "//h.example/p.png",
    "/\\h.example/p.png",
    "http:h.example/p.png",
    "ftp://h.example/p.png",
    "javascript:alert(1)",
    "file:///etc/passwd",
]


def sources(html: str) -> list[str]:
    return re.findall(r'\bsrc="([^"]*)"', html)


def test_a_relative_picture_is_shown_by_the_path_of_its_link():
    pictures = {"pictures/the map.png": URI}
    for target in ("pictures/the%20map.png", "<pictures/the map.png>", "./pictures/the%20map.png"):
        html = render_guidelines(f"# Look\n\nAt ![the *map*]({target}).", pictures)
        assert sources(html) == [URI]
        assert 'alt="the map"' in html
    reference = render_guidelines("![map][m]\n\n[m]: pictures/the%20map.png", pictures)
    assert sources(reference) == [URI]
    missing = render_guidelines("![map](other.png)", pictures)
    assert sources(missing) == []
    assert "the picture map is missing: other.png" in missing


def test_pictures_of_other_hosts_are_links_and_markup_is_text():
    for target in FOREIGN:
        html = render_guidelines(f"See ![the map]({target}) and <img src='{target}'> and ![][m]\n\n[m]: {target}", {})
        assert "<img" not in html, target
    assert '<a href="https://h.example/p.png"' in render_guidelines(f"![the map]({FOREIGN[0]})", {})
    assert 'href="javascript' not in render_guidelines("[x](javascript:alert(1)) ![y](javascript:alert(1))", {})


def test_the_pictures_of_a_file_are_its_relative_links():
    text = f"![a](a.png) ![b](<pictures/the b.png>) [![c](c.png)](c.html) ![a](./a.png) ![d]({FOREIGN[0]}) ![e](/e.png)"
    assert list_picture_names(text) == ["a.png", "pictures/the b.png", "c.png"]
