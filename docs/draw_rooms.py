"""Draws docs/rooms.png: the rooms in their layers, with the number of modules in each and of imports between them.

Run it with `make rooms` after rooms or imports have changed.
"""

import sys
import tomllib
from collections import Counter
from pathlib import Path

import grimp
import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "rooms.png"
WIDTH, HEIGHT = 2.0, 0.6
FEW_IMPORTS = 5
"""Pairs of rooms with fewer imports than this are drawn thin."""


def read_layers() -> list[list[str]]:
    """Return the layers of the import contract in pyproject.toml, highest first, each with its rooms."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [[room.strip() for room in layer.split("|")] for layer in layers]


def count_imports(rooms: list[str]) -> tuple[Counter[str], Counter[tuple[str, str]]]:
    """Return the number of modules in each room and of imports from one room to another."""
    # Links to the rooms, by `make links`: modules are looked for in one folder.
    sys.path.insert(0, str(ROOT / "build" / "links"))
    graph = grimp.build_graph("showhow", cache_dir=None)
    modules = Counter(module.split(".")[1] for module in graph.modules if "." in module)
    imports: Counter[tuple[str, str]] = Counter()
    for importer in graph.modules - {"showhow"}:
        for imported in graph.find_modules_directly_imported_by(importer) - {"showhow"}:
            pair = (importer.split(".")[1], imported.split(".")[1])
            if pair[0] != pair[1] and {*pair} <= {*rooms}:
                imports[pair] += 1
    return modules, imports


def place_rooms(layers: list[list[str]]) -> dict[str, tuple[float, float]]:
    """Return the centre of each room's box; layers are rows."""
    centres = {}
    for row, layer in enumerate(layers):
        for column, room in enumerate(layer):
            # Rows with one room alternate to the side, so that arrows over several layers stay visible.
            shift = 0.0 if len(layer) > 1 else (-1.1 if row % 2 else 1.1)
            centres[room] = (5 + shift + (column - (len(layer) - 1) / 2) * (3.6 if len(layer) < 3 else 2.5), -row * 1.5)
    return centres


def draw_room(axes: Axes, room: str, centre: tuple[float, float], modules: int) -> None:
    """Draw one room as a box with its name and number of modules."""
    x, y = centre
    box = FancyBboxPatch((x - WIDTH / 2, y - HEIGHT / 2), WIDTH, HEIGHT, "round,pad=0.02,rounding_size=0.1")
    box.set(facecolor="#eef2fb", edgecolor="#33508f", linewidth=1.2, zorder=3)
    axes.add_patch(box)
    axes.text(x, y + 0.07, room, ha="center", va="center", fontsize=10, weight="bold", color="#1c2c52", zorder=4)
    axes.text(x, y - 0.17, f"{modules} modules", ha="center", va="center", fontsize=7.5, color="#4a5a80", zorder=4)


def draw_imports(axes: Axes, start: tuple[float, float], end: tuple[float, float], count: int) -> None:
    """Draw the imports of one room from another as an arrow with their number."""
    bend = 0.0 if abs(start[1] - end[1]) < 2 else 0.18 if end[0] >= start[0] else -0.18
    arrow = FancyArrowPatch(
        (start[0], start[1] - HEIGHT / 2),
        (end[0], end[1] + HEIGHT / 2 + 0.02),
        connectionstyle=f"arc3,rad={bend}",
        arrowstyle="-|>",
        mutation_scale=9,
        linewidth=0.5 if count < FEW_IMPORTS else min(0.6 + count / 60, 2.6),
        color="#8a97b8",
        zorder=1,
    )
    axes.add_patch(arrow)


def draw_matrix(axes: Axes, rooms: list[str], imports: Counter[tuple[str, str]]) -> None:
    """Draw the number of imports from each room (row) of each other one (column)."""
    counts = [[imports[importer, imported] for imported in rooms] for importer in rooms]
    axes.imshow([[min(count, 120) for count in row] for row in counts], cmap="Blues", vmin=0, vmax=220)
    for row, values in enumerate(counts):
        for column, count in enumerate(values):
            if count:
                axes.text(column, row, str(count), ha="center", va="center", fontsize=8, color="#1c2c52")
    axes.set_xticks(range(len(rooms)), rooms, rotation=60, ha="right", fontsize=8)
    axes.set_yticks(range(len(rooms)), rooms, fontsize=8)
    axes.set_xlabel("imported", fontsize=9)
    axes.set_ylabel("importing", fontsize=9)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)


def main() -> None:
    """Draw the picture."""
    layers = read_layers()
    centres = place_rooms(layers)
    modules, imports = count_imports(list(centres))
    figure, (axes, matrix) = plt.subplots(1, 2, figsize=(15, 7.5), width_ratios=(1.1, 1))
    for (importer, imported), count in imports.items():
        draw_imports(axes, centres[importer], centres[imported], count)
    for room, centre in centres.items():
        draw_room(axes, room, centre, modules[room])
    draw_matrix(matrix, list(centres), imports)
    axes.set_xlim(1.3, 8.7)
    axes.set_ylim(-1.5 * len(layers) + 0.8, 0.6)
    axes.axis("off")
    axes.set_title("Rooms and layers: imports go down only", fontsize=11, color="#1c2c52")
    matrix.set_title("Imports between modules of two rooms", fontsize=11, color="#1c2c52")
    figure.savefig(PICTURE, dpi=130, bbox_inches="tight")
    sys.stdout.write(f"{PICTURE.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
