"""Numbers in place of pictures: data sets of arrays and files, training loops, whole runs, integers and their units."""

import json
import os
import shutil
import sys
import tempfile
import unittest
import wave

import numpy as np

import miniqat

RANDOM = np.random.default_rng(1)
X = RANDOM.normal(5, 3, (240, 4)).astype(np.float32)
Y = 100 + X @ np.array([3, -2, 0.5, 0], np.float32)


class Numbers(unittest.TestCase):
    def test_what_becomes_of_arrays(self):
        regress = miniqat.Dataset.of_numbers(X, Y)
        np.testing.assert_array_equal(regress.images, X)
        np.testing.assert_array_equal(regress.targets, Y.reshape(-1, 1))
        self.assertEqual((regress.labels, regress.classes, regress.mean), (None, 0, None))
        several = miniqat.Dataset.of_numbers(X, np.stack([X[:, 0] > 5, X[:, 1] > 5], 1))
        self.assertEqual((several.targets.shape, several.labels), ((240, 2), None))
        classes = miniqat.Dataset.of_numbers(X.reshape(240, 2, 2), X[:, 0] > 5, class_names=["low", "high"])
        self.assertEqual((classes.labels.sum(), classes.classes, classes.targets), ((X[:, 0] > 5).sum(), 2, None))
        self.assertEqual(miniqat.Dataset.of_numbers(X, np.arange(240), answers="targets").targets.dtype, np.float32)
        nothing = miniqat.Dataset.of_numbers(X.astype(np.float16))
        self.assertEqual((nothing.labels, nothing.targets, len(nothing)), (None, None, 240))
        self.assertEqual(repr(regress), "<miniqat.Dataset images=[240,4] targets=[240,1]>")

    def test_what_float32_loses_is_a_warning(self):
        times = 1.7e9 + np.arange(600.0).reshape(300, 2)
        with self.assertWarnsRegex(UserWarning, "^x: column 0: numbers from .*: subtract an offset; 1 other column loses much, too"):
            miniqat.Dataset.of_numbers(times)
        with self.assertWarnsRegex(UserWarning, "^y: numbers from .* are rounded by up to"):
            miniqat.Dataset.of_numbers(X, times[:240, 0])

    def test_what_is_refused(self):
        def refused(text, *arguments, **keywords):
            with self.subTest(text), self.assertRaisesRegex((ValueError, TypeError, miniqat.Error), text):
                miniqat.Dataset.of_numbers(*arguments, **keywords)

        refused("x has 240 examples, y is for 3", X, Y[:3])
        refused("x has the shape", X[:, 0])
        refused("x holds nan at", np.where(X > 9, np.nan, X))
        # A rule of docs/python.md: a conversion may round floats and loses nothing else.
        refused("x holds integers that float32 does not hold exactly", np.array([[2**24 + 1]]))
        refused("y holds integers that float32", X[:2], np.array([5, 2**24 + 1]), answers="targets")
        refused("class_names: y has no classes", X, Y, class_names=["a"])
        refused("answers", X, Y, answers="numbers")
        data = miniqat.Dataset.of_numbers(X, Y)
        with self.assertRaisesRegex(ValueError, "standardised already"):
            data.standardised().standardised()
        with self.assertRaisesRegex(ValueError, "like is not standardised"):
            data.standardised(like=data)
        with self.assertRaisesRegex(ValueError, "train does that itself"):
            miniqat.train("nowhere", dataset=data.standardised(), model="mlp")
        # The run would read its own arrays otherwise than it was trained on them.
        for setting in {"inputs": "pictures"}, {"inputs": "numbers"}, {"answers": "classes"}:
            with self.assertRaisesRegex(ValueError, "is for files; a Dataset has its examples"):
                miniqat.train("nowhere", dataset=data, model="mlp", **setting)
        with self.assertRaisesRegex(TypeError, "targets.*target"):
            miniqat.load("synthetic", targets="a")

    def test_standardised(self):
        train = miniqat.Dataset.of_numbers(X[:200], Y[:200]).standardised()
        test = miniqat.Dataset.of_numbers(X[200:], Y[200:]).standardised(like=train)
        np.testing.assert_allclose(train.mean, X[:200].mean(0), rtol=1e-5)
        np.testing.assert_allclose(train.images.std(0), np.ones(4), rtol=1e-4)
        np.testing.assert_array_equal(test.mean, train.mean)
        np.testing.assert_allclose(test.images * train.std + train.mean, X[200:], rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(test.targets[:, 0] * train.target_std + train.target_mean, Y[200:], rtol=1e-5)

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "table.csv")
            np.savetxt(path, np.column_stack([X, Y]), delimiter=",", header="a,b,c,d,yield", comments="")
            train, test = miniqat.load(path, target="yield")
            self.assertEqual((train.images.shape[1], train.targets.shape[1]), (4, 1))
            plain, _ = miniqat.load(path, target="yield", no_standardise=True)
            for keyword, value in {"pad_to": 8, "bands": 40, "image_size": "8"}.items():
                with self.assertRaisesRegex(miniqat.UsageError, f"{keyword} has no effect with .*, tables of numbers"):
                    miniqat.load(path, target="yield", **{keyword: value})
            with self.assertRaisesRegex(ValueError, "train_size is for data that miniqat draws"):
                miniqat.load(path, train_size=10)
            with self.assertRaisesRegex(miniqat.UsageError, "data_dir has no effect"):
                miniqat.load(path, data_dir=folder)
            self.assertIsNone(plain.mean)
            np.testing.assert_allclose(plain.images, X[:len(plain)] if len(plain) == 240 else plain.images)
            self.assertAlmostEqual(float(train.mean[0]), float(plain.images[:, 0].mean()), places=4)


    def test_a_validation_part_is_not_lost_without_a_word(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "parts.npz")
            np.savez(path, x_train=X[:200], y_train=Y[:200], x_val=X[200:220], y_val=Y[200:220], x_test=X[220:], y_test=Y[220:])
            with self.assertWarnsRegex(UserWarning, "left out the validation part, 20 examples"):
                train, test = miniqat.load(path)
            self.assertEqual((len(train), len(test)), (200, 20))


