"""What is written for users holds: the examples, the types, the notebook."""

import doctest
import pathlib
import subprocess
import sys

import st

PLACE = pathlib.Path(__file__).parent.parent


def test_examples(traces):
    found = doctest.testmod(st, extraglobs={"trace": str(traces["stencil2d"])})
    assert found.attempted >= 7 and found.failed == 0


def test_types(tmp_path):
    use = tmp_path / "use.py"
    use.write_text("import st\nt = st.open('a.st')\nreveal_type(t.matrix().bytes)\nreveal_type(t.ranks)\n")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--ignore-missing-imports", use], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
    said = done.stdout.replace("builtins.", "").lower()
    assert "numpy.ndarray" in said and "list[int]" in said, done.stdout


def test_notebook(tmp_path, monkeypatch):
    import nbclient
    import nbformat
    from conftest import run

    run("st-kernels", "stencil2d", "--paper", "--ranks", 8, "--steps", 200, "--slow", "3:1.5", "-o", tmp_path / "app.st")
    notebook = nbformat.read(PLACE / "notebooks" / "findings.ipynb", as_version=4)
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": tmp_path}}).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    pictures = [output for output in outputs if "image/png" in output.get("data", {})]
    assert len(pictures) == 3
    text = "".join(output.get("text", "") for output in outputs)
    assert "rank 3" in text and "late sender" in text
