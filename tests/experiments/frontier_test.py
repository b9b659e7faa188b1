"""experiments/frontier: the picture in docs is that of the ledgers, its costs are those that docs/mlperf-tiny.md has, and its
published figures stand on a page.

usage: frontier_test.py REPOSITORY MINIQAT
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

REPOSITORY, PROGRAM = (pathlib.Path(argument).resolve() for argument in (sys.argv.pop(1), sys.argv.pop(1)))
PICTURE = "docs/frontier.svg"


def frontier(*arguments):
    done = subprocess.run([REPOSITORY / "experiments/frontier", "--program", PROGRAM, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def cells(text, network):
    """The cells of the table's rows on the network."""
    return [[cell.strip() for cell in line.split("|")[2:-1]] for line in text.splitlines() if line.startswith(f"| `{network}`")]


class FrontierTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.here = pathlib.Path(folder.name)
        cls.table = frontier("--table", "--out", cls.here / "frontier.svg")

    def test_the_picture_is_that_of_the_ledgers(self):
        self.assertTrue((self.here / "frontier.svg").read_bytes() == (REPOSITORY / PICTURE).read_bytes(),
                        f"the ledgers or the drawing changed: run experiments/frontier --out {PICTURE}")

    def test_costs_are_those_of_the_page(self):
        page = cells((REPOSITORY / "docs/mlperf-tiny.md").read_text(), "resnet8")
        self.assertEqual([row[0] for row in page], ["W8A8", "W4A4", "W3A3", "W2A2"])
        rows = [row for row in cells(self.table, "resnet8") if row[0] == "calibrated"]
        self.assertEqual([[f"W{row[1][0]}A{row[1][0]}", *row[-2:]] for row in rows], [row[:3] for row in page])

    def test_published_figures_stand_on_a_page(self):
        pages = "".join((REPOSITORY / "docs" / page).read_text() for page in ("results.md", "mlperf-tiny.md"))
        text = (REPOSITORY / "experiments/frontier").read_text()
        figures = re.findall(r"\d\d\.\d+", text[text.index("PUBLISHED = "):text.index("TITLE = ")])
        self.assertGreater(len(figures), 8)
        for figure in figures:
            self.assertRegex(pages, rf"\b{re.escape(figure)}\b")

    def test_rows_come_with_their_runs(self):
        """A row without integers is simulated; one seed has no error; pictures recompressed as JPEG are not here."""
        flags = "--dataset cifar10 --model resnet20"
        records = [{"run": "resnet20-float-2", "command": f"train --float {flags}", "test_accuracy": 0.915},
                   {"run": "resnet20-w4a4-1", "command": f"train {flags} --weight-bits 4 --activation-bits 4 --ends-bits 8",
                    "test_accuracy": 0.9},
                   {"run": "resnet20-w4a4-1-integers", "command": "eval", "accuracy": 0.91},
                   {"run": "resnet20-all-w2a2-1", "command": f"train {flags} --weight-bits 2 --activation-bits 2",
                    "test_accuracy": 0.88}]
        (self.here / "accuracy.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
        for name in ("low-bits", "mlperf-tiny"):
            (self.here / f"{name}.jsonl").write_text((REPOSITORY / f"experiments/ledgers/{name}.jsonl").read_text())
        picture = self.here / "new.svg"
        table = frontier("--ledgers", self.here, "--table", "--out", picture)
        self.assertEqual([row[:4] for row in cells(table, "resnet20")],
                         [["float", "32, 32", "91.50 ± 0.00", "1"], ["trained", "4, 8", "91.00 ± 0.00", "1"],
                          ["trained", "2, 2", "88.00 ± 0.00", "1"]])
        self.assertEqual(cells(table, "mobilenet_v1"), [])
        self.assertIn("resnet20 (1 seed)", picture.read_text())
        self.assertEqual(picture.read_text().count("Simulated, not integers: trained resnet20."), 1)

    def test_a_network_is_of_one_ledger(self):
        """That of the queue once it has as many runs: its first runs change nothing of the older ones."""
        (self.here / "accuracy.jsonl").write_text(json.dumps(
            {"run": "lenet5-float-1", "command": "train --float --dataset mnist --model lenet5", "test_accuracy": 0.5}) + "\n")
        (self.here / "mlperf-tiny.jsonl").write_text("")
        for older, count, accuracy in ((REPOSITORY / "experiments/ledgers/low-bits.jsonl", 13, "99.19"), (None, 1, "50.00")):
            (self.here / "low-bits.jsonl").write_text(older.read_text() if older else "")
            rows = cells(frontier("--ledgers", self.here, "--table"), "lenet5")
            self.assertEqual((len(rows), rows[0][2].split()[0]), (count, accuracy))


if __name__ == "__main__":
    unittest.main()
