"""Whole runs: train on a Dataset, quantize, sensitivity, report, predict; errors in the words of Python."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import miniqat

PROGRAM = sys.argv.pop(1)


def miniqat_program(*words):
    return subprocess.run([PROGRAM, *map(str, words)], check=True, capture_output=True, text=True).stdout


class Runs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.place = pathlib.Path(cls.folder.name)
        train, test = miniqat.load("synthetic", train_size=600, test_size=120)
        cls.train = miniqat.Dataset(train.images, train.labels, classes=10, class_names=[f"digit ä{i}" for i in range(10)])
        cls.test = miniqat.Dataset(test.images, test.labels, classes=10, class_names=cls.train.class_names)
        cls.float_run = cls.place / "float"
        miniqat.train(cls.float_run, dataset=(cls.train, cls.test), model="lenet5", batch_size=32, epochs=2, threads=1, float=True,
                      validation=100)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_the_run_keeps_its_arrays(self):
        kept = np.load(self.float_run / "given_arrays.npz")
        np.testing.assert_array_equal(kept["x_train"], self.train.images)
        np.testing.assert_array_equal(kept["y_test"], self.test.labels)
        self.assertEqual(list(kept["class_names"]), self.train.class_names)
        self.assertEqual(list(self.float_run.glob(".*.tmp*")), [])
        self.assertEqual(json.loads((self.float_run / "commands.json").read_text()), [{"command": None}])
        told = json.loads(miniqat_program("eval", self.float_run, "--json", "--by-class"))
        self.assertEqual(told["examples"], 120)
        self.assertIn("digit ä3", json.dumps(told, ensure_ascii=False))
        self.assertEqual(json.loads((self.float_run / "dataset.json").read_text())["class_names"], self.train.class_names)

    def test_it_is_the_training_of_the_file(self):
        file = self.place / "arrays.npz"
        np.savez(file, x_train=self.train.images, y_train=self.train.labels, x_test=self.test.images, y_test=self.test.labels,
                 class_names=np.array(self.train.class_names))
        miniqat.train(self.place / "of-file", dataset=file, model="lenet5", batch_size=32, epochs=2, threads=1, float=True,
                      validation=100)
        name = "checkpoint.safetensors"
        self.assertEqual((self.float_run / name).read_bytes(), (self.place / "of-file" / name).read_bytes())

    def test_gradients_of_a_resumed_run_may_become_float32(self):
        out, name = self.place / "gradients", "config.json"
        miniqat.train(out, dataset=self.train, model="lenet5", batch_size=32, steps=2, threads=1)
        recorded = json.loads((out / name).read_text())
        (out / name).write_text(json.dumps({**recorded, "gradients": "int8"}))
        miniqat.train(out, resume=True, steps=3, gradients="float32")
        self.assertEqual(json.loads((out / name).read_text()), {**recorded, "steps": 3})

    def test_one_data_set_is_parted_stopped_and_resumed(self):
        def stop(step, *_):
            if step == 3:
                raise KeyboardInterrupt
        out, whole = self.place / "stopped", self.place / "whole"
        data = miniqat.Dataset(self.train.images, self.train.labels, classes=12, scale=1 / 128, zero_point=127)
        settings = {"model": "lenet5", "batch_size": 32, "steps": 6, "threads": 1}
        with self.assertRaises(KeyboardInterrupt):
            miniqat.train(out, dataset=data, on_step=stop, **settings)
        with self.assertRaisesRegex(ValueError, "leave dataset out"):
            miniqat.train(out, dataset=data, resume=True)
        miniqat.train(out, resume=True)
        miniqat.train(whole, dataset=data, **settings)
        name = "checkpoint.safetensors"
        self.assertEqual((out / name).read_bytes(), (whole / name).read_bytes())
        recorded = json.loads((out / "dataset.json").read_text())
        self.assertEqual((recorded["input_zero_point"], len(recorded["class_names"])), (127, 12))
        self.assertEqual(recorded["pictures"], {"training": 500, "validation": 0, "test": 100})
        # Another run in its place takes the arrays away.
        miniqat.train(out, overwrite=True, model="lenet5", steps=1, threads=1, batch_size=32)
        self.assertFalse((out / "given_arrays.npz").exists())

    def test_what_train_refuses_of_a_data_set(self):
        two = np.zeros((600, 8, 8, 2), np.uint8)
        two[:300] = 255
        for dataset, more, kind, text in (
                (miniqat.Dataset(two, self.train.labels), {}, ValueError, "1 or 3 channels, not 2"),
                ((self.train, None), {}, TypeError, "a tuple of two"),
                ((self.train, miniqat.Dataset(self.test.images, self.test.labels)), {}, ValueError, "different class_names"),
                (self.train, {"mean": 0.5}, ValueError, "mean is for files"),
                (self.train, {"learning_rate": 1e-50}, miniqat.UsageError, "^learning_rate is 1e-50, which is 0 in float32"),
                (self.train, {"momentum": 1e-50}, miniqat.UsageError, "^momentum is 1e-50, which is 0 in float32"),
                (12, {}, miniqat.UsageError, '"dataset" cannot be 12')):
            with self.subTest(text), self.assertRaisesRegex(kind, text):
                miniqat.train(self.place / "refused", dataset=dataset, **more)
        self.assertFalse((self.place / "refused").exists())

    def test_quantize_and_report(self):
        heard = []
        found = miniqat.quantize(self.place / "four", self.float_run, weight_bits=4, epochs=1, batches=4, threads=1,
                                 report=heard.append)
        self.assertEqual([row["name"] for row in found["rows"]][:3], ["float", "calibrated", "trained"])
        self.assertIn(found["chosen"], ("calibrated", "trained"))
        miniqat_program("quantize", self.float_run, "--weight-bits", 4, "--epochs", 1, "--batches", 4, "--threads", 1, "--out",
                        self.place / "program")
        theirs = json.loads((self.place / "program/quantize.json").read_text())
        self.assertEqual(found["rows"], theirs["rows"])
        name = "checkpoint.safetensors"
        self.assertEqual((self.place / "four" / name).read_bytes(), (self.place / "program" / name).read_bytes())
        self.assertTrue(heard)
        self.assertNotRegex("\n".join(heard), r"(^|[ (])--[a-z]")
        # Nothing makes its training longer: the table would not fit.
        four = self.place / "four"
        for out, more, words in ((four, {}, rf'holds a run of quantize, .*miniqat.quantize\(resume=True, out="{four}"\) goes on'),
                                 (four / "trained", {"epochs": 3}, "epochs: .* holds the training of the run of quantize in"),
                                 (four / "trained", {"steps": 99}, "steps: .* holds the training of the run of quantize in"),
                                 (four / "calibrated", {}, "was calibrated, not trained")):
            with self.subTest(words), self.assertRaisesRegex(miniqat.UsageError, words):
                miniqat.train(out, resume=True, **more)
        # A complete run is told again.
        self.assertEqual(miniqat.quantize(self.place / "four", resume=True), found)
        page = self.place / "page.html"
        self.assertEqual(miniqat.report([self.float_run, self.place / "four"], page, threads=1), [])
        self.assertIn("digit ä3", page.read_text())

    def test_a_report_replaces_no_file_of_another_kind(self):
        checkpoint = self.float_run / "checkpoint.safetensors"
        before = checkpoint.read_bytes()
        with self.assertRaisesRegex(miniqat.UsageError, "^out must end in .html or .htm, not "):
            miniqat.report(self.float_run, checkpoint)
        self.assertEqual(checkpoint.read_bytes(), before)

    def test_an_empty_out_is_not_the_current_folder(self):
        for call in (lambda **more: miniqat.train("", model="lenet5", dataset=(self.train, self.test), batch_size=32, **more),
                     lambda **more: miniqat.quantize("", self.float_run, **more),
                     lambda **more: miniqat.sensitivity("", self.float_run, bits=[8], **more)):
            for more in {}, {"overwrite": True}:
                with self.assertRaisesRegex(miniqat.UsageError, "^out must not be empty"):
                    call(**more)

    def test_the_number_of_threads_stays(self):
        def fail(*_):
            raise KeyError
        before = miniqat.thread_count()
        try:
            miniqat.set_thread_count(2)
            settings = {"model": "lenet5", "dataset": (self.train, self.test), "batch_size": 300, "steps": 1, "float": True}
            miniqat.train(self.place / "one-thread", threads=1, **settings)
            self.assertEqual(miniqat.thread_count(), 2)
            with self.assertRaises(KeyError):
                miniqat.train(self.place / "failed", threads=1, on_step=fail, **settings)
            self.assertEqual(miniqat.thread_count(), 2)
            miniqat.report(self.place / "one-thread", self.place / "threads.html", threads=1)
            self.assertEqual(miniqat.thread_count(), 2)
            miniqat.sensitivity(self.place / "threads", self.float_run, bits=[8], pictures=50, batches=1, threads=1)
            self.assertEqual(miniqat.thread_count(), 2)
            counts = []

            def nested(*_):
                counts.append(miniqat.thread_count())
                miniqat.report(self.place / "one-thread", self.place / "nested.html", threads=1)
                counts.append(miniqat.thread_count())
            miniqat.train(self.place / "outer", threads=3, on_step=nested, **settings)
            self.assertEqual(counts + [miniqat.thread_count()], [3, 3, 2])
        finally:
            miniqat.set_thread_count(before)

    def test_sensitivity(self):
        found = miniqat.sensitivity(self.place / "sens", self.float_run, bits=[2, 8], average_bits=5, pictures=50, batches=2, threads=1)
        self.assertEqual(found, json.loads((self.place / "sens/sensitivity.json").read_text()))
        self.assertTrue((self.place / "sens/bits.json").exists())
        miniqat_program("sensitivity", self.float_run, "--bits", "2,8", "--average-bits", 5, "--pictures", 50, "--batches", 2,
                        "--threads", 1, "--out", self.place / "theirs")
        theirs = json.loads((self.place / "theirs/sensitivity.json").read_text())
        for key in set(found) - {"seconds"}:
            self.assertEqual(found[key], theirs[key], key)
        with self.assertRaisesRegex(miniqat.Error, "is there already: give another out, or overwrite=True"):
            miniqat.sensitivity(self.place / "sens", self.float_run)

    def test_predict(self):
        told = json.loads(miniqat_program("predict", self.float_run, 0, 7, "--json"))
        found = miniqat.predict(self.float_run, [0, 7])
        self.assertEqual(found, told["pictures"])
        self.assertEqual(miniqat.predict(self.float_run, np.array([0, 7])), found)
        self.assertEqual(miniqat.predict(self.float_run, 7)[0], found[1])
        of_array = miniqat.predict(self.float_run, self.test.images[[0, 7]])
        self.assertEqual([one["scores"] for one in of_array], [one["scores"] for one in found])
        self.assertEqual([one["label"] for one in of_array], [None, None])
        as_floats = miniqat.predict(self.float_run, self.test.images[:1] / 255)
        self.assertEqual(as_floats[0]["scores"], found[0]["scores"])
        with self.assertRaisesRegex(miniqat.Error, r"\[8,8,1\]"):
            miniqat.predict(self.float_run, np.full((1, 8, 8, 1), 9, np.uint8))
        np.savez(self.place / "own.npz", x_train=self.test.images[:8], y_train=self.test.labels[:8], x_test=self.test.images[:3],
                 y_test=self.test.labels[:3])
        of_all = miniqat.predict(self.float_run, dataset=str(self.place / "own.npz"))
        self.assertEqual(len(of_all), 3)
        self.assertEqual(of_all[0]["scores"], found[0]["scores"])
        with self.assertRaisesRegex(miniqat.UsageError, "no picture is given"):
            miniqat.predict(self.float_run)
        for given in 0.5, [0.5]:
            with self.assertRaisesRegex(TypeError, "pictures must be numbers of pictures, paths, or an array"):
                miniqat.predict(self.float_run, given)
        for keyword, more in (("dataset", {"dataset": "mnist"}), ("data_dir", {"data_dir": "/x"}), ("split", {"split": "train"})):
            with self.subTest(keyword), self.assertRaisesRegex(miniqat.UsageError, f"^{keyword} has no effect with an array"):
                miniqat.predict(self.float_run, self.test.images[:1], **more)
        for nested in [[]], [["a", "b"]], [()], [{}], [None], [b"a", []]:
            with self.subTest(nested), self.assertRaises(TypeError):
                miniqat.predict(self.float_run, nested)

    def test_keywords_without_effect_are_refused(self):
        for keyword, more in (("momentum", {"momentum": 0.5, "optimizer": "adam"}), ("weight_bits", {"weight_bits": 4, "float": True}),
                              ("epochs", {"epochs": 2, "steps": 3}), ("data_dir", {"data_dir": "/x", "dataset": "table.csv"}),
                              ("schedule_every", {"schedule_every": 9})):
            with self.subTest(keyword), self.assertRaisesRegex(miniqat.UsageError, f"^{keyword} has no effect with "):
                miniqat.train(self.place / "refused", model="lenet5", **more)
        with self.assertRaisesRegex(miniqat.UsageError, "^momentum has no effect with optimizer adam"):
            miniqat.quantize(self.place / "refused", self.float_run, momentum=0.5, optimizer="adam")
        self.assertFalse((self.place / "refused").exists())

    def test_epochs_make_a_run_of_steps_longer(self):
        out = self.place / "longer"
        miniqat.train(out, model="lenet5", dataset=(self.train, self.test), batch_size=300, steps=1, threads=1, float=True)
        miniqat.train(out, resume=True, epochs=2)
        self.assertEqual(json.loads((out / "summary.json").read_text())["steps"], 4)

    def test_no_flags_in_errors(self):
        calls = (
            lambda: miniqat.train(self.float_run, model="lenet5"),
            lambda: miniqat.train(self.place / "e", batch_size=-1),
            lambda: miniqat.train(self.place / "e", dataset="mnist", data_dir="/nowhere"),
            lambda: miniqat.train(self.place / "e", dataset="synthetic", image_size="8x8", steps=1),
            lambda: miniqat.train(self.place / "e", schedule="cosine", warmup_steps=100, steps=10),
            lambda: miniqat.train(self.place / "e", optimizer="adem", steps=1),
            lambda: miniqat.train(self.place / "e", scope="nowhere"),
            lambda: miniqat.train(self.float_run, resume=True, seed=7),
            lambda: miniqat.quantize(self.place / "e"),
            lambda: miniqat.quantize(self.place / "e", self.float_run, model="a.onnx"),
            lambda: miniqat.quantize(self.place / "e", self.float_run, dataset="mnist"),
            lambda: miniqat.quantize(self.place / "e", self.float_run, validation=0),
            lambda: miniqat.quantize(self.place / "e", self.float_run, validation=7),
            lambda: miniqat.quantize(self.place / "e", self.float_run, method="percentile", percentile=200),
            lambda: miniqat.quantize(self.place / "e", self.float_run, batches=0),
            lambda: miniqat.quantize(self.place / "e", model="lenet5", dataset="synthetic"),
            lambda: miniqat.sensitivity(self.place / "e", self.float_run, bits=[]),
            lambda: miniqat.sensitivity(self.place / "e", self.float_run, bytes=1),
            lambda: miniqat.sensitivity(self.place / "e", self.float_run, average_bits=3, bytes=9),
            lambda: miniqat.sensitivity(self.float_run, self.float_run),
            lambda: miniqat.sensitivity(self.place / "e", self.float_run, nonsense=1),
            lambda: miniqat.predict(self.place, 0),
            lambda: miniqat.predict(self.float_run, 0, split="validaton"),
            lambda: miniqat.predict(self.float_run, []),
            lambda: miniqat.report([], self.place / "p.html"),
            lambda: miniqat.report(self.place, self.place / "p.html"),
            lambda: miniqat.load("mnist", "/nowhere"),
            lambda: miniqat.load("synthetic", image_size="8x8"),
            lambda: miniqat.load("a/b", image_size="8y8"),
            lambda: miniqat.load(str(self.place)),
            lambda: miniqat.create_training_graph(miniqat.Graph(), weight_bits=1),
        )
        for number, call in enumerate(calls):
            with self.subTest(number):
                with self.assertRaises((miniqat.Error, ValueError)) as raised:
                    call()
                self.assertNotRegex(str(raised.exception), r"(^|[ (`])--[a-z]")
                self.assertNotEqual(str(raised.exception), "")

    def test_words_of_errors(self):
        def interrupt(*_):
            raise KeyboardInterrupt
        out = self.place / "it's --my run"
        with self.assertRaises(KeyboardInterrupt):
            miniqat.quantize(out, self.float_run, weight_bits=4, epochs=1, batches=4, threads=1, on_step=interrupt)
        with self.assertRaises(miniqat.Error) as raised:
            miniqat.predict(out, 0)
        self.assertIn(f'miniqat.quantize(resume=True, out="{out}")', str(raised.exception))
        # Commands of the program alone are for a shell.
        with self.assertRaisesRegex(miniqat.Error, "`miniqat rewrite --report` says why, float=True trains without"):
            miniqat.train(self.place / "e", model="lenet5", scope="pool1", steps=1)
        with self.assertRaisesRegex(miniqat.Error, "resume=True to go on with that run, or overwrite=True to delete it"):
            miniqat.quantize(self.float_run, self.float_run)
        with self.assertRaisesRegex(miniqat.UsageError, "^batch_size must be"):
            miniqat.train(self.place / "e", batch_size=-1)
        with self.assertRaisesRegex(miniqat.UsageError, r"^float differs from the run's own \(True\); leave it out to resume"):
            miniqat.train(self.float_run, resume=True, float=False)
        with self.assertRaisesRegex(miniqat.UsageError, r"^nesterov differs from the run's own \(False\)"):
            miniqat.train(self.float_run, resume=True, nesterov=True)


if __name__ == "__main__":
    unittest.main()
