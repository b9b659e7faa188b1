"""Everything public with wrong types, shapes, lifetimes and threads: an exception that says so is right, a crash is not.

Without arguments but the program: each seed runs in a process of its own, and one that dies is reported with its last call.
    fuzz_test.py --seed N --seconds S    runs one here
"""

import faulthandler
import gc
import inspect
import os
import pathlib
import random
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import warnings

import numpy as np

import miniqat

# scripts/nightly takes longer.
LONG = "MINIQAT_ALL_CASES" in os.environ
SEEDS = (1, 2, 3, 4) if LONG else (1, 2)
SECONDS = 4 if LONG else 2
# What a wrong argument may raise. OSError and KeyError come from paths and dictionaries of the caller's.
RIGHT = (TypeError, ValueError, miniqat.Error, MemoryError, OSError, StopIteration, AttributeError, OverflowError)


def objects(folder):
    """What a program has: objects of every class, and arrays."""
    images = (np.arange(12 * 64) % 256).astype(np.uint8).reshape(12, 8, 8, 1)
    labels = (np.arange(12) % 3).astype(np.int32)
    dataset = miniqat.Dataset(images, labels)
    graph = miniqat.Graph()
    x = graph.add("Placeholder", "x", shape=[4, 8, 8, 1])
    flat = graph.add("Reshape", "flat", x, shape=[-1, 64])
    weights = graph.add("Variable", "w", shape=[64, 3], initializer={"type": "he_normal"})
    graph.outputs = graph.add("MatMul", "xw", [flat, weights])
    net = miniqat.find_classifier(graph)
    given, loss = net.add_loss()
    session = miniqat.Session(net.graph)
    evaluation = graph.clone()
    report = miniqat.create_eval_graph(evaluation)
    calibrated = miniqat.Session(evaluation)
    miniqat.calibrate(calibrated, [{"x": images[:4] / 255}])
    model = miniqat.convert(evaluation, calibrated.variables())
    found = miniqat.evaluate_integers(model, dataset)
    made = [dataset, graph, x, weights, net, given, loss, session, evaluation, report, calibrated, model, found,
            miniqat.Engine(model), miniqat.Sgd(0.1), miniqat.Adam(), miniqat.Schedule(), miniqat.grid(0, 1),
            miniqat.Loader(dataset, batch_size=4), miniqat.Bytes(images[:4]), session.checkpoint(), session.variables(), images, labels,
            model.to_miniqat(), graph.to_json(), [{"x": images[:4] / 255}], {net.images: images[:4], given: labels[:4]},
            {net.images: miniqat.Bytes(images[:4]), given: labels[:4]}]
    session.save(folder / "a.safetensors")
    (folder / "model.miniqat").write_bytes(model.to_miniqat())
    (folder / "graph.json").write_text(graph.to_json())
    (folder / "net.onnx").write_bytes(miniqat.onnx_float(graph, session.variables()))
    return made


