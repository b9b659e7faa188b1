"""Objects without __init__, threads, and the end of the interpreter."""

import subprocess
import sys
import tempfile
import threading
import unittest

import numpy as np

import miniqat

NET = """
import numpy as np, miniqat, threading, time
graph = miniqat.Graph()
x = graph.add("Placeholder", "x", shape=[256, 256])
w = graph.add("Variable", "w", shape=[256, 256], initializer={"type": "he_normal"})
graph.add("MatMul", "xw", [x, w])
labels = graph.add("Placeholder", "labels", shape=[256], dtype="int32")
loss = graph.add("SoftmaxCrossEntropy", "loss", ["xw", labels])
session = miniqat.Session(graph)
feeds = {"x": np.ones((256, 256), np.float32), "labels": np.zeros(256, np.int32)}
def steps():
    while True:
        session.train_step(loss, miniqat.Sgd(0.0), feeds)
"""


def in_python(program, timeout=60):
    with tempfile.TemporaryDirectory() as folder:
        return subprocess.run([sys.executable, "-c", program, folder], capture_output=True, text=True, timeout=timeout)


class Unfilled(unittest.TestCase):
    """X.__new__(X) of every class."""

    def test_every_use_is_a_type_error(self):
        classes = [of for of in vars(miniqat).values() if isinstance(of, type) and not issubclass(of, Exception)]
        self.assertGreater(len(classes), 12)
        for of in classes:
            bare = of.__new__(of)
            for name in dir(of):
                if name.startswith("__") and (name not in ("__len__", "__iter__", "__next__", "__repr__") or
                                              not any(name in vars(base) for base in of.__mro__[:-1])):
                    continue
                if name.startswith("_pybind11"):
                    continue
                with self.subTest(f"{of.__name__}.{name}"):
                    with self.assertRaisesRegex(TypeError, rf"{of.__name__}.__init__\(\) was not called|incompatible|needs the argument|must be an array"):
                        member = getattr(of, name)
                        member.fget(bare) if isinstance(member, property) else member(bare)

    def test_as_an_argument(self):
        bare = {name: getattr(miniqat, name).__new__(getattr(miniqat, name))
                for name in ("Graph", "Session", "Dataset", "Classifier", "IntegerModel", "Output")}
        uses = {"Graph": [miniqat.Session, miniqat.create_training_graph, miniqat.find_classifier],
                "Session": [miniqat.ranges, lambda of: miniqat.calibrate(of, [])],
                "Dataset": [miniqat.Loader, lambda of: miniqat.make_classifier("lenet5", of),
                            lambda of: miniqat.train("unused", dataset=of)],
                "IntegerModel": [miniqat.Engine],
                "Output": [lambda of: miniqat.Graph().add("Relu", "y", of)]}
        for name, calls in uses.items():
            for call in calls:
                with self.subTest(name), self.assertRaisesRegex(TypeError, f"{name}.__init__"):
                    call(bare[name])

    def test_a_derived_class_that_forgets_it(self):
        class Forgets(miniqat.Session):
            def __init__(self):
                self.seen = self.step

        with self.assertRaisesRegex(TypeError, "Forgets.__init__"):
            Forgets()


class Nothing(unittest.TestCase):
    """None in the place of a graph."""

    def test_none_is_no_graph(self):
        for use in (miniqat.find_classifier, miniqat.Session, lambda none: miniqat.Graph.to_json(none)):
            with self.assertRaises(TypeError):
                use(None)


class Emptied(unittest.TestCase):
    """A classifier whose graph has lost its outputs."""

    def test_copies_of_a_graph_without_outputs_are_errors(self):
        net = miniqat.make_classifier("lenet5", miniqat.load("synthetic", train_size=10, test_size=10)[0], batch_size=2)
        net.graph.outputs = []
        for copy in (net.without_loss, net.evaluation):
            with self.assertRaisesRegex(miniqat.Error, "no outputs any more"):
                copy()
        for use in (net.add_loss, lambda: net.logits):
            with self.assertRaisesRegex(miniqat.Error, "must name the logits"):
                use()


class Rewritten(unittest.TestCase):
    """A classifier whose graph has been rewritten in place."""

    def test_its_logits_are_the_graphs_first_output(self):
        data = miniqat.load("synthetic", train_size=20, test_size=10)[0]
        net = miniqat.make_classifier("lenet5", data, batch_size=2)
        former = net.logits.name
        net.graph.outputs = net.graph.add("Relu", "other", net.logits)
        self.assertEqual(net.logits.name, "other")
        miniqat.create_training_graph(net.graph, weight_bits=4)
        self.assertEqual(net.logits.name, net.graph.outputs[0].name)
        self.assertNotEqual(net.logits.name, former)
        session = miniqat.Session(net.graph)
        images = data.images[:2].astype(np.float32) * np.float32(data.scale)
        seen = session.run(net.logits, {net.images: images})
        np.testing.assert_array_equal(seen, session.run(net.graph.outputs[0], {net.images: images}))
        self.assertEqual(miniqat.evaluate(session, net, data).examples, 20)
        net.add_loss()


