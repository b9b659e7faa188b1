"""experiments/low-bit-ablations, low-bit-control and low-bit-results with a program that trains nothing: they go on where
they were killed, repeat nothing that a ledger has, and say which of its results were made by other flags.

usage: low_bit_runs_test.py SCRIPTS
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPTS = pathlib.Path(sys.argv.pop(1)).resolve()

# Writes its arguments into `calls`; a run that `killed`, `diverging` or `refused` names ends as these words say.
PROGRAM = r"""#!/bin/sh
here=${0%/*} command=$1
echo "$*" >> "$here/calls"
if [ "$command" = eval ]; then echo '{"accuracy": 0.75}'; exit; fi
while [ "$1" != --out ]; do shift; done
out=$2 run=${2##*/}
mkdir -p "$out"
named() { [ -e "$here/$1" ] && [ "$(cat "$here/$1")" = "$run" ]; }
end() { echo "error: $1" >&2; exit "$2"; }
if named killed; then rm "$here/killed"; touch "$out/checkpoint.safetensors"; kill -TERM $PPID; exit 1; fi
if named diverging; then end diverging 1; fi
if named refused; then end refused 2; fi
case $command in
  sensitivity) echo '[]' > "$out/bits.json"; exit ;;
  calibrate) tenths=5 ;;
  train) tenths=7 ;;
  reestimate) tenths=8 ;;
esac
hundredths=0
case $run in *late*) hundredths=1 ;; esac
case $run in *2) hundredths=$((hundredths + 2)) ;; esac
accuracy=0.$tenths$hundredths
echo '{"complete": true, "test_accuracy": '$accuracy', "validation_accuracy": '$accuracy', "machine": {"commit": "abc"}}' > "$out/summary.json"
"""


class LowBitRunsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.here = pathlib.Path(folder.name)
        self.program, self.ledger = self.here / "miniqat", self.here / "ledger.jsonl"
        self.program.write_text(PROGRAM)
        self.program.chmod(0o755)

    def script(self, name, *arguments, out="runs"):
        """The status, output and errors of a script; `calls` are those of the program that it made."""
        calls = self.here / "calls"
        calls.unlink(missing_ok=True)
        done = subprocess.run([SCRIPTS / name, *arguments, "--program", self.program, "--out", self.here / out, "--jobs", "1",
                               "--ledger", self.ledger], capture_output=True, text=True)
        self.calls = calls.read_text().splitlines() if calls.exists() else []
        return done

    def ablations(self, *arguments, variants="base", **where):
        return self.script("low-bit-ablations", "--networks", "resnet20", "--variants", variants, "--data-dir", "/data/cifar10",
                           *arguments, **where)

    def calls_of(self, run):
        return [call for call in self.calls if call.endswith(f"/{run}")]

    def end(self, how, run):
        (self.here / how).write_text(run)

    def test_goes_on_where_it_was_killed(self):
        self.end("killed", "resnet20-base-w3-1")
        self.assertEqual(self.ablations("--seeds", "1").returncode, -15)
        self.assertEqual(len(self.calls), 4, "float, 4 bits, their estimates, 3 bits")
        done = self.ablations("--seeds", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.calls_of("resnet20-float") + self.calls_of("resnet20-base-w4-1"), [])
        self.assertEqual([call.split(" --out")[0] for call in self.calls_of("resnet20-base-w3-1")],
                         ["train --resume --data-dir /data/cifar10 --threads 1"])
        self.assertEqual(len(self.calls), 4, "3 bits, 2 bits, their estimates")
        self.assertIn("| 80.00 | 80.00 | 80.00 |", done.stdout)

    def test_tables_are_means_and_paired_differences(self):
        done = self.ablations("--seeds", "2", variants="base,late")
        self.assertIn("`resnet20`, float 70.00, as trained:", done.stdout)
        self.assertIn("8 bits | 71.00 | 71.00 | 71.00 |", done.stdout)
        self.assertIn("| `--bn-fold late` | 72.00 (+1.00 ± 0.00) |  | 72.00 (+1.00 ± 0.00) |", done.stdout)

    def test_a_ledger_spares_the_runs(self):
        made = self.ablations("--seeds", "1", variants="base,mixed,calibrated")
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertEqual(len(self.calls), 1 + 3 * 2 + 2 * 3 + 2 * 3)
        again = self.ablations("--seeds", "1", variants="base,mixed,calibrated", out="elsewhere")
        self.assertEqual((again.stdout, again.stderr, self.calls), (made.stdout, "", []))
        self.assertNotIn(str(self.here), self.ledger.read_text(), "a ledger has no folders of a machine")

    def test_results_of_other_flags_are_told(self):
        self.ablations("--seeds", "1")
        records = [json.loads(line) for line in self.ledger.read_text().splitlines()]
        for record in records:
            if record["run"] == "resnet20-base-w2-1":
                record["command"] = record["command"].replace("--epochs 5", "--epochs 6")
        self.ledger.write_text("".join(json.dumps(record) + "\n" for record in records))
        done = self.ablations("--tables", "--seeds", "1", out="elsewhere")
        self.assertEqual(done.stderr, "resnet20-base-w2-1: the ledger has results of a run with --epochs 6 and without --epochs 5\n")

    def test_what_diverges_ends_alone(self):
        self.end("diverging", "resnet20-base-w3-1")
        done = self.ablations("--seeds", "1")
        self.assertEqual(done.returncode, 0)
        self.assertIn("resnet20-base-w3-1 failed: error: diverging", done.stderr)
        self.assertEqual(self.calls_of("resnet20-base-w3-1-estimated"), [])
        self.assertIn("| 80.00 |  | 80.00 |", done.stdout)

    def test_a_refused_command_ends_the_script(self):
        self.end("refused", "resnet20-float")
        done = self.ablations("--seeds", "1")
        self.assertEqual((done.returncode, done.stderr), (1, "resnet20-float: error: refused\n"))

    def test_results_have_calibrated_trained_and_integers(self):
        flags = ["--networks", "mobilenet_v1", "--cifar10", "/data/cifar10", "--ends", "all"]
        done = self.script("low-bit-results", *flags)
        self.assertEqual([call.split()[0] for call in self.calls], ["train", "calibrate", "train", "eval"])
        row = "| `mobilenet_v1`, JPEG | W4A4 | 70.00 | 50.00 | 70.00 | +0.00 | 75.00 | 1 |"
        self.assertIn(row, done.stdout)
        again = self.script("low-bit-results", *flags, out="elsewhere")
        self.assertEqual((self.calls, again.stderr), ([], ""))
        self.assertIn(row, again.stdout)

    def test_the_control_has_a_ledger_too(self):
        flags = ["--data-dir", "/data/mnist", "--table", "recipes", "--seeds", "1"]
        self.end("diverging", "adam8-1")
        made = self.script("low-bit-control", *flags)
        self.assertEqual(len(self.calls), 1 + 16, "the float run, and fifteen recipes of which one is calibrated first")
        self.assertIn("| Adam, rate 0.008 | 10.00% (-60.00 ± 0.00) |", made.stdout)
        again = self.script("low-bit-control", *flags)
        self.assertEqual([call.split("/")[-1] for call in self.calls], ["adam8-1"], "a run that failed is tried again")
        self.assertEqual(again.stdout, made.stdout)


if __name__ == "__main__":
    unittest.main()