class Loops(unittest.TestCase):
    def trained(self, task, data, steps=150):
        """A session on a small network that has been quantized and trained, and its classifier."""
        net = miniqat.make_classifier("mlp", data, batch_size=20, width=0.25, task=task)
        self.assertEqual(net.task, task)
        target, loss = net.add_loss(**({"huber": 2.0} if task == "regress" else {}))
        miniqat.create_training_graph(net.graph, quantize_input=True)
        session = miniqat.Session(net.graph, seed=1)
        optimizer, batches = miniqat.Adam(0.01), miniqat.Loader(data, batch_size=20, seed=1)
        for _ in range(steps):
            images, wanted = next(batches)
            session.train_step(loss, optimizer, {net.images: images} if target is None else {net.images: images, target: wanted})
        return session, net

    def test_a_regression_from_a_loop_to_integers_in_units(self):
        train = miniqat.Dataset.of_numbers(X[:200], Y[:200]).standardised()
        test = miniqat.Dataset.of_numbers(X[200:], Y[200:]).standardised(like=train)
        session, net = self.trained("regress", train)
        evaluation = net.evaluation()
        simulation = miniqat.Session(evaluation.graph)
        simulation.restore(session.checkpoint(), "variables")
        self.assertGreater(miniqat.evaluate(simulation, evaluation, test).measures["r2"], 0.8)
        model = miniqat.convert(evaluation.graph, session.variables(), dataset=train)
        measured = miniqat.evaluate_integers(model, test)
        self.assertGreater(measured.measures["r2"], 0.8)
        self.assertEqual(model.task, "regress")
        np.testing.assert_array_equal(model.input_mean, train.mean)
        np.testing.assert_array_equal(model.output_std, train.target_std)
        again = miniqat.IntegerModel.from_bytes(model.to_miniqat())
        predicted = again.dequantize(miniqat.Engine(again).run(again.quantize(X[200:])))
        self.assertAlmostEqual(float(np.abs(predicted[:, 0] - Y[200:]).mean()), measured.measures["mae"], places=3)
        with self.assertRaisesRegex(ValueError, "numbers has the shape"):
            model.quantize(X[:, :2])
        with self.assertRaisesRegex(ValueError, "numbers holds NaN"):
            model.quantize(np.where(X == X[3, 1], np.nan, X))
        model.quantize(np.where(X == X[3, 1], np.inf, X))  # the end of the grid
        with self.assertRaisesRegex(ValueError, "task goes with dataset"):
            miniqat.convert(evaluation.graph, session.variables(), task="regress")

    def test_integers_are_measured_on_numbers_standardised_as_theirs(self):
        raw = miniqat.Dataset.of_numbers(X, Y)
        train = raw.standardised()
        session, net = self.trained("regress", train, steps=3)
        evaluation = net.evaluation()
        model = miniqat.convert(evaluation.graph, session.variables(), dataset=train)
        simulation = miniqat.Session(evaluation.graph)
        simulation.restore(session.checkpoint(), "variables")
        for data, text in ((raw, "inputs .* as they were given"),
                           (miniqat.Dataset.of_numbers(X + 1, Y).standardised(), "inputs .* other means"),
                           (miniqat.Dataset.of_numbers(X, 100 * Y + 5).standardised(), "targets .* other means")):
            with self.assertRaisesRegex(miniqat.Error, text):
                miniqat.evaluate_integers(model, data)
            with self.assertRaisesRegex(miniqat.Error, text):
                miniqat.verify(simulation, evaluation, model, data)

    def test_batches_of_numbers_stay_as_they_were(self):
        batches = miniqat.Loader(miniqat.Dataset.of_numbers(X, Y), batch_size=20)
        kept = [next(batches) for _ in range(24)]
        same = miniqat.Loader(miniqat.Dataset.of_numbers(X, Y), batch_size=20)
        for images, wanted in kept:
            again, targets = next(same)
            np.testing.assert_array_equal(images, again)
            np.testing.assert_array_equal(wanted, targets)

    def test_a_page_is_for_pictures(self):
        data = miniqat.Dataset.of_numbers(X, Y).standardised()
        session, net = self.trained("regress", data, steps=3)
        model = miniqat.convert(net.evaluation().graph, session.variables(), dataset=data)
        with self.assertRaisesRegex(miniqat.Error, "a page classifies pictures, and this model is for numbers"):
            model.to_html("numbers")

    def test_integers_have_the_names_of_the_data(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "table.csv")
            np.savetxt(path, np.column_stack([X, Y]), delimiter=",", header="a,b,c,d,yield", comments="")
            of_columns, _ = miniqat.load(path, target="yield,d")
        of_classes = miniqat.Dataset.of_numbers(X, X[:, 0] > 5, class_names=["low", "high"]).standardised()
        for task, data, names in ("regress", of_columns, ["yield", "d"]), ("classify", of_classes, ["low", "high"]):
            session, net = self.trained(task, data, steps=3)
            model = miniqat.convert(net.evaluation().graph, session.variables(), dataset=data)
            self.assertEqual(model.class_names, names)

    def test_labels_and_reconstruction(self):
        labels = miniqat.Dataset.of_numbers(X, (X > 5).astype(int)).standardised()
        session, net = self.trained("multilabel", labels)
        self.assertGreater(miniqat.evaluate_integers(
            miniqat.convert(net.evaluation().graph, session.variables(), dataset=labels), labels).measures["label_accuracy"], 0.8)
        itself = miniqat.Dataset.of_numbers(X).standardised()
        session, net = self.trained("reconstruct", itself)
        model = miniqat.convert(net.evaluation().graph, session.variables(), dataset=itself)
        self.assertEqual((model.task, model.output_mean), ("reconstruct", None))
        self.assertLess(miniqat.evaluate_integers(model, itself).measures["mse"], 0.9)


