"""The Python module against the program whose path is the first argument."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import miniqat

PROGRAM = sys.argv.pop(1)


def address(array):
    return array.__array_interface__["data"][0]


class FakeQuant(unittest.TestCase):
    def test_values_and_gradient_at_2_bits(self):
        x = np.array([-2, -0.4, 0, 0.5, 2], np.float32)
        y = miniqat.fake_quant(x, -1, 2, bits=2)
        np.testing.assert_array_equal(y, np.array([-1, 0, 0, 1, 2], np.float32))
        d_x, d_min, d_max = miniqat.fake_quant_gradient(np.full(5, 3, np.float32), np.append(x[:4], 5), -1, 2, bits=2)
        np.testing.assert_array_equal(d_x, [0, 3, 3, 3, 0])
        self.assertEqual((d_min, d_max), (3, 3))


class Memory(unittest.TestCase):
    def test_dataset_uses_the_array(self):
        images, labels = np.zeros((4, 8, 8, 1), np.uint8), np.arange(4, dtype=np.int32)
        dataset = miniqat.Dataset(images, labels)
        self.assertEqual(address(dataset.images), address(images))
        with self.assertRaises(ValueError):
            dataset.images[0] = 1

    def test_variable_is_one_view(self):
        train, _ = miniqat.load("synthetic", train_size=256, test_size=64)
        session = miniqat.Session(miniqat.make_classifier("lenet5", train, batch_size=8).graph)
        name, first = next(iter(session.variables().items()))
        self.assertEqual(address(first), address(session.variable(name)))
        del session
        self.assertTrue(np.isfinite(first).all())


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

    def test_errors_are_exceptions(self):
        with self.assertRaisesRegex(miniqat.Error, "backend"):
            miniqat.Session(miniqat.Graph(), backend="quick")


if __name__ == "__main__":
    unittest.main()
