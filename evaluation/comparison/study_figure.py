"""The figure of a blind study: wins, ties and losses of each comparison as bars (HumanIQ, Figure 1, right)."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

WIDTH, LABELS, BAR, GAP = 760, 220, 26, 40
COLOURS = {"wins": "#1b7f5c", "ties": "#9aa3ad", "losses": "#c2571a"}
"""Also told apart where colours are not, by their order and their numbers."""


def draw_comparisons(comparisons: Sequence[Mapping[str, Any]], title: str) -> str:
    """An SVG with a bar for each comparison, the share of wins, ties and losses in it, and p and n below."""
    height = 54 + len(comparisons) * (BAR + GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'role="img" font-family="sans-serif" font-size="13">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        f'<text x="8" y="22" font-size="15">{escape(title)}</text>',
    ]
    for row, comparison in enumerate(comparisons):
        top = 44 + row * (BAR + GAP)
        parts.append(f'<text x="8" y="{top + 17}">{escape(comparison["system"])}</text>')
        parts.append(f'<text x="8" y="{top + 35}" fill="#555">against {escape(comparison["against"])}</text>')
        left = float(LABELS)
        for outcome, colour in COLOURS.items():
            share = comparison[outcome] / comparison["judged"]
            width = share * (WIDTH - LABELS - 12)
            parts.append(f'<rect x="{left:.1f}" y="{top}" width="{width:.1f}" height="{BAR}" fill="{colour}"/>')
            if share >= 0.12:
                label = f"{share:.1%} {outcome}"
                middle = f'x="{left + width / 2:.1f}" y="{top + 17}" text-anchor="middle"'
                parts.append(f'<text {middle} font-size="11" fill="white">{label}</text>')
            left += width
        low, high = comparison["score_low"], comparison["score_high"]
        interval = f" [{low:.2f}, {high:.2f}]" if low is not None else ""
        note = f"score {comparison['score']:.2f}{interval}, p = {comparison['p']:.3g}, n = {comparison['judged']}"
        parts.append(f'<text x="{LABELS}" y="{top + BAR + 15}" font-size="11" fill="#555">{note}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"