class Fuzzer:
    def __init__(self, seed, folder):
        self.random, self.folder = random.Random(seed), folder
        self.objects = objects(folder)
        self.calls, self.raised = 0, {}
        os.chdir(folder)

    def array(self):
        shape = tuple(self.random.choice((0, 1, 2, 3, 4, 8, 12)) for _ in range(self.random.randrange(6)))
        dtype = self.random.choice(("u1", "i1", "u2", "i4", "i8", "u8", "f2", "f4", "f8", ">f4", "c8", "?", "U3", "O", "M8[s]"))
        array = np.zeros(shape, dtype)
        if dtype not in ("U3", "O", "M8[s]") and self.random.random() < 0.7:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                array = (np.random.default_rng(self.calls).normal(0, self.random.choice((1, 300, 1e20)), shape)).astype(dtype)
        return self.random.choice((lambda: array, lambda: array.T, lambda: np.asfortranarray(array), lambda: array[..., ::2]
                                   if array.ndim else array, lambda: array.tolist()))()

    def value(self, depth=0):
        pick = self.random.random()
        if pick < 0.35:
            return self.random.choice(self.objects)
        if pick < 0.5:
            return self.array()
        if pick < 0.6 and depth < 3:
            items = [self.value(depth + 1) for _ in range(self.random.randrange(4))]
            return self.random.choice((list, tuple, lambda of: {str(i): item for i, item in enumerate(of)},
                                       lambda of: (item for item in of)))(items)
        of = self.random.choice([one for one in vars(miniqat).values() if isinstance(one, type)])
        loop = []
        loop.append(loop)
        return self.random.choice((
            None, True, False, 0, 1, 2, 3, 8, -1, 2**31, -2**31, 2**62, -2**63, 2**64, 0.0, 0.5, -1.5, 1e300, float("nan"),
            float("inf"), "", "x", "xw", "w", "flat", "x:1", "x:-1", "Relu", "MatMul", "Conv2D", "FakeQuant", "\0", "\ud800", "a/b",
            "ä" * 300, "synthetic", "lenet5", "minmax", "exact", "graph.json", "net.onnx", "a.safetensors", "model.miniqat", ".",
            b"", b"\xff", b"x" * 100, self.folder, self.folder / "a.safetensors", object(), type, of, of.__new__(of), loop,
            lambda *_: None, range(3), {1}, np.float32(1), np.int64(-1), [8, 8, 8, 1], (0.1, 3), {"weight_bits": 4}))

    def of_type(self, annotation):
        """A value of the type that a signature asks for, or nearly."""
        choose = self.random.choice
        for one in self.random.sample(self.objects, len(self.objects)):
            if type(one).__module__ == "miniqat" and re.search(rf"\b{type(one).__name__}\b", annotation):
                return one
        if "Output" in annotation:
            return choose(("x", "xw", "flat", "w", ["x", "w"]))
        if "ArrayLike" in annotation:
            return choose((self.array, lambda: choose([one for one in self.objects if isinstance(one, np.ndarray)] or [0])))()
        if "dict" in annotation or "Iterable" in annotation or "iterable" in annotation:
            return choose([one for one in self.objects if isinstance(one, (dict, list))] or [{}])
        if "List[str]" in annotation:
            return choose(([], ["a"], ["a", "b", "c"]))
        if "Tuple" in annotation or "List" in annotation:
            return choose(([], (0.5, 3), [1.0, 2.0, 3.0], [float("nan")] * 3, [2, 8]))
        if "bool" in annotation:
            return choose((True, False))
        if "int" in annotation:
            return choose((0, 1, 2, 3, 4, 8, 12, -1, 2**31 - 1, 2**31, 2**40, -2**63, 2**63 - 1))
        if "float" in annotation:
            return choose((0.0, 0.5, 1.0, -1.0, 1e-300, 1e30, 1e300, float("nan"), float("inf"), 99.9))
        if "PathLike" in annotation:
            return choose((self.folder, *self.folder.glob("*.*"), "nowhere/at all", ""))
        if "str" in annotation:
            return choose(("x", "w", "xw", "y", "lenet5", "", "exact", "by_name", "mse", "fast", "cosine", "Relu", "Square", "fixed"))
        return self.value()

    def arguments(self, call):
        """By chance what the signature asks for, or fewer, or more, or others."""
        line = (inspect.getdoc(call) or "").split("\n")[0]
        wanted = re.findall(r"(\w+): ([^=]*?)(?: = [^,]*)?(?=, \w+: |, \*|$)", line.partition("(")[2].rpartition(") ->")[0])
        wanted = [(name, annotation) for name, annotation in wanted if name != "self"]
        right = self.random.choice((0.5, 0.9, 1.0))
        values = [self.of_type(annotation) if self.random.random() < right else self.value() for _, annotation in wanted]
        positional = values[:self.random.randrange(len(values) + 1)]
        rest = list(zip(wanted, values))[len(positional):]
        keywords = {name: value for (name, _), value in rest if self.random.random() < 0.8}
        if self.random.random() < 0.1:
            positional.append(self.value())
        if self.random.random() < 0.2:
            keywords[self.random.choice(("bits", "weight_bits", "shape", "seed", "dtype", "steps", "x"))] = self.value()
        return positional, keywords

    def call(self, what, call, positional, keywords):
        self.calls += 1
        with open("last_call", "w") as file:
            file.write(what)
        try:
            result = call(*positional, **keywords)
            if inspect.isgenerator(result):
                result = None
            if self.random.random() < 0.05 and result is not None:
                self.objects[self.random.randrange(len(self.objects))] = result
        except RIGHT as error:
            self.raised[type(error).__name__] = self.raised.get(type(error).__name__, 0) + 1
        except RecursionError:
            pass

    def step(self):
        if self.random.random() < 0.4:
            functions = [(name, of) for name, of in vars(miniqat).items() if callable(of) and name not in TOO_LONG]
            name, of = self.random.choice(functions)
            positional, keywords = self.arguments(of.__init__ if isinstance(of, type) else of)
            self.call(name, of, positional, keywords)
            return
        one = self.random.choice(self.objects)
        members = [name for name in dir(type(one)) if type(one).__module__ == "miniqat" and
                   (not name.startswith("__") or name in ("__len__", "__repr__", "__next__", "__init__"))]
        if not members:
            return
        name = self.random.choice(members)
        member = getattr(type(one), name)
        what = f"{type(one).__name__}.{name}"
        if isinstance(member, property):
            self.call(what, member.fget, [one], {})
            if member.fset:
                self.call(what + " =", member.fset, [one, self.value()], {})
            return
        positional, keywords = self.arguments(member)
        owner = one if self.random.random() < 0.9 else self.value()
        self.call(what, member, [owner, *positional], keywords)

    def run_short(self):
        """train, with settings of its own that end soon."""
        out = self.folder / f"run{self.calls}"
        self.call("train", miniqat.train, [out], {"steps": 1, "batch_size": 4, "dataset": self.value(), "threads": 1, "save_every": "1",
                                                  self.random.choice(("seed", "model", "scope", "bits_config", "ema_decay",
                                                                      "report", "on_step", "validation")): self.value()})