class Runs(unittest.TestCase):
    def test_a_run_keeps_its_arrays_and_is_resumed(self):
        data = miniqat.Dataset.of_numbers(X[:200], Y[:200]), miniqat.Dataset.of_numbers(X[200:], Y[200:])
        settings = dict(model="mlp", width=0.25, batch_size=20, epochs=4, threads=1, huber=2.0)
        with tempfile.TemporaryDirectory() as folder:
            whole, halves = os.path.join(folder, "whole"), os.path.join(folder, "halves")
            miniqat.train(whole, dataset=data, task="regress", float=True, **settings)

            def stop(step, steps, loss):
                if step == 13:
                    raise KeyboardInterrupt

            with self.assertRaises(KeyboardInterrupt):
                miniqat.train(halves, dataset=data, task="regress", float=True, on_step=stop, **settings)
            miniqat.train(halves, resume=True)
            first, second = (miniqat.read_safetensors(os.path.join(run, "checkpoint.safetensors")) for run in (whole, halves))
            for name in first:
                np.testing.assert_array_equal(first[name], second[name], name)
            table = miniqat.quantize(os.path.join(folder, "bits"), whole, weight_bits=8, activation_bits=8, epochs=1)
            self.assertIn("test_r2", table["rows"][0])
            asked = miniqat.predict(os.path.join(folder, "bits"), X[200:], integer=True)
            with self.assertRaisesRegex(ValueError, r"pictures holds nan at \[1,2\]"):
                miniqat.predict(os.path.join(folder, "bits"), np.where(X[200:] == X[201, 2], np.nan, X[200:]), integer=True)
            by_number = miniqat.predict(os.path.join(folder, "bits"), [0, 1], integer=True)
            self.assertEqual([one["outputs"] for one in asked[:2]], [one["outputs"] for one in by_number])
            self.assertEqual(by_number[1]["example"], 1)
            self.assertLess(np.abs(np.array([one["outputs"][0] for one in asked]) - Y[200:]).mean(), 4)

    def test_a_copy_and_a_moved_run_have_their_own_arrays(self):
        settings = dict(model="mlp", width=0.25, batch_size=20, epochs=1, threads=1, float=True)
        with tempfile.TemporaryDirectory() as folder:
            run, copy, moved = (os.path.join(folder, name) for name in ("run", "copy", "moved"))
            miniqat.train(run, dataset=miniqat.Dataset.of_numbers(X[:120], X[:120, 0] > 5), **settings)
            first = miniqat.predict(run, [0, 1, 2])
            shutil.copytree(run, copy)
            miniqat.train(run, overwrite=True, dataset=miniqat.Dataset.of_numbers(X[120:] + 1, X[120:, 0] < 5), **settings)
            self.assertEqual(miniqat.predict(copy, [0, 1, 2]), first)
            second = miniqat.predict(run, [0, 1, 2])
            self.assertNotEqual(second, first)
            os.rename(run, moved)
            self.assertEqual(miniqat.predict(moved, [0, 1, 2]), second)
            miniqat.train(moved, resume=True, epochs=2)
            miniqat.quantize(os.path.join(folder, "bits"), moved, epochs=1)

    def test_a_run_does_not_delete_what_it_reads(self):
        settings = dict(model="mlp", width=0.25, batch_size=20, epochs=1, threads=1, float=True)
        with tempfile.TemporaryDirectory() as folder:
            run = os.path.join(folder, "run")
            arrays, checkpoint = (os.path.join(run, name) for name in ("given_arrays.npz", "checkpoint.safetensors"))
            data = miniqat.Dataset.of_numbers(X, Y)
            miniqat.train(run, dataset=data, **settings)
            with self.assertRaisesRegex(miniqat.UsageError, "overwrite=True would delete .*given_arrays.npz, the data of the new run"):
                miniqat.train(run, overwrite=True, dataset=arrays, inputs="numbers", **settings)
            for start in run, checkpoint:
                with self.assertRaisesRegex(miniqat.UsageError, "overwrite=True would delete .*, which init_checkpoint reads"):
                    miniqat.train(run, overwrite=True, dataset=data, init_checkpoint=start, **settings)
            self.assertTrue(os.path.exists(arrays) and os.path.exists(checkpoint))
            miniqat.train(run, overwrite=True, dataset=data, **settings)

    def test_whole_numbers_are_predicted_where_the_task_says_so(self):
        ages = np.arange(240) % 7
        x = np.column_stack([ages / 3 - 1, X[:, 0]])
        settings = dict(model="mlp", width=0.25, batch_size=20, steps=20, threads=1, float=True)
        with tempfile.TemporaryDirectory() as folder:
            def checkpoint(name, y, **more):
                run = os.path.join(folder, name)
                miniqat.train(run, dataset=miniqat.Dataset.of_numbers(x, y, **more), task="regress", **settings)
                return run, miniqat.read_safetensors(os.path.join(run, "checkpoint.safetensors"))

            run, whole = checkpoint("whole", ages)
            for other in checkpoint("real", ages.astype(float))[1], checkpoint("asked", ages, answers="targets")[1]:
                for name in whole:
                    np.testing.assert_array_equal(whole[name], other[name], name)
            with np.load(os.path.join(run, "given_arrays.npz")) as kept:
                np.testing.assert_array_equal(kept["y_train"], ages.astype(np.float32).reshape(-1, 1))
            miniqat.train(run, resume=True, steps=30)
            data = miniqat.Dataset.of_numbers(x, ages)
            miniqat.train(os.path.join(folder, "pair"), dataset=(data, data), task="regress", **settings)
            self.assertEqual(data.classes, 7, "the data themselves stay")
            flags = miniqat.Dataset.of_numbers(x, ages > 3)
            miniqat.train(os.path.join(folder, "label"), dataset=flags, task="multilabel", **settings)
            # A class with a name is not its number.
            named = miniqat.Dataset.of_numbers(x, ages, class_names=[str(20 + age) for age in range(7)])
            with self.assertRaisesRegex(miniqat.Error, "has classes, no numbers to predict.*`answers` targets"):
                miniqat.train(os.path.join(folder, "named"), dataset=named, task="regress", **settings)
            with self.assertRaisesRegex(ValueError, "`answers` targets makes them numbers to predict"):
                miniqat.Dataset.of_numbers(x, np.stack([ages, ages], 1))
            path = os.path.join(folder, "table.csv")
            np.savetxt(path, np.column_stack([x, ages]), fmt="%g", delimiter=",", header="a,b,age", comments="")
            run = os.path.join(folder, "table")
            with self.assertRaisesRegex(miniqat.Error, "answers classes does not go with task regress"):
                miniqat.train(run, dataset=path, target="age", task="regress", answers="classes", **settings)
            miniqat.train(run, dataset=path, target="age", task="regress", **settings)
            with open(os.path.join(run, "summary.json"), encoding="utf-8") as summary:
                self.assertIn('"test_r2"', summary.read())

    def test_targets_of_pictures_are_standardised_once(self):
        images, ages = np.clip(20 * X, 0, 255).astype(np.uint8).reshape(60, 4, 4), np.arange(60) % 7
        settings = dict(model="mlp", width=0.25, task="regress", batch_size=20, steps=2, threads=1, float=True)
        with tempfile.TemporaryDirectory() as folder:
            run, path = os.path.join(folder, "run"), os.path.join(folder, "pictures.npz")
            data = miniqat.Dataset(images, ages)
            miniqat.train(run, dataset=(data, data), **settings)
            with open(os.path.join(run, "dataset.json"), encoding="utf-8") as recorded:
                self.assertAlmostEqual(json.load(recorded)["target_mean"][0], ages.mean(), places=4)
            miniqat.train(run, resume=True, steps=3)
            np.savez(path, x_train=images, y_train=Y[:60], x_test=images, y_test=Y[:60])
            train, test = miniqat.load(path)
            self.assertIsNotNone(train.target_mean)
            again = os.path.join(folder, "again")
            miniqat.train(again, dataset=(train, test), **settings)
            with open(os.path.join(again, "dataset.json"), encoding="utf-8") as recorded:
                self.assertAlmostEqual(json.load(recorded)["target_mean"][0], Y[:60].mean(), places=4)

    def test_groups_part_the_data_for_good(self):
        with tempfile.TemporaryDirectory() as folder:
            path, run = os.path.join(folder, "table.csv"), os.path.join(folder, "run")
            np.savetxt(path, np.column_stack([X, np.arange(240) % 14, Y]), delimiter=",", header="a,b,c,d,who,yield", comments="")
            data, _ = miniqat.load(path, target="yield", group_by="who", no_standardise=True)
            settings = dict(dataset=data, model="mlp", width=0.25, batch_size=20, steps=2, threads=1, float=True)
            with self.assertRaisesRegex(ValueError, "cannot keep the groups"):
                miniqat.train(run, validation=20, **settings)
            miniqat.train(run, **settings)
            with np.load(os.path.join(run, "given_arrays.npz")) as kept:
                train, test = ({tuple(row) for row in kept[name]} for name in ("x_train", "x_test"))
            who = {tuple(row.astype(np.float32)): int(i) % 14 for i, row in enumerate(X)}
            self.assertFalse({who[row] for row in train} & {who[row] for row in test})

    @staticmethod
    def hums(folder):
        """Writes tones of a quarter of a second; returns their paths."""
        files = []
        for number in range(8):
            files.append(os.path.join(folder, "hums", f"normal_id_00_{number}.wav"))
            os.makedirs(os.path.dirname(files[-1]), exist_ok=True)
            with wave.open(files[-1], "wb") as sound:
                sound.setnchannels(1), sound.setsampwidth(2), sound.setframerate(16000)
                sound.writeframes((8000 * np.sin(np.arange(4000) * (0.1 + number / 50))).astype("<i2").tobytes())
        return files

    def test_sounds_are_varied_as_asked(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.dirname(self.hums(folder)[0])
            as_it_is, _ = miniqat.load(path, frames=3)
            varied, _ = miniqat.load(path, frames=3, gain_db=20.0, no_standardise=True)
            batches = [next(miniqat.Loader(data, batch_size=8, shuffle=False))[0] for data in (as_it_is, varied)]
            np.testing.assert_array_equal(batches[0], as_it_is.images[:8])
            self.assertGreater(np.abs(batches[1] - varied.images[:8]).mean(), 0.1)
            for keyword, value, limit in (("gain_db", float("nan"), "be in 0..60"), ("gain_db", 1e6, "be in 0..60"),
                                          ("pad_to", -5, "not be negative")):
                with self.subTest(keyword, value=value), self.assertRaisesRegex(miniqat.UsageError, f"^{keyword} must {limit}"):
                    miniqat.load(path, **{keyword: value})
            with self.assertRaisesRegex(ValueError, "sounds that are varied"):
                miniqat.train(os.path.join(folder, "run"), dataset=varied, model="mlp", no_standardise=True)
            windows, _ = miniqat.load(path, frames=3, no_standardise=True)
            with self.assertRaisesRegex(ValueError, "windows of recordings"):
                miniqat.train(os.path.join(folder, "run"), dataset=windows, model="mlp", no_standardise=True)

    def test_sounds_of_several_windows_get_an_answer_each(self):
        with tempfile.TemporaryDirectory() as folder:
            files = self.hums(folder)
            run = os.path.join(folder, "run")
            miniqat.train(run, dataset=os.path.dirname(files[0]), frames=3, model="mlp", width=0.25, batch_size=8, steps=2,
                          threads=1, float=True)
            first, second = miniqat.predict(run, [files[0], files[5]])
            self.assertEqual((first["example"], second["example"]), (files[0], files[5]))
            self.assertEqual(first["windows"], 4)
            self.assertGreater(second["error"], 0)
            self.assertEqual(miniqat.predict(run, files[5]), [second])

    def test_anomalies_of_a_data_set_with_classes(self):
        far = np.concatenate([X[:40], X[40:80] * 4])
        data = miniqat.Dataset.of_numbers(X[:200]), miniqat.Dataset.of_numbers(far, np.repeat([0, 1], 40))
        with tempfile.TemporaryDirectory() as folder:
            run = os.path.join(folder, "run")
            miniqat.train(run, dataset=data, model="autoencoder", width=0.25, batch_size=20, epochs=3, threads=1, float=True)
            notes = miniqat.report(run, os.path.join(folder, "page.html"))
            self.assertEqual(notes, [])
            with open(os.path.join(folder, "page.html"), encoding="utf-8") as page:
                self.assertIn('"auc"', page.read())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
