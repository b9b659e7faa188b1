"""experiments/last-points: its baseline has the weights of `miniqat train` to the bit, each method does on small arrays what its
formula says, a run that was stopped goes on to the same weights, and its table has paired differences.

usage: last_points_test.py EXPERIMENTS MINIQAT; exit status 77 without the module miniqat or NumPy
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

try:
    import miniqat
    import numpy as np
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

EXPERIMENTS, PROGRAM = (pathlib.Path(sys.argv.pop(1)).resolve() for _ in range(2))
sys.dont_write_bytecode = True
sys.path.insert(0, str(EXPERIMENTS))
import last_points_methods as methods
import last_points_pictures as pictures
import last_points_training as training

MODEL, HELD, RATE, DECAY, EPOCHS = "resnet8", 20, 0.1, 0.0005, 2


def floats(*values):
    return np.array(values, np.float32)


def grid_of(scale, count, limit=1):
    return methods.Grid(np.full(count, scale, np.float32), np.full(count, limit, np.float32))


class RulesTest(unittest.TestCase):
    def test_a_grid_rounds_as_the_product(self):
        u = np.linspace(-1, 1, 401).astype(np.float32)
        for bits in (2, 3, 4):
            end = np.float32(0.7)
            grid = grid_of(end / np.float32(2 ** (bits - 1) - 1), len(u), 2 ** (bits - 1) - 1)
            expected = miniqat.fake_quant(u, -end, end, bits=bits, narrow_range=True, symmetric=True)
            np.testing.assert_allclose(grid.rounded(u), expected, rtol=0, atol=1e-7)

    def test_transitions_steer_the_rate(self):
        method = methods.Transitions(4, steps=20, rate=0.1)
        u, other, grid = floats(-1, 0, 0, 1), floats(-1, 1, 0, 1), grid_of(1, 4)
        # One of four weights changes in one of the first two steps, so the first target is an eighth.
        for t, former in ((1, other), (2, u)):
            self.assertEqual(method.rate(0.08), 0.08)
            method.end(u, grid, former, t)
        self.assertEqual((method.rate(0.07), float(method.known)), (0.08, 0.125))
        method.end(u, grid, other, 3)
        known, target = 0.99 * 0.125 + 0.01 * 0.25, 0.125 * (1 + np.cos(np.pi * 3 / 20)) / 2
        self.assertAlmostEqual(float(method.known), known)
        # In 100 steps K of twice the target would take half of the first rate.
        own = 0.08 + 0.1 / 2 / (100 * 0.125) * (target - known)
        self.assertAlmostEqual(method.rate(0.07), own)
        for t in range(4, 400):
            method.end(u, grid, -u, t)
        self.assertEqual(method.rate(0.07), 0, "far too many change")

    def test_only_what_oscillates_is_frozen(self):
        method = methods.Freezing(3, steps=1000, rate=0.1)
        method.FIRST = 0.095
        grid = grid_of(0.5, 3)
        u = floats(0.26, 0.26, 0.5)
        method.begin(u, grid)
        former = grid.integers(u)
        # The first jumps between 0 and 1, the second goes down once and stays.
        for t in range(1, 40):
            u = method.end(floats(0.24 if t % 2 else 0.26, -0.1, 0.5), grid, former, t)
            former = grid.integers(u)
            if method.frozen[0]:
                break
        # Oscillations begin with the second change, and each adds a hundredth.
        self.assertAlmostEqual(float(method.frequency[0]), 1 - 0.99 ** (t - 1), places=5)
        self.assertGreater(method.frequency[0], method.threshold(t))
        self.assertLessEqual(1 - 0.99 ** (t - 2), method.threshold(t - 1))
        np.testing.assert_array_equal(method.frozen, [1, 0, 0])
        # Its mean integer is still near the first one, 1, though it is 0 now; the grid takes it along.
        self.assertEqual(t % 2, 1)
        moved = method.end(floats(-0.9, -0.1, 0.5), grid_of(0.25, 3), former, t + 1)
        np.testing.assert_array_equal(moved, floats(0.25, -0.1, 0.5))

    def test_gradients_are_scaled_by_the_rounding_error(self):
        method, grid = methods.ScaledGradients(4, 10, 0.1), grid_of(1, 4)
        method.delta = floats(2, 2, 2, 0)
        # Errors of -1/4, 1/4 and 0 steps in a grid of two steps.
        scaled = method.gradient(floats(1, -1, 3, 1), floats(0.75, 0.25, -1, 0.75), grid)
        np.testing.assert_allclose(scaled, floats(1 - 2 * 0.125, -(1 - 2 * 0.125), 3, 1))

    def test_curvature_is_the_hessians(self):
        """A loss with the Hessian diag(h) + c (ones), whose gradient is known."""
        size, h, c = 64, np.repeat([3.0, -5.0], 32), 0.01

        class Network:
            def latent(self):
                return np.tile(floats(-1, 0, 0, 1), size // 4) * np.float32(0.5)

            def layers(self):
                return [slice(0, 32), slice(32, 64)]

            def next_batches(self, count):
                return [None] * count

            def open_gradient(self, weights, batch):
                return h * weights + c * weights.sum()

        method, grid = methods.ScaledGradients(size, 10, 0.1), grid_of(0.5, size)
        method.begin(None, grid)
        method.PROBES = 50
        method.begin_epoch(Network(), grid, 0)
        gradient = h * grid.rounded(Network().latent())
        expected = (h[0] + c) / (3 * gradient[:32].std())
        np.testing.assert_allclose(method.delta[:32], expected, rtol=0.05)
        np.testing.assert_array_equal(method.delta[32:], 0)

    def test_the_proximal_map_turns_from_none_to_rounding(self):
        method, grid = methods.Proximal(6, steps=100, rate=0.1), grid_of(0.5, 6)
        u = floats(-0.9, -0.4, 0.05, 0.2, 0.3, 0.5)
        self.assertEqual([method.inverse_slope(t) for t in (1, 76, 100)], [1, 0, 0])
        np.testing.assert_allclose(method.seen(u, grid, 1), floats(-0.5, -0.4, 0.05, 0.2, 0.3, 0.5), atol=1e-7)
        np.testing.assert_array_equal(method.seen(u, grid, 80), grid.rounded(u))
        method.inverse_slope = lambda t: 0.5
        # Slope 2 around the middles -0.25 and 0.25.
        np.testing.assert_allclose(method.seen(u, grid, 9), floats(-0.5, -0.5, 0, 0.15, 0.35, 0.5), atol=1e-6)
        np.testing.assert_allclose(method.of_widths(floats(2, 2), floats(0.5, 0.35), floats(0.9, 0.3), grid_of(0.5, 2)),
                                   floats(1, 0.1), atol=1e-6)


class RunsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.place = pathlib.Path(folder.name)
        miniqat.set_thread_count(1)
        cls.data = miniqat.load("synthetic", train_size=280, test_size=20)
        cls.train("float", float=True, steps=4, learning_rate=0.05)
        cls.pictures = pictures.Pictures(cls.data[0], HELD)
        cls.variables = cls.place / "float/checkpoint.safetensors"

    @classmethod
    def train(cls, name, **flags):
        miniqat.train(cls.place / name, dataset=cls.data, model=MODEL, validation=HELD, augment="crop-flip", threads=1, **flags)

    def network(self, method=methods.Method, **more):
        return training.Network(MODEL, self.pictures, self.variables, seed=3, rounds=method.ROUNDS, share=method.SHARE,
                                scales=method.SCALES, **more)

    def test_the_baseline_is_the_products_training(self):
        self.train("few", seed=3, epochs=EPOCHS, init_checkpoint=self.place / "float", learning_rate=RATE, weight_decay=DECAY,
                   reestimate=training.ESTIMATE_BATCHES, **methods.QUANTIZED)
        network = self.network()
        start = {name: network.session.variable(name).ravel().copy() for name in network.ends.shapes}
        run = training.Training(network, methods.Method, EPOCHS, RATE, DECAY)
        run.run()
        here = network.estimated(run.variables())
        there = miniqat.read_safetensors(self.place / "few/checkpoint.safetensors")
        self.assertEqual(set(here), {name for name in there if ":" not in name})
        for name, array in here.items():
            np.testing.assert_array_equal(array, there[name], name)
        for name, array in there.items():
            if name.startswith("optimizer:momentum/"):
                own = run.sgd.velocity[network.weights.place(name.partition("/")[2])]
                np.testing.assert_array_equal(own, array.ravel(), name)
        summary = json.loads((self.place / "few/summary.json").read_text())
        self.assertEqual(network.accuracy(here), summary["validation_accuracy"])
        # Ranges have moved on their way, too.
        self.assertFalse(any(np.array_equal(run.ends[network.ends.place(name)], started) for name, started in start.items()
                             if np.any(started)))

    def test_a_run_that_was_stopped_goes_on_to_the_same_weights(self):
        def kill(line):
            raise KeyboardInterrupt

        for row in ("transitions", "frozen", "scaled", "proximal"):
            method = methods.ROWS[row].method
            network = self.network(method)
            start = network.session.checkpoint()

            def run(folder=None):
                network.session.restore(start, "exact")
                return training.Training(network, method, EPOCHS, RATE, DECAY, folder)

            whole = run()
            whole.run()
            there = whole.variables()
            folder = self.place / row
            folder.mkdir()
            with self.assertRaises(KeyboardInterrupt):
                run(folder).run(kill)
            again = run(folder)
            self.assertTrue(again.resume())
            self.assertEqual(again.done, 1)
            again.run()
            for name, array in again.variables().items():
                np.testing.assert_array_equal(array, there[name], f"{row}: {name}")

    def test_gradients_of_activations_are_scaled(self):
        """By the last quantizer of few bits, behind which gradients stay as they are."""
        network = self.network(methods.AllScaledGradients)
        batch = next(self.pictures.batches(3))
        plain, expected, ends = self.network().gradients(*batch)
        loss, gradient, more = network.gradients(*batch)
        self.assertEqual(loss, plain)
        np.testing.assert_allclose(gradient, expected, rtol=1e-4, atol=1e-6)
        last = next(i for i, node in enumerate(network.activations) if node["name"].startswith("pool/"))
        network = self.network(methods.AllScaledGradients)
        network.deltas[last] = 0.8
        feeds = {"images": batch[0], "labels": batch[1], training.FACTOR: np.float32(1)}
        names = [f"{training.SHIFT}/{last}", f"{training.PULL}/{last}"]
        network._pull(feeds)
        straight, = network.first_pass.gradients("loss", names[:1], feeds, training=True)
        scaled, x = network.first_pass.gradients(training.TOTAL, names, feeds, training=True)
        x = x * x.size
        low, high = network.ends_of(network.activations[last])
        error = (x - miniqat.fake_quant(x, low, high, bits=2)) / (high - low)
        self.assertGreater(np.abs(error).max(), 0.1)
        np.testing.assert_allclose(scaled, straight * (1 + 0.8 * np.sign(straight) * error), rtol=1e-3, atol=1e-9)

    def test_curvature_of_activations(self):
        network = self.network(methods.AllScaledGradients)
        method = methods.AllScaledGradients(len(network.index), 10, RATE)
        method.PROBES = 2
        method.begin(None, None)
        method.begin_epoch(network, network.grid(network.ends.of(network.session)), 0)
        self.assertTrue(np.all(np.isfinite(network.deltas)) and np.any(network.deltas > 0), network.deltas)

    def test_a_teacher_has_half_of_the_target(self):
        teacher = training.FloatNetwork(MODEL, self.pictures, self.variables, width=1.0)
        network = self.network(methods.Teacher, teacher=teacher)
        images, labels = next(self.pictures.batches(3))
        loss, gradient, _ = network.gradients(images, labels)
        plain = self.network()
        logits = next(node["inputs"][0] for node in plain.net.graph.nodes() if node["name"] == "loss")
        given = np.log(methods.softmax(plain.session.run(logits, {"images": images, "labels": labels}, training=True)))
        of_label = -given[np.arange(len(labels)), labels].mean()
        of_teacher = -(teacher.probabilities(images) * given).sum(axis=1).mean()
        self.assertNotAlmostEqual(of_label, of_teacher, places=2)
        self.assertAlmostEqual(loss, (of_label + of_teacher) / 2, places=5)
        # The biases of the last layer see the gradient of the logits alone.
        both = (np.eye(10)[labels] + teacher.probabilities(images)) / 2
        expected = (np.exp(given) - both).mean(axis=0)
        # But for a logit or two outside of the range, which have none.
        np.testing.assert_allclose(gradient[network.weights.place("fc/biases")], expected, atol=0.004)
        self.assertGreater(np.abs(expected - (np.exp(given) - np.eye(10)[labels]).mean(axis=0)).max(), 0.008)


class ScriptTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.here = pathlib.Path(folder.name)
        self.ledger = self.here / "ledger.jsonl"

    def words(self, *arguments):
        return [sys.executable, EXPERIMENTS / "last-points", "--ledger", self.ledger, *arguments]

    def script(self, *arguments):
        return subprocess.run(self.words(*arguments), capture_output=True, text=True)

    def write_pictures(self):
        """Files of CIFAR-10 with few records: noise, and a class in its brightness."""
        draws = np.random.default_rng(1)
        for name in [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]:
            labels = np.arange(30) % 10
            pixels = np.clip(draws.normal(25 * labels[:, None], 30, (30, 3072)), 0, 255)
            np.column_stack([labels, pixels]).astype(np.uint8).tofile(self.here / f"{name}.bin")

    def test_a_killed_script_goes_on_behind_the_last_epoch(self):
        self.write_pictures()
        words = self.words("--data-dir", self.here, "--runs", self.here / "runs", "--model", "resnet8", "--seeds", "1",
                           "--epochs", "2", "--float-epochs", "1", "--held-out", "20", "--program", PROGRAM, "--only",
                           "*-dampened-1,*-frozen-1")
        with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as first:
            told = next((line for line in first.stderr if "epoch 1 of 2" in line), None)
            first.kill()
        self.assertIn(" resnet8-frozen-1: epoch 1 of 2: loss ", told)
        done = subprocess.run(words, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("epoch 1 of 2", done.stderr)
        self.assertIn("epoch 2 of 2", done.stderr)
        records = [json.loads(line) for line in self.ledger.read_text().splitlines()]
        self.assertEqual([record["run"] for record in records], ["resnet8-float", "resnet8-dampened-1", "resnet8-frozen-1"])
        self.assertTrue(all(0 <= record["validation_accuracy"] <= 1 for record in records))
        self.assertNotIn(str(self.here), self.ledger.read_text())
        again = subprocess.run(words, capture_output=True, text=True)
        self.assertEqual((again.stdout, again.stderr), (done.stdout, ""))
        # The start of all rows may not have seen other pictures than they.
        refused = subprocess.run([*words, "--float", self.here / "runs/resnet8-float", "--held-out", "10", "--ledger",
                                  self.here / "other.jsonl"], capture_output=True, text=True)
        self.assertRegex(refused.stderr, "resnet8-float: it was trained with 20 pictures held out, not with 10\n$")

    def test_the_table_has_paired_differences(self):
        commands = {line.split(" --runs ")[0].split(" --out ")[0].removeprefix("miniqat ") for line in
                    self.script("--print").stdout.splitlines()}
        values = {"baseline": (0.88, 0.881, 0.882), "frozen": (0.884, 0.886, 0.888), "scaled": (0.879, 0.880, 0.883)}
        with self.ledger.open("w") as file:
            for row, accuracies in values.items():
                for seed, accuracy in enumerate(accuracies, 1):
                    name = f"resnet20-{row}-{seed}"
                    command = next(one for one in commands if f"--only {name} " in one)
                    print(json.dumps({"run": name, "command": command, "validation_accuracy": accuracy, "seconds": 120}), file=file)
        done = self.script("--table")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        lines = done.stdout.splitlines()
        self.assertEqual(lines[2], "| baseline | 88.10 | 88.00, 88.10, 88.20 |  |  | 2 |")
        # Differences 0.4, 0.5, 0.6 and -0.1, -0.1, 0.1: squares of 0.02 and 0.0267 over four degrees of freedom.
        self.assertIn("one by one | 88.60 | 88.40, 88.60, 88.80 | +0.50 ± 0.06 | yes | 2 |", lines[3])
        self.assertIn("(EWGS) | 88.07 | 87.90, 88.00, 88.30 | -0.03 ± 0.06 | no | 2 |", lines[4])

    def test_commands_name_what_they_start_from(self):
        done = self.script("--print", "--only", "resnet20-taught-2,resnet20-dampened-1")
        lines = done.stdout.splitlines()
        self.assertEqual([line.split()[-1] for line in lines], ["resnet20-float", "resnet20-teacher", "resnet20-dampened-1", "DIR"])
        self.assertIn("--validation 10000 ", lines[2])
        self.assertIn("--init-checkpoint resnet20-float ", lines[2])
        self.assertIn("--float resnet20-float --teacher resnet20-teacher --epochs 20", lines[3])


if __name__ == "__main__":
    unittest.main()