# They train or measure for as long as they are asked to, or change the process: run_short() is for the first.
TOO_LONG = {"train", "quantize", "sensitivity", "load", "set_thread_count"}


def run(seed, seconds):
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as name:
        miniqat.set_thread_count(1)
        fuzzer = Fuzzer(seed, pathlib.Path(name))
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            # Several threads on the same objects.
            steps = [threading.Thread(target=safely, args=(fuzzer, end)) for _ in range(fuzzer.random.choice((1, 1, 3)))]
            for thread in steps:
                thread.start()
            for thread in steps:
                thread.join()
            safely(fuzzer, end, fuzzer.run_short, 1)
            gc.collect()
            if fuzzer.random.random() < 0.5:
                fuzzer.objects = objects(fuzzer.folder)
        print(f"seed {seed}: {fuzzer.calls} calls, {fuzzer.raised}")
        os.chdir("/")
        # Exceptions that are no answer to a wrong argument.
        for what, error in WRONG:
            print(f"WRONG {what}: {type(error).__name__}: {error}"[:600])
    return 1 if WRONG else 0


WRONG = []


def safely(fuzzer, end, step=None, times=60):
    for _ in range(times):
        if time.monotonic() > end:
            return
        try:
            (step or fuzzer.step)()
        except Exception as error:
            WRONG.append(((fuzzer.folder / "last_call").read_text(), error))


class Fuzz(unittest.TestCase):
    def test_nothing_crashes(self):
        for seed in SEEDS:
            with self.subTest(seed=seed), tempfile.TemporaryDirectory() as folder:
                done = subprocess.run([sys.executable, __file__, "--seed", str(seed), "--seconds", str(SECONDS)],
                                      capture_output=True, text=True, timeout=120, env=os.environ | {"TMPDIR": folder})
                last = next(pathlib.Path(folder).glob("*/last_call"), None)
                self.assertEqual(done.returncode, 0, f"after {last and last.read_text()}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
                calls = int(re.search(r"(\d+) calls", done.stdout)[1])
                self.assertGreater(calls, 100, done.stdout)


if __name__ == "__main__":
    if "--seed" in sys.argv:
        sys.exit(run(int(sys.argv[2]), float(sys.argv[4])))
    unittest.main(argv=sys.argv[:1])