class Threads(unittest.TestCase):
    def test_one_loader_in_several(self):
        images = np.arange(64 * 16, dtype=np.uint16).reshape(64, 4, 4, 1) % 251
        batches = miniqat.Loader(miniqat.Dataset(images, np.arange(64) % 4), batch_size=8)
        found, failures = [], []

        def take():
            try:
                for _ in range(100):
                    found.append(next(batches)[1].sum())
            except Exception as error:
                failures.append(error)
        threads = [threading.Thread(target=take) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        self.assertEqual(len(found), 400)
        self.assertEqual(sum(found), 50 * (np.arange(64) % 4).sum())  # 50 epochs

    def test_feeds_that_another_thread_replaces(self):
        done = in_python(NET + """
def busy():
    for _ in range(1000):
        session.run("xw", {"x": np.ones((256, 256), np.float32)})
thread = threading.Thread(target=busy)
def replace():
    while thread.is_alive():
        feeds["x"] = np.full((256, 256), 7, np.float32)
        feeds["labels"] = np.ones(256, np.int32)
        [np.zeros((256, 256), np.float32) for _ in range(2)]
other = threading.Thread(target=replace)
thread.start()
other.start()
while thread.is_alive():
    session.run(loss, feeds)
    session.run(["xw", loss], feeds)
other.join()
print("done")
""")
        self.assertEqual((done.returncode, done.stderr, done.stdout), (0, "", "done\n"))

    def test_a_loader_after_a_fork_is_an_error(self):
        done = in_python("""
import miniqat, os, signal, warnings
train, _ = miniqat.load("synthetic", train_size=64, test_size=10)
batches = miniqat.Loader(train, batch_size=8)
# Since 3.12 Python warns of a fork beside threads: the Loader has one, and what a fork does to it is asked here.
warnings.simplefilter("ignore", DeprecationWarning)
child = os.fork()
if child == 0:
    signal.alarm(20)
    try:
        for _ in range(9):
            next(batches)
    except miniqat.Error as error:
        print(error)
    next(miniqat.Loader(train, batch_size=8))
    raise SystemExit
print(os.waitpid(child, 0)[1], len(next(batches)))
""")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("this Loader is of another process", done.stdout)
        self.assertTrue(done.stdout.endswith("0 2\n"), done.stdout)

    def test_names_of_a_model_change_while_it_is_written(self):
        done = in_python(NET + """
float_graph = miniqat.Graph()
y = float_graph.add("MatMul", "xw", [float_graph.add("Placeholder", "x", shape=[256, 256]),
                                     float_graph.add("Variable", "w", shape=[256, 256], initializer={"type": "he_normal"})])
float_graph.outputs = y
miniqat.create_eval_graph(float_graph)
session = miniqat.Session(float_graph)
miniqat.calibrate(session, [{"x": feeds["x"]}])
model = miniqat.convert(float_graph, session.variables())
def write():
    for _ in range(20):
        model.to_json()
        model.to_miniqat()
writers = [threading.Thread(target=write) for _ in range(2)]
for writer in writers:
    writer.start()
while any(writer.is_alive() for writer in writers):
    model.class_names = [f"a rather long name {i}" for i in range(256)]
    model.class_names = []
try:
    model.class_names = ["too few"]
except ValueError as error:
    print(error)
""")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("class_names: ", done.stdout)

    def test_a_signal_handler_that_uses_the_graph_is_an_error(self):
        done = in_python("""
import miniqat, numpy as np, signal
train, test = miniqat.load("synthetic", train_size=600, test_size=600)
net = miniqat.make_classifier("lenet5", train, batch_size=4)
session = miniqat.Session(net.graph)
def use(*_):
    session.step
signal.signal(signal.SIGALRM, use)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
try:
    for _ in range(20):
        miniqat.evaluate(session, net, test)
except miniqat.Error as error:
    signal.setitimer(signal.ITIMER_REAL, 0)
    print(error)
""")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("a signal's handler cannot use it, too", done.stdout)


class End(unittest.TestCase):
    """A daemon that is in the middle of something when the interpreter ends."""

    def ends_well(self, program, times):
        for _ in range(times):
            done = in_python(program)
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_in_train_step(self):
        self.ends_well(NET + """
threading.Thread(target=steps, daemon=True).start()
threading.Thread(target=steps, daemon=True).start()
time.sleep(0.05)
""", 8)

    def test_in_train(self):
        self.ends_well("""
import miniqat, sys, threading, time
begun = threading.Event()
def on_step(*_):
    begun.set()
    time.sleep(0.01)
def run():
    miniqat.train(sys.argv[1] + "/run", model="lenet5", steps=100000, threads=1, on_step=on_step, report=lambda text: None)
threading.Thread(target=run, daemon=True).start()
begun.wait()
""", 2)

    def test_numpy_is_not_imported_by_a_daemon(self):
        done = in_python("import miniqat, sys; print('numpy' in sys.modules, 'numpy.ma' in sys.modules)")
        self.assertEqual((done.stdout, done.stderr), ("True True\n", ""))

    def test_in_evaluate_and_a_generator(self):
        self.ends_well("""
import miniqat, threading, time
train, test = miniqat.load("synthetic", train_size=600, test_size=3000)
net = miniqat.make_classifier("lenet5", train, batch_size=4)
session = miniqat.Session(net.graph)
def evaluate():
    while True:
        miniqat.evaluate(session, net, test)
threading.Thread(target=evaluate, daemon=True).start()
other = miniqat.make_classifier("lenet5", train, batch_size=4)
miniqat.create_eval_graph(other.graph)
second = miniqat.Session(other.graph)
def batches():
    while True:
        time.sleep(0.001)
        yield {other.images: next(loader)[0]}
loader = miniqat.Loader(train, batch_size=4)
threading.Thread(target=lambda: miniqat.calibrate(second, batches()), daemon=True).start()
time.sleep(0.1)
""", 3)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
