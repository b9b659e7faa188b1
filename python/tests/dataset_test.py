"""What Dataset, Engine and feeds take, what they refuse, and that they keep copies."""

import sys
import unittest
import warnings

import numpy as np

import miniqat


def pictures(count=6, dtype=np.uint8):
    return np.linspace(0, 255, count * 8 * 8, dtype=np.uint8).reshape(count, 8, 8, 1).astype(dtype)


LABELS = np.array([0, 1, 2, 0, 1, 2])


def a_session():
    graph = miniqat.Graph()
    x = graph.add("Placeholder", "x", shape=[2, 4])
    graph.outputs = graph.add("Relu", "y", x)
    return miniqat.Session(graph)


class Taken(unittest.TestCase):
    def setUp(self):
        warnings.simplefilter("error")

    def tearDown(self):
        warnings.resetwarnings()

    def test_bytes_and_labels_of_any_integers(self):
        for dtype in np.uint8, np.int64, np.uint16, np.float64:
            for labels in LABELS, LABELS.astype(np.int8), LABELS.reshape(6, 1), list(LABELS), LABELS.astype(">i4"):
                with self.subTest(dtype=dtype, labels=labels):
                    made = miniqat.Dataset(pictures(dtype=dtype), labels)
                    np.testing.assert_array_equal(made.images, pictures())
                    np.testing.assert_array_equal(made.labels, LABELS)
                    self.assertEqual((made.classes, made.labels.dtype, made.images.dtype), (3, np.int32, np.uint8))
        strided = np.repeat(pictures(12), 2, axis=2)[::2, :, ::2]
        np.testing.assert_array_equal(miniqat.Dataset(strided, LABELS).images, pictures(12)[::2])

    def test_floats_become_bytes_as_those_of_files_do(self):
        exact = pictures().astype(np.float32) / 255
        made = miniqat.Dataset(exact, LABELS)
        np.testing.assert_array_equal(made.images, pictures())
        self.assertEqual((made.scale, made.zero_point), (np.float32(1 / 255), 0))
        with self.assertWarnsRegex(UserWarning, r"images: floats from 0 to 1 become bytes.*of 256 levels are in use"):
            rounded = miniqat.Dataset(np.linspace(0, 1, 6 * 64).reshape(6, 8, 8), LABELS)
        self.assertEqual(rounded.images.shape, (6, 8, 8, 1))
        with self.assertWarnsRegex(UserWarning, "floats from 0 to 1 become bytes"):
            np.testing.assert_array_equal(miniqat.Dataset(exact.astype(np.float16), LABELS).images, pictures())
        with self.assertWarnsRegex(UserWarning, "use 2 of 256 levels, from 0 to 1: were they divided once too often"):
            miniqat.Dataset((pictures() > 100).astype(np.uint8), LABELS)
        np.testing.assert_array_equal(miniqat.Dataset(pictures() > 100, LABELS).images, (pictures() > 100) * 255)

    def test_one_hot_labels(self):
        rows = np.eye(5)[LABELS]
        for dtype in np.float32, np.int64, bool:
            made = miniqat.Dataset(pictures(), rows.astype(dtype))
            np.testing.assert_array_equal(made.labels, LABELS)
            self.assertEqual(made.classes, 5)

    def test_classes(self):
        self.assertEqual(miniqat.Dataset(pictures(), LABELS, classes=7).classes, 7)
        named = miniqat.Dataset(pictures(), LABELS, class_names=["a", "b", "c", "d"])
        self.assertEqual((named.classes, named.class_names), (4, ["a", "b", "c", "d"]))


