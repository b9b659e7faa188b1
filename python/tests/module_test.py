"""The Python module against the program whose path is the first argument."""

import contextlib
import io
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import unittest
import warnings

import numpy as np

import miniqat

PROGRAM = sys.argv.pop(1)


def address(array):
    return array.__array_interface__["data"][0]


def batch_norm_of(rows):
    """A graph of one BatchNorm "bn" over x, [rows, 1]."""
    graph = miniqat.Graph()
    x = graph.add("Placeholder", "x", shape=[rows, 1])
    vectors = [graph.add("Variable", name, shape=[1], trainable=name in ("gamma", "beta"))
               for name in ("gamma", "beta", "mean", "variance")]
    graph.add("BatchNorm", "bn", [x, *vectors])
    return graph


class FakeQuant(unittest.TestCase):
    def test_values_and_gradient_at_2_bits(self):
        x = np.array([-2, -0.4, 0, 0.5, 2], np.float32)
        y = miniqat.fake_quant(x, -1, 2, bits=2)
        np.testing.assert_array_equal(y, np.array([-1, 0, 0, 1, 2], np.float32))
        d_x, d_min, d_max = miniqat.fake_quant_gradient(np.full(5, 3, np.float32), np.append(x[:4], 5), -1, 2, bits=2)
        np.testing.assert_array_equal(d_x, [0, 3, 3, 3, 0])
        self.assertEqual((d_min, d_max), (3, 3))

    def test_ranges_that_are_none_are_refused(self):
        x = np.ones((2, 3), np.float32)
        uses = {"grid": miniqat.grid, "fake_quant": lambda *ends: miniqat.fake_quant(x, *ends),
                "fake_quant_gradient": lambda *ends: miniqat.fake_quant_gradient(x, x, *ends)}
        for name, use in uses.items():
            for ends, said in (((2, -1), r"\[2, -1\]: min is greater"), ((np.nan, 1), "finite"), ((-1, np.inf), "finite"),
                               ((-3.4e38, 3.4e38), r"\[-3.4e\+38, 3.4e\+38\]: too wide")):
                with self.subTest(name, ends=ends), self.assertRaisesRegex(ValueError, said):
                    use(*ends)
        with self.assertRaisesRegex(ValueError, r"range of channel 1 is \[1, 0\]"):
            miniqat.fake_quant(x, np.array([-1, 1, -1]), np.array([1, 0, 1]))
        np.testing.assert_array_equal(miniqat.fake_quant(x, 0, 0), np.zeros((2, 3)))


