"""Exports under a German locale, which Debian's package `locales` has the sources of."""

import ctypes
import locale
import os
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import miniqat


class German(unittest.TestCase):
    def test_exports_are_the_same(self):
        graph = miniqat.Graph()
        x = graph.add("Placeholder", "x", shape=[1, 4])
        graph.outputs = graph.add("MatMul", "y", [x, graph.add("Variable", "w", shape=[4, 3], initializer={"type": "he_normal"})])
        miniqat.create_eval_graph(graph)
        session = miniqat.Session(graph)
        miniqat.calibrate(session, [{"x": np.eye(1, 4)}])
        model = miniqat.convert(graph, session.variables())

        def texts():
            again = miniqat.Graph.from_json(graph.to_json())
            return [*model.to_c("m", np.zeros((1, 4), np.uint8)), model.to_json(), model.to_html("m"), again.to_json(),
                    repr(miniqat.grid(0, 0.7)), repr(model)]
        before = texts()
        with tempfile.TemporaryDirectory() as folder:
            made = subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", f"{folder}/de_DE.UTF-8"], capture_output=True)
            if made.returncode != 0:
                self.skipTest("localedef makes no de_DE (Debian's package locales)")
            os.environ["LOCPATH"] = folder
            locale.setlocale(locale.LC_ALL, "de_DE.UTF-8")
            try:
                own = ctypes.create_string_buffer(8)
                ctypes.CDLL(None).snprintf(own, 8, b"%.1f", ctypes.c_double(0.5))
                self.assertEqual(own.value, b"0,5")
                self.assertEqual(texts(), before)
            finally:
                locale.setlocale(locale.LC_ALL, "C")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