class Refused(unittest.TestCase):
    def refused(self, kind, text, *arguments, **keywords):
        with self.subTest(text), self.assertRaisesRegex(kind, text):
            miniqat.Dataset(*arguments, **keywords)

    def test_values_that_do_not_fit(self):
        wide = pictures().astype(np.uint16)
        wide[2, 0, 0, 0] = 300
        self.refused(ValueError, r"images holds 300 at element 128; .* in \[0, 255\]", wide, LABELS)
        self.refused(ValueError, "images holds -0.5 .* scale and zero_point", np.full((6, 8, 8), -0.5), LABELS)
        self.refused(ValueError, "images holds nan", np.full((6, 8, 8), np.nan), LABELS)
        self.refused(ValueError, "labels gives example 1 the label 4294967296", pictures(), LABELS + (LABELS == 1) * (2**32 - 1))
        self.refused(ValueError, "labels.*18446744073709551615", pictures(), np.full(6, 2**64 - 1, np.uint64))
        self.refused(ValueError, r"labels\[0\] is -1, but classes are counted from 0 on", pictures(), LABELS - 1)
        self.refused(ValueError, r"labels\[3\] is -9, but there are 3 classes, from 0 to 2", pictures(), [0, -1, 2, -9, 1, 2], classes=3)
        self.refused(ValueError, r"labels\[0\] is -1, but class_names has 2 classes", pictures(), LABELS - 1, class_names=["a", "b"])
        self.refused(ValueError, r"labels\[2\] is 2, but there are 2 classes, from 0 to 1", pictures(), LABELS, classes=2)
        self.refused(ValueError, r"labels\[2\] is 2, but class_names has 1 class, from 0 to 0", pictures(), LABELS, class_names=["a"])
        self.refused(ValueError, "class_names has 3 names for 4 classes", pictures(), LABELS, 4, class_names=["a", "b", "c"])
        self.refused(ValueError, "class_names: .* has control characters", pictures(), LABELS, class_names=["a", "b", "c\n", "d"])
        self.refused(ValueError, r"row 0 is not one 1 among zeros.*labels.argmax\(axis=1\)", pictures(), np.full((6, 3), 0.3))
        for scale in np.nan, np.inf, 0, -1, 1e-300, 1e300:
            self.refused(ValueError, "scale must be a positive number", pictures(), LABELS, scale=scale)
        for zero_point in -1, 256:
            self.refused(ValueError, "zero_point", pictures(), LABELS, zero_point=zero_point)
        for classes in 0, -1, 65537, 2**40:
            self.refused(ValueError, "classes", pictures(), LABELS, classes=classes)

    def test_types_and_shapes(self):
        self.refused(TypeError, "labels must be integers, not float64: labels.astype", pictures(), LABELS * 1.0)
        self.refused(TypeError, "images must be an array or numbers, not NoneType", None, LABELS)
        self.refused(TypeError, "images must be an array or numbers, not an array of <U1", np.array(["a"]), LABELS)
        self.refused(ValueError, r"labels is for 5", pictures(), LABELS[:5])
        masked = np.ma.masked_array(pictures(), pictures() > 100)
        for images in masked, list(masked), np.ma.masked_array(pictures()):
            self.refused(TypeError, "images is a masked array, whose mask would be lost", images, LABELS)
        self.refused(TypeError, "labels is a masked array", pictures(), np.ma.masked_equal(LABELS, 1))
        with self.assertRaisesRegex(TypeError, "is a masked array, whose mask would be lost"):
            a_session().run("y", {"x": np.ma.masked_array(np.zeros((2, 4), np.float32), False)})
        self.refused(ValueError, r"images has the shape \[6,64\].*images.reshape", pictures().reshape(6, 64), LABELS)
        self.refused(ValueError, r"channels come last here: images.transpose\(0, 2, 3, 1\)",
                     np.zeros((6, 3, 8, 8), np.uint8), LABELS)
        self.refused(ValueError, "images has the shape", pictures()[:0], LABELS[:0])

    def test_feeds_and_engine(self):
        session = a_session()
        with self.assertRaisesRegex(ValueError, 'array for "x" holds numbers that are too large for float32'):
            session.run("y", {"x": np.full((2, 4), 1e300)})
        with self.assertRaisesRegex(ValueError, 'array for "x" holds integers that float32 does not hold exactly'):
            session.run("y", {"x": np.full((2, 4), 2**24 + 1)})
        np.testing.assert_array_equal(session.run("y", {"x": np.full((2, 4), 2**25)}), np.full((2, 4), 2.0**25))
        with self.assertRaisesRegex(TypeError, 'array for "x" must be an array'):
            session.run("y", {"x": np.full((2, 4), 1j)})
        with self.assertRaisesRegex(ValueError, "quantization_step must not be negative"):
            session.quantization_step = -5
        other = a_session()
        with self.assertRaisesRegex(miniqat.Error, '"y" is of another graph'):
            session.run(other.graph.outputs[0])

    def test_engine_takes_bytes(self):
        graph = miniqat.Graph()
        x = graph.add("Placeholder", "x", shape=[1, 8, 8, 1])
        flat = graph.add("Reshape", "flat", x, shape=[-1, 64])
        weights = graph.add("Variable", "w", shape=[64, 3], initializer={"type": "he_normal"})
        graph.outputs = graph.add("MatMul", "xw", [flat, weights])
        miniqat.create_eval_graph(graph)
        session = miniqat.Session(graph)
        miniqat.calibrate(session, [{"x": pictures(1) / 255}])
        model = miniqat.convert(graph, session.variables())
        engine, expected = miniqat.Engine(model), None
        for dtype in np.uint8, np.uint16, np.int64:
            found = engine.run(pictures(dtype=dtype))
            expected = found if expected is None else expected
            np.testing.assert_array_equal(found, expected)
        with self.assertRaisesRegex(ValueError, "images holds 256, which uint8 does not"):
            engine.run(pictures(dtype=np.uint16) + 1)
        with self.assertRaisesRegex(TypeError, "images must be integers of the type uint8, not float64"):
            engine.run(pictures() / 255)
        with self.assertRaisesRegex(ValueError, "input_scale"):
            miniqat.convert(graph, session.variables(), input_scale=np.nan)
        with self.assertRaisesRegex(miniqat.Error, "label 3, the network tells 3 classes apart"):
            miniqat.evaluate_integers(model, miniqat.Dataset(pictures(), LABELS + 1))


class Copies(unittest.TestCase):
    def test_arrays_changed_later_do_not_matter(self):
        images, labels = pictures(), LABELS.astype(np.int32)
        made = miniqat.Dataset(images, labels)
        images[:], labels[:] = 7, 1 << 30
        np.testing.assert_array_equal(made.labels, LABELS)
        np.testing.assert_array_equal(made.images, pictures())
        for view in made.images, made.labels:
            with self.assertRaises(ValueError):
                view[0] = 1
            with self.assertRaises(ValueError):
                view.setflags(write=True)

    def test_views_outlive_the_data_set(self):
        made = miniqat.Dataset(pictures(), LABELS)
        images = made.images
        del made
        np.testing.assert_array_equal(images, pictures())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
