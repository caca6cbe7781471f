"""Runs docs/how-to/notebook.ipynb from top to bottom, and writes its outputs into it and into the page notebook.md.

`make notebook` writes them; with --check they are compared with what is stored, and a difference ends with status 1. A
cell is run as Jupyter does: the value of its last expression is its result, unless a semicolon follows.
"""

import ast
import base64
import io
import json
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import pandas as pd

NOTEBOOK = Path(__file__).parent / "how-to" / "notebook.ipynb"
PAGE, PICTURE = NOTEBOOK.with_suffix(".md"), NOTEBOOK.with_suffix(".png")


def run_cell(source: str, names: dict[str, Any]) -> list[dict[str, Any]]:
    """Run a cell in the namespace, and return its outputs in the notebook format."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with redirect_stdout(printed):
        exec(compile(tree, NOTEBOOK.name, "exec"), names)  # noqa: S102 - the notebook is ours
        if last is not None:
            value = eval(compile(ast.Expression(last.value), NOTEBOOK.name, "eval"), names)  # noqa: S307 - as above
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": split_lines(printed.getvalue())})
    if value is not None and not source.rstrip().endswith(";"):
        data = {"text/plain": split_lines(repr(value))}
        if isinstance(value, pd.DataFrame):
            data["text/html"] = split_lines(value._repr_html_())
        outputs.append({"output_type": "execute_result", "execution_count": None, "metadata": {}, "data": data})
    for number in plt.get_fignums():
        picture = io.BytesIO()
        plt.figure(number).savefig(picture, dpi=110, bbox_inches="tight", metadata={"Software": None})
        data = {"image/png": base64.b64encode(picture.getvalue()).decode()}
        outputs.append({"output_type": "display_data", "metadata": {}, "data": data})
    plt.close("all")
    return outputs


def split_lines(text: str) -> list[str]:
    """A text as the notebook format stores it: its lines with their ends."""
    return text.splitlines(keepends=True)


def run_notebook(notebook: dict[str, Any]) -> None:
    """Run all cells, and replace their outputs."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            with pd.option_context("display.width", 116, "display.max_columns", 8, "display.max_colwidth", 60):
                cell["outputs"] = run_cell("".join(cell["source"]), names)


def write_page(notebook: dict[str, Any]) -> str:
    """The notebook as a page of the documentation; its picture is beside it."""
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", ()):
            data = output.get("data", {"text/plain": output.get("text")})
            if "image/png" in data:
                parts.append(f"![What the cell above draws]({PICTURE.name})")
            else:
                parts.append(f"```text\n{''.join(data['text/plain']).rstrip()}\n```")
    return "\n\n".join(parts) + "\n"


def list_texts(notebook: dict[str, Any]) -> list[Any]:
    """What must be the same on every machine: all outputs but the pixels of pictures."""
    outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", ())]
    return [output.get("text") or output["data"].get("text/plain", "a picture") for output in outputs]


def main() -> None:
    """Run the notebook; write its outputs, or compare them with those that are stored."""
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    stored = list_texts(notebook)
    is_current = PAGE.read_text(encoding="utf-8") == write_page(notebook) if PAGE.is_file() else False
    run_notebook(notebook)
    if "--check" in sys.argv:
        for before, now in zip(stored, list_texts(notebook), strict=True):
            if before != now:
                sys.exit(f"a cell of {NOTEBOOK.name} has another output; `make notebook` writes it\n{before}\n{now}")
        if not is_current:
            sys.exit(f"{PAGE.name} is not the page of {NOTEBOOK.name}; `make notebook` writes it")
        return
    NOTEBOOK.write_text(json.dumps(notebook, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(write_page(notebook), encoding="utf-8")
    pictures = [
        output["data"]["image/png"]
        for cell in notebook["cells"]
        for output in cell.get("outputs", ())
        if "image/png" in output.get("data", {})
    ]
    PICTURE.write_bytes(base64.b64decode(pictures[-1]))


if __name__ == "__main__":
    main()
