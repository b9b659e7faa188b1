"""experiments/low-bit-ablations, low-bit-control, low-bit-results, accuracy-results, mixed-widths and mlperf-tiny-results with a
program that trains nothing: they go on where they were killed, repeat nothing that a ledger has, and say which of its results
were made by other flags.

usage: low_bit_runs_test.py SCRIPTS
"""

import gzip
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

SCRIPTS = pathlib.Path(sys.argv.pop(1)).resolve()

# Writes its arguments into `calls`; a run that `killed`, `diverging` or `refused` names ends as these words say; one that
# `endless` names, with a signal.
PROGRAM = r"""#!/bin/sh
here=${0%/*} command=$1
echo "$*" >> "$here/calls"
if [ "$command" = eval ]; then
  echo '{"accuracy": 0.75, "auc": 0.9, "balanced_accuracy": 0.8, "classes": [{"class": "7", "accuracy": 0.7}, {"class": "other", "accuracy": 0.9}]}'
  exit
fi
while [ "$1" != --out ]; do shift; done
out=$2 run=${2##*/}
mkdir -p "$out"
named() { [ -e "$here/$1" ] && [ "$(cat "$here/$1")" = "$run" ]; }
end() { echo "error: $1" >&2; exit "$2"; }
if named killed; then rm "$here/killed"; touch "$out/checkpoint.safetensors"; kill -TERM $PPID; exit 1; fi
if named endless; then
  rm "$here/endless"
  trap 'echo stopped >> "$here/calls"; exit 143' TERM
  touch "$out/checkpoint.safetensors" "$here/waits"
  sleep 20 & echo $! > "$here/waits"; wait
fi
if named diverging; then end diverging 1; fi
if named refused; then end refused 2; fi
case $command in
  sensitivity) echo '{"conv": {"weight_bits": 5, "activation_bits": 3}}' > "$out/bits.json"; exit ;;
  calibrate) tenths=5 ;;
  quantize) tenths=6 ;;
  train) tenths=7
    echo '{"batch_size": 100}' > "$out/config.json"
    printf '\002\000\000\000\000\000\000\000{}' > "$out/checkpoint.safetensors"
    echo '{"step": 10, "images_per_second": 5}
{"step": 10, "test_accuracy": 0.5}
{"step": 30, "images_per_second": 20}' > "$out/metrics.jsonl" ;;
  reestimate) tenths=8 ;;
esac
hundredths=0
case $run in *late*) hundredths=1 ;; esac
case $run in *2) hundredths=$((hundredths + 2)) ;; esac
accuracy=0.$tenths$hundredths loss=0.5
case $run in *short-4-*) loss=0.48 ;; *short-*-2-3-3-3-?) loss=0.53 ;; esac
echo '{"complete": true, "test_accuracy": '$accuracy', "validation_accuracy": '$accuracy', "validation_loss": '$loss', "machine": {"commit": "abc"}}' > "$out/summary.json"
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
        resumed, = self.calls_of("resnet20-base-w3-1")
        self.assertRegex(resumed, "^train .*--data-dir /data/cifar10 .*--model resnet20 .*--weight-bits 3 .*--resume --out ")
        self.assertNotRegex(resumed, "--overwrite|--init-checkpoint")
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

    def kept(self):
        return ["--float-networks", self.here / "networks"]

    def start_queue(self, *arguments, runs="runs", script="accuracy-results"):
        (self.here / "calls").unlink(missing_ok=True)
        return subprocess.Popen([SCRIPTS / script, "--cifar10", "/data/cifar10", "--runs", self.here / runs,
                                 "--program", self.program, "--ledger", self.ledger, *self.kept(), *arguments],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def queue(self, *arguments, **where):
        """As `script`."""
        queue = self.start_queue(*arguments, **where)
        with queue:
            output, errors = queue.communicate()
        calls = self.here / "calls"
        self.calls = calls.read_text().splitlines() if calls.exists() else []
        return subprocess.CompletedProcess(queue.args, queue.returncode, output, errors)

    def stopped_queue(self, number, run, *arguments):
        """The status of a queue that got this signal while the run was made, and the number of the run's process."""
        self.end("endless", run)
        queue = self.start_queue(*arguments)
        waits = self.here / "waits"
        while not waits.exists() or not waits.read_text().endswith("\n"):
            self.assertIsNone(queue.poll())
            time.sleep(0.01)
        sleeper = int(waits.read_text())
        run_process = int(pathlib.Path(f"/proc/{sleeper}/stat").read_text().rsplit(")", 1)[1].split()[1])
        queue.send_signal(number)
        with queue:
            queue.communicate()
        return queue.returncode, run_process

    def test_a_signal_stops_the_queue_and_its_run_which_goes_on_later(self):
        status, _ = self.stopped_queue(signal.SIGTERM, "resnet20-w4a4-1", "--only", "resnet20-*-1")
        self.assertEqual(status, 128 + signal.SIGTERM)
        calls = (self.here / "calls").read_text().splitlines()
        self.assertEqual([call.split()[0] for call in calls],
                         ["train", "calibrate", "train", "eval", "calibrate", "train", "stopped"])
        done = self.queue("--only", "resnet20-w4a4-1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(self.calls[0], "^train .*--weight-bits 4 .*--epochs 30 .*--resume --out .*/resnet20-w4a4-1$")
        row = "| `resnet20` | W4A4, ends 8 | 30, 0.02 | 1 | 50.00 | 70.00 | +0.00 | -0.20 | so far yes | 75.00 | 5.0 |"
        self.assertIn(row, done.stdout)

    def test_a_killed_queue_leaves_no_run_behind(self):
        status, run = self.stopped_queue(signal.SIGKILL, "resnet20-float-1")
        self.assertEqual(status, -signal.SIGKILL)
        deadline = time.monotonic() + 10
        while pathlib.Path(f"/proc/{run}").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertFalse(pathlib.Path(f"/proc/{run}").exists())
        self.assertEqual(self.queue("--only", "resnet20-float-1").returncode, 0)
        self.assertRegex(self.calls[0], "--resume --out")

    def test_a_queue_is_complete_in_the_ledger(self):
        made = self.queue()
        self.assertEqual(made.returncode, 0, made.stderr)
        names = [call.split("/")[-1] for call in self.calls if call.startswith(("train", "quantize"))]
        calibrated = [call.split("/")[-1] for call in self.calls if call.startswith("calibrate")]
        self.assertEqual(calibrated[:2], ["resnet20-w8a8-1-calibrated", "resnet20-w4a4-1-calibrated"])
        rows = ("float", "w8a8", "w4a4", "w3a3", "w2a2", "all-w4a4", "all-w2a2", "quantize-w4a4")
        self.assertEqual(names[:9], [f"resnet20-{row}-1" for row in rows] + ["resnet20-float-2"])
        self.assertEqual((len(names), names[15]), (24, "mobilenet_v1-float-1"))
        # Seed 2 of all has 2 hundredths more, its float run as well; the rate is that of 100 pictures a step.
        self.assertIn("| `resnet20` | float | 160, 0.1 | 2 |  | 71.00 ± 1.00 |  | >= 91.9 | no |  | 5.0 |", made.stdout)
        self.assertIn("| W2A2, all | 60, 0.1 | 2 | 50.00 | 71.00 | +0.00 ± 0.00 | -3.00 | yes | 75.00 | 5.0 |", made.stdout)
        again = self.queue(runs="elsewhere")
        self.assertEqual((again.stdout, again.stderr, self.calls), (made.stdout, "", []))
        record = json.loads(self.ledger.read_text().splitlines()[2])
        printed = self.queue("--print").stdout.splitlines()
        self.assertEqual("miniqat " + record["command"], printed[2])
        self.assertRegex(printed[1], "^miniqat calibrate --run resnet20-float-1 .*--out resnet20-w8a8-1-calibrated$")
        self.assertIn("--data-dir DIR --threads 1 --model resnet20 --weight-bits 8", record["command"])
        self.assertEqual((record["run"], record["seconds"], record["commit"]), ("resnet20-w8a8-1", 300, "abc"))
        self.assertNotIn(str(self.here), self.ledger.read_text())

    def test_a_queue_killed_in_a_calibration_makes_it_later(self):
        self.end("killed", "resnet20-w8a8-1-calibrated")
        self.assertNotEqual(self.queue("--only", "resnet20-w8a8-1").returncode, 0)
        done = self.queue("--only", "resnet20-w8a8-1")
        self.assertEqual([call.split()[0] for call in self.calls], ["calibrate", "train", "eval"])
        self.assertIn("| `resnet20` | W8A8 | 15, 0.01 | 1 | 50.00 | 70.00 |", done.stdout)

    def test_quantized_runs_start_elsewhere_from_kept_networks(self):
        self.assertEqual(self.queue("--keep", "--only", "resnet20-float-1").returncode, 0)
        self.assertEqual([call.split()[0] for call in self.calls], ["train"] + ["calibrate"] * 6)
        done = self.queue("--only", "resnet20-w4a4-1", runs="elsewhere")
        self.assertEqual([call.split()[0] for call in self.calls], ["train", "eval"])
        self.assertRegex(self.calls[0], "--init-checkpoint .*/networks/resnet20-float-1.safetensors ")
        self.assertIn("| `resnet20` | W4A4, ends 8 | 30, 0.02 | 1 | 50.00 | 70.00 |", done.stdout)

    def test_mixed_widths_are_chosen_by_short_trainings(self):
        self.assertEqual(self.queue("--only", "resnet20-float-*").returncode, 0)
        done = self.queue(script="mixed-widths")
        self.assertEqual(done.returncode, 0, done.stderr)
        kinds = [call.split()[0] for call in self.calls]
        self.assertEqual(kinds, ["sensitivity"] + ["train"] * 2 * (1 + 2 * 8 + 3) + ["train", "eval"] * 4)
        self.assertRegex(self.calls[1], "--epochs 2 --seed 1 --validation 10000 ")
        self.assertIn("| `stage1` | 1,728 | +0.0000 | -0.0200 |\n", done.stdout)
        self.assertIn("| `stage3/block2/conv1` | 4,608 | +0.0300 | +0.0000 |\n", done.stdout)
        widths = json.loads((self.here / "runs/resnet20-context.json").read_text())
        self.assertEqual(widths["stage1"], {"weight_bits": 4})
        self.assertGreaterEqual(widths.get("stage3/block2/conv1", {"weight_bits": 3})["weight_bits"], 3)
        self.assertEqual(json.loads((self.here / "runs/resnet20-alone.json").read_text()), {"conv": 5})
        self.assertIn("| context | 75.00 | 75.00 |", done.stdout)
        again = self.queue(script="mixed-widths", runs="elsewhere")
        self.assertEqual((again.stdout, self.calls), (done.stdout, []))

    def test_a_queue_goes_on_behind_a_run_that_fails(self):
        self.end("diverging", "resnet20-float-1")
        done = self.queue("--only", "resnet20-*-1,resnet20-float-2")
        self.assertEqual(done.returncode, 1)
        self.assertEqual([call.split("/")[-1] for call in self.calls], ["resnet20-float-1", "resnet20-float-2"])

    def test_two_queues_do_not_share_a_folder(self):
        self.end("endless", "resnet20-float-1")
        first = self.start_queue()
        while not (self.here / "waits").exists():
            time.sleep(0.01)
        second = subprocess.run(first.args, capture_output=True, text=True)
        first.terminate()
        with first:
            first.communicate()
        self.assertEqual(second.stderr, f"{self.here}/runs: another queue makes these runs\n")

    def tiny(self, *arguments, runs="runs"):
        """As `script`."""
        (self.here / "calls").unlink(missing_ok=True)
        done = subprocess.run([SCRIPTS / "mlperf-tiny-results", "--runs", self.here / runs, "--program", self.program,
                               "--ledger", self.ledger, *self.kept(), *arguments], capture_output=True, text=True)
        calls = self.here / "calls"
        self.calls = calls.read_text().splitlines() if calls.exists() else []
        return done

    def test_networks_of_mlperf_tiny_are_made_once(self):
        self.end("diverging", "sounds-trained-4-1")
        done = self.tiny("--only", "sounds-*-1")
        self.assertEqual(done.returncode, 0, done.stderr)
        kinds = [call.split()[0] for call in self.calls]
        self.assertEqual(kinds, ["train"] * 2 + ["calibrate", "eval"] * 4 + ["train", "eval", "train"] + ["train", "eval"] * 2)
        self.assertIn("| float | 1 | 70.00 |  | 70.00 |\n", done.stdout)
        self.assertIn("| W8A8, calibrated | 1 | 75.00 | +5.00 | 75.00 |\n", done.stdout)
        self.assertNotIn("W4A4, trained", done.stdout)
        (self.here / "diverging").unlink()
        self.tiny("--only", "sounds-*-1", runs="elsewhere")
        self.assertEqual([call.split("/")[-1].split()[0] for call in self.calls],
                         ["sounds-float-1", "sounds-trained-4-1", "sounds-trained-4-1"], "what failed, from its float run")
        self.assertNotIn(str(self.here), self.ledger.read_text())

    def test_a_wanted_class_has_recall_and_false_alarms(self):
        done = self.tiny("--only", "wake-float-theo,wake-trained-8-theo", "--digits", self.here)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([call.split()[0] for call in self.calls], ["train", "eval", "train", "eval"])
        self.assertEqual([" --integer " in call for call in self.calls], [False, False, False, True])
        self.assertIn("| float | 1 | 80.00 |  | 70.0 | 10.0 | 80.00 |\n", done.stdout)
        self.assertIn("| W8A8, trained | 1 | 80.00 | +0.00 | 70.0 | 10.0 | 80.00 |\n", done.stdout)
        self.tiny("--only", "wake-*-theo", "--digits", self.here, runs="elsewhere")
        self.assertNotIn("wake-trained-8-theo", " ".join(self.calls), "it is in the ledger")

    def test_an_electrocardiogram_is_cut_into_windows(self):
        heart = self.here / "heart.csv"
        heart.write_text("data,label\n" + "".join(f"{i},{int(i >= 1200)}\n" for i in range(1500)))
        done = self.tiny("--only", "ecg-trained-8-1", "--heart", heart)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("ECG_TRAIN.ts", self.calls[0])
        train, test = ([line.split(":") for line in (self.here / f"runs/windows/ECG_{half}.ts").read_text().splitlines()[4:]]
                       for half in ("TRAIN", "TEST"))
        self.assertEqual([len(part) for part in (train, test)], [(1000 - 256) // 4 + 1, (500 - 256) // 4 + 1])
        self.assertEqual({label for _, label in train}, {"0"})
        self.assertEqual([int(samples.split(",")[128]) >= 1200 for samples, _ in test], [label == "1" for _, label in test])

    def test_series_are_split_anew_and_beside_least_squares(self):
        lines = [f"{i % 7},{i * i % 5},{i % 3}:{3 * (i % 7) - 2 * (i * i % 5) + 1}" for i in range(60)]
        series = self.here / "series"
        series.mkdir()
        for half, some in (("TRAIN", lines[:40]), ("TEST", lines[40:])):
            text = "@targetLabel true\n@data\n" + "\n".join(some) + "\n"
            (series / f"Tecator_{half}.ts.gz").write_bytes(gzip.compress(text.encode()))
        done = self.tiny("--only", "Tecator-pls-*", "--series", series)
        self.assertEqual((done.returncode, self.calls), (0, []), done.stderr)
        self.assertIn("| partial least squares | 10 | 1.0000 ± 0.0000 |", done.stdout, "it is linear in them")
        split = [(self.here / f"runs/splits/3/Tecator_{half}.ts").read_text().splitlines()[2:] for half in ("TRAIN", "TEST")]
        self.assertEqual(([len(half) for half in split], sorted(split[0] + split[1])), ([40, 20], sorted(lines)))
        self.assertNotEqual(split[0], lines[:40])


if __name__ == "__main__":
    unittest.main()
