"""Networks, steps, integers and exports in Python against what the program (first argument) writes."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

import numpy as np

import miniqat

PROGRAM = sys.argv.pop(1)
STEPS = 20
FORMATS = ("miniqat", "tflite", "onnx", "json", "c")


def miniqat_program(*words):
    return subprocess.run([PROGRAM, *map(str, words)], check=True, capture_output=True, text=True).stdout


def address(array):
    return array.__array_interface__["data"][0]


class AgainstTheProgram(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.place = pathlib.Path(cls.folder.name)
        cls.train, cls.test = miniqat.load("synthetic")
        common = ["train", "--model", "lenet5", "--dataset", "synthetic", "--steps", STEPS, "--threads", 1, "--seed", 1]
        miniqat_program(*common, "--float", "--out", cls.place / "float")
        miniqat_program(*common, "--weight-bits", 4, "--ranges", "observed", "--out", cls.place / "run")
        graph = miniqat.read_graph(cls.place / "run/eval_graph.json")
        cls.variables = miniqat.read_safetensors(cls.place / "run/checkpoint.safetensors")
        cls.model = miniqat.convert(graph, cls.variables, input_scale=cls.test.scale,
                                    input_zero_point=cls.test.zero_point, name="run")
        miniqat.set_thread_count(1)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def steps_here(self, rewrite):
        net = miniqat.make_classifier("lenet5", self.train, batch_size=128)
        labels, loss = net.add_loss()
        if rewrite:
            miniqat.create_training_graph(net.graph, weight_bits=4)
        session = miniqat.Session(net.graph, seed=1, arithmetic="integer")
        optimizer = miniqat.Sgd(0.05, momentum=0.9, weight_decay=5e-4,
                                schedule=miniqat.Schedule("cosine", total_steps=STEPS))
        batches = miniqat.Loader(self.train, batch_size=128, seed=1)
        for _ in range(STEPS):
            images, numbers = next(batches)
            session.train_step(loss, optimizer, {net.images: images, labels: numbers})
        session.save(self.place / "own.safetensors")
        return (self.place / "own.safetensors").read_bytes()

    def test_steps_in_a_loop_give_the_programs_checkpoints(self):
        self.assertEqual(self.steps_here(False), (self.place / "float/checkpoint.safetensors").read_bytes())
        self.assertEqual(self.steps_here(True), (self.place / "run/checkpoint.safetensors").read_bytes())

    def test_exports_are_the_programs(self):
        for name in FORMATS:
            miniqat_program("export", self.place / "run", "--format", name, "--out", self.place / f"m.{name}")
        for name, ours in (("miniqat", self.model.to_miniqat()), ("tflite", self.model.to_tflite()),
                           ("onnx", self.model.to_onnx()), ("json", self.model.to_json())):
            self.assertEqual(ours, (self.place / f"m.{name}").read_bytes(), name)
        header, source = self.model.to_c("m", self.test.images[:1], accuracy="")
        self.assertIn(b"int m_run(", header)
        # Where the program's test vectors begin, the source differs.
        before_vectors = source.split(b"test_inputs")[0].split(b"*/", 1)[1][:2000]
        self.assertIn(before_vectors, (self.place / "m.c").read_bytes())

    def test_engine_and_evaluation_are_the_programs(self):
        told = json.loads(miniqat_program("eval", self.place / "run", "--integer", "--json"))
        self.assertEqual(miniqat.evaluate_integers(self.model, self.test).accuracy, told["accuracy"])
        self.assertEqual(miniqat.evaluate_integers(self.model, self.test).balanced_accuracy, told["balanced_accuracy"])
        answers = miniqat.Engine(self.model).run(self.test.images).argmax(axis=-1)
        self.assertEqual(np.mean(answers == self.test.labels), told["accuracy"])
        again = miniqat.IntegerModel.from_bytes(self.model.to_miniqat())
        some = self.test.images[:50]
        for name, values in miniqat.Engine(again).run_all(some).items():
            np.testing.assert_array_equal(values, miniqat.Engine(self.model).run_all(some)[name], name)

    def test_onnx_goes_out_and_comes_back(self):
        graph = miniqat.read_graph(self.place / "float/eval_graph.json")
        variables = miniqat.read_safetensors(self.place / "float/checkpoint.safetensors")
        (self.place / "float.onnx").write_bytes(miniqat.onnx_float(graph, variables))
        for size in "batch_size", "height", "width":
            with self.assertRaisesRegex(ValueError, "must not be negative, got -1"):
                miniqat.import_onnx(self.place / "float.onnx", **{size: -1})
        imported, weights = miniqat.import_onnx(self.place / "float.onnx", batch_size=128)[:2]
        results = []
        pictures = self.test.images[:128].astype(np.float32) * np.float32(self.test.scale)
        for net, values in ((graph, variables), (imported, weights)):
            session = miniqat.Session(net)
            session.restore(values, mode="variables")
            feed = next(node["name"] for node in net.nodes() if node["op"] == "Placeholder")
            results.append(session.run(net.outputs[0], {feed: pictures}))
        np.testing.assert_allclose(results[0], results[1], rtol=1e-5, atol=1e-5)

    def test_onnx_has_the_opset_asked_for(self):
        # The file begins with its IR version.
        self.assertEqual(self.model.to_onnx()[:2], bytes([8, 10]))  # weights of 4 bits need opset 21
        graph = miniqat.read_graph(self.place / "float/eval_graph.json")
        variables = miniqat.read_safetensors(self.place / "float/checkpoint.safetensors")
        for opset, ir_version in ((None, 7), (17, 8), (20, 9), (21, 10)):
            self.assertEqual(miniqat.onnx_float(graph, variables, opset=opset)[:2], bytes([8, ir_version]))
        with self.assertRaisesRegex(miniqat.Error, "opset 22 cannot be written; 13 to 21 can"):
            self.model.to_onnx(opset=22)

    def test_calibration_finds_ranges(self):
        net = miniqat.make_classifier("lenet5", self.train, batch_size=128)
        miniqat.create_eval_graph(net.graph, weight_bits=4)
        session = miniqat.Session(net.graph, seed=1)
        session.restore(miniqat.read_safetensors(self.place / "float/checkpoint.safetensors"), mode="by_name")
        batches = miniqat.Loader(self.train, batch_size=128, seed=1)
        miniqat.calibrate(session, [{net.images: next(batches)[0]} for _ in range(4)])
        for name, channels in miniqat.ranges(session).items():
            self.assertLess(channels[0][0], channels[0][1], name)
        self.assertGreater(miniqat.evaluate(session, net, self.test).accuracy, 0.5)

    def test_results_own_their_memory(self):
        graph = miniqat.Graph()
        x = graph.add("Placeholder", "x", shape=[4, 3])
        graph.outputs = graph.add("Square", "y", x)
        session = miniqat.Session(graph)
        fed = np.arange(12, dtype=np.float32).reshape(4, 3)
        first = session.run("y", {"x": fed})
        kept = first.copy()
        second = session.run("y", {"x": fed + 1})
        self.assertNotEqual(address(first), address(second))
        np.testing.assert_array_equal(first, kept)
        np.testing.assert_array_equal(first, fed * fed)
        # Another type or order is converted.
        np.testing.assert_array_equal(session.run("y", {"x": np.asfortranarray(fed)}), kept)

    def test_errors_are_the_programs(self):
        graph = miniqat.Graph()
        x = graph.add("Placeholder", "x", shape=[2, 3])
        with self.assertRaisesRegex(miniqat.Error, r'\[Relu "r"\] takes 1 input, 2 are given'):
            graph.add("Relu", "r", [x, x])
        with self.assertRaisesRegex(miniqat.Error, "Relo"):
            graph.add("Relo", "r", x)

    def test_ctrl_c_ends_a_training(self):
        timer = threading.Timer(0.7, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        with self.assertRaises(KeyboardInterrupt):
            miniqat.train(self.place / "stopped", model="lenet5", steps=100000, threads=1)
        timer.join()


if __name__ == "__main__":
    unittest.main()
