"""Runs each notebook of python/notebooks by nbconvert, with this interpreter; their cells hold the assertions."""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

NOTEBOOKS = sorted((pathlib.Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))
SKIPPED = 77


class Notebooks(unittest.TestCase):
    def test_notebooks_have_no_outputs(self):
        self.assertGreaterEqual(len(NOTEBOOKS), 2)
        for path in NOTEBOOKS:
            code = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
            with self.subTest(path.name):
                self.assertTrue(any("assert" in "".join(cell["source"]) for cell in code))
                self.assertEqual([(cell["outputs"], cell["execution_count"]) for cell in code], [([], None)] * len(code))

    def test_notebooks_run(self):
        with tempfile.TemporaryDirectory() as folder:
            executed = run(NOTEBOOKS, folder)
            self.assertEqual(executed.returncode, 0, executed.stderr[-3000:])
            for path in NOTEBOOKS:
                done = json.loads(pathlib.Path(folder, path.name).read_text())
                code = [cell for cell in done["cells"] if cell["cell_type"] == "code"]
                self.assertEqual([cell["execution_count"] for cell in code], list(range(1, len(code) + 1)), path.name)


def run(paths, folder):
    """Away from the settings and kernels in the home directory."""
    away = {name: folder for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR")}
    return subprocess.run([sys.executable, "-m", "nbconvert", "--to", "notebook", "--execute", "--output-dir", folder, *paths],
                          env=os.environ | away, capture_output=True, text=True, timeout=120)


if __name__ == "__main__":
    missing = [name for name in ("nbconvert", "ipykernel") if importlib.util.find_spec(name) is None]
    if missing:
        print(f"skipped: no {' and no '.join(missing)} (jupyter-nbconvert, python3-ipykernel)")
        sys.exit(SKIPPED)
    unittest.main(argv=sys.argv[:1])