class Data(unittest.TestCase):
    def test_what_is_left_out_is_a_warning(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            for i in range(24):
                file = folder / ("cat" if i % 2 else "dog") / f"{i}.bmp"
                file.parent.mkdir(exist_ok=True)
                head = struct.pack("<2sIHHIIiiHHIIiiII", b"BM", 102, 0, 0, 54, 40, 4, 4, 1, 24, 0, 48, 0, 0, 0, 0)
                file.write_bytes(head + bytes((5 * k + i) % 256 for k in range(48)))
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                train, test = miniqat.load(folder)
            self.assertEqual((len(train), len(test)), (20, 4))
            (folder / "cat/a.gif").write_bytes(b"GIF89a")
            with self.assertWarnsRegex(UserWarning, "left out 1 .gif file"):
                miniqat.load(name)
            (folder / "cat/1.bmp").write_bytes(head)
            with self.assertRaisesRegex(miniqat.Error, '1 of 24 files cannot be read: "cat/1.bmp" is a damaged BMP'):
                miniqat.load(name)
            with self.assertWarnsRegex(UserWarning, "skipped 1 of 24 files"):
                train, _ = miniqat.load(name, skip_broken=True)
            self.assertEqual(len(train), 19)


class Rewrite(unittest.TestCase):
    def test_ranges_that_saw_nothing_are_not_converted(self):
        for ranges in "observed", "all-values", "learned":
            graph = miniqat.Graph()
            x = graph.add("Placeholder", "x", shape=[2, 4])
            weights = graph.add("Variable", "w", shape=[4, 3], initializer={"type": "he_normal"})
            graph.outputs = graph.add("Relu", "y", graph.add("MatMul", "xw", [x, weights]))
            miniqat.create_eval_graph(graph, ranges=ranges)
            session = miniqat.Session(graph)
            with self.subTest(ranges), self.assertRaisesRegex(miniqat.Error, r"weights_quant.*never seen.*miniqat.calibrate\(\)"):
                miniqat.convert(graph, session.variables())
            miniqat.calibrate(session, [{"x": np.eye(2, 4, dtype=np.float32)}])
            miniqat.convert(graph, session.variables())

    def test_a_negative_variance_is_refused(self):
        with self.assertRaisesRegex(miniqat.Error, r"variance.*-1.*cannot be negative"):
            miniqat.Session(batch_norm_of(2)).set_variable("variance", np.array([-1], np.float32))

    def test_a_run_in_training_that_overflows_keeps_nothing(self):
        session = miniqat.Session(batch_norm_of(2))
        before = session.checkpoint()
        with self.assertRaisesRegex(miniqat.NonFiniteUpdate, 'the new value of variable "mean" became .* in step 1'):
            session.run("bn", {"x": np.array([[1], [np.inf]], np.float32)}, training=True)
        for name, value in session.checkpoint().items():
            np.testing.assert_array_equal(value, before[name], name)
        session.run("bn", {"x": np.array([[1], [2]], np.float32)}, training=True)
        self.assertEqual(session.step, 1)

    def test_one_number_a_channel_is_no_batch(self):
        session = miniqat.Session(batch_norm_of(1))
        fed = {"x": np.ones((1, 1), np.float32)}
        session.run("bn", fed)
        with self.assertRaisesRegex(miniqat.Error, r'BatchNorm "bn".*one number a channel.*batch of 1'):
            session.run("bn", fed, training=True)

    def test_session_follows_the_graph(self):
        graph = miniqat.Graph()
        x = graph.add("Placeholder", "x", shape=[1, 4])
        graph.outputs = graph.add("MatMul", "y", [x, graph.add("Variable", "w", shape=[4, 4], initializer={"type": "constant", "value": 0.3})])
        before, session = graph.clone(), miniqat.Session(graph)
        weights = np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4)
        session.set_variable("w", weights)
        fed = np.eye(1, 4, dtype=np.float32)
        np.testing.assert_array_equal(session.run("y", {"x": fed}), weights[:1])
        with self.assertRaisesRegex(miniqat.Error, '"x" is fed twice'):
            session.run("y", {"x": fed, x: 2 * fed})
        miniqat.create_training_graph(graph, weight_bits=2)
        self.assertLess(len(before), len(graph))
        rewritten = graph.to_json()
        self.assertEqual(miniqat.create_training_graph(graph).inserted, [])
        with self.assertRaisesRegex(miniqat.UsageError, "weight_bits 8: the graph was rewritten before: .* has 2 bits, not 8"):
            miniqat.create_training_graph(graph, weight_bits=8)
        self.assertEqual(graph.to_json(), rewritten)
        session.run("y", {"x": fed}, training=True)
        self.assertGreater(np.abs(session.run(graph.outputs[0], {"x": fed}) - weights[:1]).max(), 0.1)
        np.testing.assert_array_equal(session.variable("w"), weights)


