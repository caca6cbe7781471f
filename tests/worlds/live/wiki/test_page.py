"""Rendered pages as plain text: table cells compared with generated tilings, and removed elements."""

from html import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from showhow.worlds.live.wiki.page import format_table_rows, parse_page


def page(body: str) -> tuple[str, ...]:
    return parse_page(f'<div class="mw-parser-output">{body}</div>', "en").sentences


Tile = tuple[int, int, int, int]
"""Row, column, rowspan and colspan of one cell."""


@st.composite
def tilings(draw: st.DrawFn) -> tuple[int, int, list[Tile]]:
    """A table of cells over several rows and columns, without gaps."""
    height, width = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    occupied: set[tuple[int, int]] = set()
    tiles = []
    for row in range(height):
        for column in range(width):
            if (row, column) in occupied:
                continue
            across, down = 1, draw(st.integers(1, min(3, height - row)))
            while column + across < width and (row, column + across) not in occupied and draw(st.booleans()):
                across += 1
            tiles.append((row, column, down, across))
            occupied |= {(row + r, column + c) for r in range(down) for c in range(across)}
    return height, width, tiles


@given(tiling=tilings())
def test_every_cell_stands_in_each_row_and_column_that_it_covers(tiling: tuple[int, int, list[Tile]]):
    height, width, tiles = tiling
    head = "".join(f"<th>H{column}</th>" for column in range(width))
    rows = [
        "".join(
            f'<td rowspan="{down}" colspan="{across}">c{row}.{column}</td>'
            for row, column, down, across in tiles
            if row == number
        )
        for number in range(height)
    ]
    markup = f"<table><tr>{head}</tr>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"
    expected = []
    for number in range(height):
        covering = sorted((c, r) for r, c, down, _ in tiles if r <= number < r + down)
        expected.append("; ".join(f"H{c}: c{r}.{c}" for c, r in covering))
    table = LexborHTMLParser(markup).css_first("table")
    assert table is not None
    assert format_table_rows(table, lambda node, _: node.text(strip=True)) == expected


TEXT = st.text(st.characters(blacklist_categories=["Cs", "Cc", "Cf", "Zl", "Zp"]), min_size=1, max_size=30)


@given(cells=st.lists(st.lists(TEXT, min_size=2, max_size=2), min_size=1, max_size=4))
def test_any_cell_content_becomes_plain_text(cells: list[list[str]]):
    rows = "".join("<tr>" + "".join(f"<td>{escape(text)}</td>" for text in row) + "</tr>" for row in cells)
    plain = [[" ".join(part for part in " ".join(text.split()).split("; ") if part) for text in row] for row in cells]
    lines = page(f"<table>{rows}</table>")
    nonblank = [[text for text in row if text.strip()] for row in plain]
    assert len(lines) == len([row for row in nonblank if any(row)])
    if not any(";" in text for row in cells for text in row):
        assert list(lines) == ["; ".join(row) for row in nonblank if row]


@pytest.mark.parametrize(
    "hidden",
    [
        '<span style="display:none">SECRET</span>',
        '<div style="color: red; DISPLAY : none">SECRET</div>',
        "<p hidden>SECRET</p>",
        '<span style="visibility:hidden">SECRET</span>',
        "<script>SECRET</script>",
        "<style>.SECRET {}</style>",
        "<!-- SECRET -->",
        '<sup class="reference"><a href="#n">[SECRET]</a></sup>',
        '<div class="navbox"><ul><li>SECRET</li></ul></div>',
        '<div class="navbox"><div class="navbox"><span style="display:none">SECRET</span></div></div>',
        '<table class="vertical-navbox"><tr><td>SECRET</td></tr></table>',
        '<span class="mw-editsection">[SECRET]</span>',
        '<div class="hatnote">SECRET</div>',
        '<ol class="references"><li>SECRET</li></ol>',
        '<table class="wikitable"><tr><td><span style="display:none">SECRET</span>open</td></tr></table>',
    ],
)
def test_hidden_elements_and_navigation_are_left_out(hidden: str):
    lines = page(f"<p>Before.</p>{hidden}<p>After.</p>")
    assert "SECRET" not in " ".join(lines)
    assert lines[0] == "Before."
    assert lines[-1] == "After."


def test_markup_that_a_page_shows_stays_text():
    assert page("<p>&lt;script&gt;alert(1)&lt;/script&gt; <b>bo</b>ld<br>next</p>") == (
        "<script>alert(1)</script> bold",
        "next",
    )


def test_sections_begin_where_their_sentences_do_and_empty_ones_are_dropped():
    read = parse_page(
        '<div class="mw-parser-output"><p>One. Two.</p><h2>Empty</h2>'
        '<div class="mw-heading mw-heading2"><h2>Life</h2><span class="mw-editsection">[edit]</span></div>'
        "<p>Three.</p><h3>End</h3><ul><li>Four.</li></ul></div>",
        "en",
    )
    assert read.sentences == ("One.", "Two.", "Three.", "Four.")
    assert read.sections == (("Life", 2), ("End", 3))


def test_the_rows_of_an_infobox_follow_the_introduction():
    read = parse_page(
        '<div class="mw-parser-output"><table class="infobox vcard"><tr><th colspan="2">Town</th></tr>'
        '<tr><th>Mayor</th><td>Ada Reed<sup class="reference">[1]</sup></td></tr>'
        "<tr><th>Population</th><td>563,011</td></tr>"
        "<tr><th>Districts</th><td><ul><li>North</li><li>South</li></ul></td></tr>"
        '<tr><th colspan="2">Area</th></tr><tr><th>• Land</th><td>12 km<sup>2</sup></td></tr>'
        '<tr><td colspan="2">A view of the town</td></tr></table><p>Town is a town.</p><h2>Past</h2><p>Old.</p></div>',
        "en",
    )
    assert read.sections == (("Infobox", 1), ("Past", 6))
    assert read.sentences == (
        "Town is a town.",
        "Mayor: Ada Reed",
        "Population: 563,011",
        "Districts: North; South",
        "Area, Land: 12 km2",
        "A view of the town",
        "Old.",
    )


def test_invisible_characters_are_removed():
    page = parse_page("<p>Ada\u200b Reed was a light&shy;house keeper&#8203; in &rlm;North\u2060bridge.</p>", "en")
    assert page.sentences == ("Ada Reed was a lighthouse keeper in Northbridge.",)


@pytest.mark.parametrize("style", ['style="display: none;"', ""])
def test_a_formula_is_read_as_it_was_written(style: str):
    written = r"{\displaystyle E=mc^{2}}"
    math = f'<math alttext="{written}"><semantics><mi>E</mi><annotation>{written}</annotation></semantics></math>'
    picture = '<img class="mwe-math-fallback-image-inline" alt="E">'
    page = parse_page(f'<p>Then <span class="mwe-math-mathml-inline" {style}>{math}</span>{picture} holds.</p>', "en")
    assert page.sentences == ("Then E=mc^{2} holds.",)


def test_nested_tables_and_invalid_spans_are_parsed():
    lines = page(
        '<table><tr><th>A</th><th>B</th></tr><tr><td rowspan="0" colspan="x">1</td>'
        "<td><table><tr><td>in</td><td>side</td></tr></table></td></tr><tr></tr>"
        '<tr><td rowspan="9999">2</td></tr></table>'
    )
    assert lines == ("A: 1; B: in; side", "A: 2")


def test_a_deeply_nested_page_is_parsed():
    assert page("<div>" * 3000 + "deep" + "</div>" * 3000) == ("deep",)
    assert page("<b>" * 3000 + "deep" + "</b>" * 3000) == ("deep",)