class Sequences(unittest.TestCase):
    def test_convolutions_and_pools_over_steps(self):
        graph = miniqat.Graph()
        x = graph.add("Placeholder", "x", shape=[2, 9, 3])
        filter = graph.add("Variable", "w", shape=[3, 1, 3, 4], initializer={"type": "he_normal"})
        each = graph.add("Variable", "d", shape=[2, 1, 4, 1], initializer={"type": "he_normal"})
        y = graph.conv1d("y", x, "w", stride=2, padding="VALID")
        z = graph.depthwise_conv1d("z", y, each, padding="EXPLICIT", pads=[1, 0])
        outputs = [y, z, graph.max_pool1d("most", x), graph.avg_pool1d("mean", x, window=3, stride=2)]
        session = miniqat.Session(graph)
        numbers = np.random.default_rng(1).normal(size=(2, 9, 3)).astype(np.float32)
        found = session.run(outputs, {x: numbers})
        w, d = session.variables()["w"][:, 0], session.variables()["d"][:, 0, :, 0]
        wanted = np.stack([np.einsum("nki,kio->no", numbers[:, s:s + 3], w) for s in (0, 2, 4, 6)], 1)
        np.testing.assert_allclose(found[0], wanted, rtol=1e-5, atol=1e-5)
        before = np.pad(wanted, ((0, 0), (1, 0), (0, 0)))
        np.testing.assert_allclose(found[1], before[:, :4] * d[0] + before[:, 1:] * d[1], rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(found[2], numbers[:, :8].reshape(2, 4, 2, 3).max(2))
        np.testing.assert_allclose(found[3], np.stack([numbers[:, s:s + 3].mean(1) for s in (0, 2, 4, 6)], 1), rtol=1e-5, atol=1e-6)
        # The second convolution reads the image that the first one gives.
        self.assertEqual(next(node for node in graph.nodes() if node["name"] == "z")["inputs"], ["y", "d"])
        with self.assertRaisesRegex(miniqat.Error, 'padding must be SAME, VALID or EXPLICIT, got "same"'):
            graph.conv1d("u", x, filter, padding="same")
        with self.assertRaisesRegex(miniqat.Error, r'"u" takes a sequence \[n, steps, channels\], got w'):
            graph.max_pool1d("u", filter)


class Page(unittest.TestCase):
    def test_examples_of_the_page_run(self):
        page = (pathlib.Path(__file__).parents[2] / "docs/python.md").read_text()
        blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
        self.assertEqual(len(blocks), 5)
        *blocks, few_bits = blocks
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            said, names = io.StringIO(), {}
            with contextlib.redirect_stdout(said):
                exec("\n".join(blocks), names)
            self.assertEqual(repr(names["train"]), "<miniqat.Dataset images=[6000,28,28,1] classes=10>")
            self.assertEqual(repr(names["graph"]), f"<miniqat.Graph nodes={len(names['graph'])} W4A4>")
            self.assertRegex(repr(names["model"]), r"^<miniqat.IntegerModel lenet5 operations=8 weight_bytes=\d+>$")
            accuracy, ranges, answer, predicted = said.getvalue().splitlines()
            self.assertIn(answer, ("below", "above"))
            self.assertGreater(float(accuracy), 0.95)
            self.assertIn("fc/act_quant", ranges)
            self.assertAlmostEqual(float(predicted.strip("[]")), names["y"][0], delta=5)
            self.assertGreater(pathlib.Path("lenet5.tflite").stat().st_size, 60_000)
        # The last one goes between a loop that trains in float and the same once more.
        training, end = re.sub("miniqat.create_training_graph.*", "", blocks[0]).split("\nwith open")[0].split("\nevaluation")
        loop = training[training.index("for _ in"):]
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()) as said:
            exec("\n".join([training, few_bits, loop, "evaluation" + end]), {})
        self.assertGreater(float(said.getvalue()), 0.95)
        # Names in the table of calls.
        for name in re.findall(r"`([A-Za-z_]+(?:\.[a-z_]+)?)[(`]", page.split("## What there is")[1].split("```")[0]):
            with self.subTest(name):
                owner, _, member = name.partition(".")
                self.assertTrue(hasattr(miniqat, owner) and (not member or hasattr(getattr(miniqat, owner), member)))


    def test_a_network_of_your_own_is_the_file(self):
        root = pathlib.Path(__file__).parents[2]
        in_python, in_pytorch = re.findall(r"```python\n(.*?)```", (root / "docs/own-network.md").read_text(), re.DOTALL)
        self.assertIn("import torch", in_pytorch)  # scripts/import-against-pytorch runs that one
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            exec(in_python, {})
            self.assertEqual(pathlib.Path("residual.json").read_text(), (root / "examples/residual.json").read_text())

    def test_the_regression_of_the_limits_becomes_integers(self):
        page = (pathlib.Path(__file__).parents[2] / "docs/limits.md").read_text()
        (block,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
        names = {}
        with contextlib.redirect_stdout(io.StringIO()) as said:
            exec(block, names)
        # Products of such numbers differ from their mean by 0.18 on average.
        self.assertLess(float(said.getvalue()), 0.07)
        self.assertTrue(names["model"].to_tflite() and names["model"].to_onnx() and names["model"].to_c("product", names["rows"]))


class Losses(unittest.TestCase):
    def test_losses_and_gradients_are_the_formulas(self):
        random = np.random.default_rng(7)
        x, t = random.normal(0, 3, (6, 4)), random.uniform(0, 1, (6, 4))
        error, sigmoid = x - t, 1 / (1 + np.exp(-x))
        far = np.abs(error) > 0.5
        for op, attributes, loss, gradient in (
                ("MeanSquaredError", {}, (error ** 2).mean(), 2 * error),
                ("Huber", {"delta": 0.5}, np.where(far, 0.5 * (np.abs(error) - 0.25), error ** 2 / 2).mean(), error.clip(-0.5, 0.5)),
                ("SigmoidCrossEntropy", {}, -(t * np.log(sigmoid) + (1 - t) * np.log(1 - sigmoid)).mean(), sigmoid - t)):
            graph = miniqat.Graph()
            prediction, target = (graph.add("Placeholder", name, shape=[6, 4]) for name in ("x", "t"))
            y = graph.add(op, "loss", [prediction, target], **attributes)
            session = miniqat.Session(graph)
            feeds = {"x": x.astype(np.float32), "t": t.astype(np.float32)}
            with self.subTest(op):
                self.assertAlmostEqual(float(session.run(y, feeds)), loss, 5)
                np.testing.assert_allclose(session.gradients(y, prediction, feeds)[0], gradient / 24, atol=1e-6)
                self.assertEqual(y.shape, ())

    def test_settings_of_a_network_that_cannot_be_are_refused(self):
        train, _ = miniqat.load("synthetic", train_size=10, test_size=10)
        with tempfile.TemporaryDirectory() as folder:
            own = pathlib.Path(folder, "own.json")
            own.write_text(miniqat.make_classifier("lenet5", train, batch_size=8).graph.to_json())
            for model, given, text in (("lenet5", {"width": 0}, r"`width` must be in \(0, 16\], is 0"),
                                       ("lenet5", {"width": float("nan")}, "`width` must be in"),
                                       ("lenet5", {"output": "x"}, "output has no effect with lenet5"),
                                       (str(own), {"width": 2}, "width has no effect with")):
                with self.subTest(text), self.assertRaisesRegex((ValueError, miniqat.Error), text):
                    miniqat.make_classifier(model, train, batch_size=8, **given)

    def test_a_target_that_is_no_probability_is_refused(self):
        graph = miniqat.Graph()
        logits, targets = (graph.add("Placeholder", name, shape=[1, 2]) for name in ("logits", "targets"))
        graph.add("SigmoidCrossEntropy", "loss", [logits, targets])
        with self.assertRaisesRegex(miniqat.Error, r"target 2 of row 0, column 1 is outside \[0, 1\]"):
            miniqat.Session(graph).run("loss", {"logits": np.zeros((1, 2), np.float32), "targets": np.array([[0, 2]], np.float32)})


class Memory(unittest.TestCase):
    def test_variable_is_one_view(self):
        train, _ = miniqat.load("synthetic", train_size=256, test_size=64)
        session = miniqat.Session(miniqat.make_classifier("lenet5", train, batch_size=8).graph)
        name, first = next(iter(session.variables().items()))
        self.assertEqual(address(first), address(session.variable(name)))
        del session
        self.assertTrue(np.isfinite(first).all())


class Feeds(unittest.TestCase):
    def test_bytes_of_pictures_are_no_integers_of_fewer_bits(self):
        train, _ = miniqat.load("synthetic", train_size=64, test_size=10)
        net = miniqat.make_classifier("mlp", train, batch_size=8, width=0.1)
        labels, loss = net.add_loss()
        miniqat.create_training_graph(net.graph, quantize_input=True, input_bits=3)
        session = miniqat.Session(net.graph)
        images, numbers = next(miniqat.Loader(train, batch_size=8))
        session.train_step(loss, miniqat.Sgd(0.1), {net.images: images, labels: numbers})
        model = miniqat.convert(net.evaluation().graph, session.variables(), dataset=train)
        engine = miniqat.Engine(model)
        self.assertEqual(engine.run(model.quantize(images)).shape, (8, 10))
        for run in engine.run, engine.run_all:
            with self.assertRaisesRegex(ValueError, "the integers of the model's input end at 7"):
                run(train.images[:8])
        with self.assertRaisesRegex(ValueError, "has 3 bits: picture_grid"):
            model.to_html("page")
        self.assertIn(b'"input_from_byte":', model.to_html("page", picture_grid=(train.scale, train.zero_point)))

    def test_bytes_train_as_their_numbers(self):
        train, _ = miniqat.load("synthetic", train_size=256, test_size=64)
        net = miniqat.make_classifier("lenet5", train, batch_size=8)
        labels, loss = net.add_loss()
        miniqat.create_training_graph(net.graph, weight_bits=4, quantize_input=True)
        for arithmetic in "simulated", "integer":
            coded, plain = (miniqat.Session(net.graph, arithmetic=arithmetic) for _ in range(2))
            for step in range(3):
                batch = slice(8 * step, 8 * step + 8)
                numbers = (train.images[batch].astype(np.float32) - np.float32(131)) * np.float32(0.01)
                losses = [session.train_step(loss, miniqat.Sgd(0.05), {net.images: fed, labels: train.labels[batch]})
                          for session, fed in ((coded, miniqat.Bytes(train.images[batch], 0.01, 131)), (plain, numbers))]
                self.assertEqual(*losses)
            for name, value in plain.checkpoint().items():
                np.testing.assert_array_equal(coded.checkpoint()[name], value, name)

    def test_bytes_hold_an_array(self):
        array = np.arange(12, dtype=np.uint8).reshape(3, 4)
        held = miniqat.Bytes(array)
        self.assertEqual((address(held.array), held.zero_point), (address(array), 0))
        self.assertEqual(np.float32(held.scale), np.float32(1 / 255))
        graph = miniqat.Graph()
        x = graph.add("Placeholder", "x", shape=[3, 4])
        session = miniqat.Session(graph)
        turned = miniqat.Bytes(np.arange(12, dtype=np.uint8).reshape(4, 3).T, scale=0.5, zero_point=2)
        np.testing.assert_array_equal(session.run(x, {x: turned}), (np.arange(12).reshape(4, 3).T - 2) / 2)
        # By itself a byte is its own value.
        np.testing.assert_array_equal(session.run(x, {"x": array}), array)

    def test_wrong_bytes_are_refused(self):
        array = np.zeros((3, 4), np.uint8)
        for scale in 0, -1, np.nan, np.inf, 1e300:
            with self.subTest(scale), self.assertRaisesRegex(ValueError, "scale of bytes must be positive and finite"):
                miniqat.Bytes(array, scale)
        for zero_point in -1, 256:
            with self.subTest(zero_point), self.assertRaisesRegex(ValueError, f"0 to 255, is {zero_point}"):
                miniqat.Bytes(array, 1, zero_point)
        with self.assertRaisesRegex(TypeError, "array must be integers of the type uint8, not float32"):
            miniqat.Bytes(np.zeros(3, np.float32))
        with self.assertRaisesRegex(ValueError, "holds 300, which uint8 does not"):
            miniqat.Bytes([300])
        graph = miniqat.Graph()
        x = graph.add("Placeholder", "x", shape=[3, 5])
        n = graph.add("Placeholder", "n", shape=[3, 4], dtype="int32")
        session = miniqat.Session(graph)
        for place in x, n:
            with self.assertRaisesRegex(miniqat.Error, r'Placeholder "[xn]"\] wants .* was fed bytes \[3,4\]'):
                session.run(place, {place: miniqat.Bytes(array)})


class Program(unittest.TestCase):
    def test_training_writes_the_same_checkpoint(self):
        with tempfile.TemporaryDirectory() as folder:
            ours, theirs = pathlib.Path(folder, "ours"), pathlib.Path(folder, "theirs")
            miniqat.train(ours, model="lenet5", steps=3, threads=1)
            subprocess.run([PROGRAM, "train", "--model", "lenet5", "--steps", "3", "--threads", "1", "--out", theirs],
                           check=True, stdout=subprocess.DEVNULL)
            name = "checkpoint.safetensors"
            self.assertEqual((ours / name).read_bytes(), (theirs / name).read_bytes())

    def test_interrupt_stops_training(self):
        def stop(step, steps, loss):
            raise KeyboardInterrupt
        with tempfile.TemporaryDirectory() as folder, self.assertRaises(KeyboardInterrupt):
            miniqat.train(pathlib.Path(folder, "run"), model="lenet5", steps=1000, on_step=stop)

    def test_a_missing_argument_is_named_in_one_line(self):
        cases = (
            (lambda: miniqat.train(), "train() needs the argument out"),
            (lambda: miniqat.train(dataset="synthetic", steps=1), "train() needs the argument out"),
            (lambda: miniqat.quantize(run="run"), "quantize() needs the argument out"),
            (lambda: miniqat.sensitivity(run="run"), "sensitivity() needs the argument out"),
            (lambda: miniqat.report("run"), "report() needs the argument out"),
            (lambda: miniqat.predict(), "predict() needs the argument run"),
            (lambda: miniqat.predict("run", 1, spilt="test"), 'predict() has no argument spilt; did you mean "split"?'),
            (lambda: miniqat.Dataset(np.zeros((1, 8, 8))), "Dataset() needs the argument labels"),
            (lambda: miniqat.Session(), "Session() needs the argument graph"),
            (lambda: miniqat.Graph().add("Relu"), "add() needs the argument name"),
            (lambda: miniqat.thread_count(1), "thread_count() takes 0 arguments without a name, not 1"))
        for call, text in cases:
            with self.subTest(text), self.assertRaises(TypeError) as raised:
                call()
            self.assertEqual(str(raised.exception), text)
        # A wrong type is told with what would be right.
        with self.assertRaisesRegex(TypeError, "incompatible function arguments"):
            miniqat.train(5)

    def test_every_function_names_what_is_missing(self):
        owners = [miniqat] + [of for of in vars(miniqat).values() if isinstance(of, type) and not issubclass(of, Exception)]
        called = 0
        for owner in owners:
            for name, member in vars(owner).items():
                if not callable(member) or isinstance(member, type) or member is miniqat.thread_count:
                    continue
                try:
                    getattr(owner, name)()
                except Exception as error:
                    called += 1
                    self.assertNotIn("incompatible", str(error), f"{owner.__name__}.{name}")
        self.assertGreater(called, 40)

    def test_errors_are_exceptions(self):
        with self.assertRaisesRegex(miniqat.Error, "backend"):
            miniqat.Session(miniqat.Graph(), backend="quick")
        with self.assertRaisesRegex(miniqat.Error, 'arithmetic "integer" is the fast backend\'s'):
            miniqat.Session(miniqat.Graph(), backend="reference", arithmetic="integer")


if __name__ == "__main__":
    unittest.main()
