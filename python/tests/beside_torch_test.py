"""PyTorch in the process of miniqat, imported before it or after: Debian's shares its oneDNN, and keeps its results."""

import importlib.util
import subprocess
import sys
import tempfile
import unittest

SKIPPED = 77

CONVOLVES = """
import hashlib, sys, threading
torch.set_num_threads(2)
torch.manual_seed(1)
x = torch.randn(32, 16, 32, 32, requires_grad=True)
weights = torch.randn(32, 16, 3, 3, requires_grad=True)

def digest():
    y = torch.nn.functional.conv2d(x, weights, padding=1)
    y.square().sum().backward()
    of = [hashlib.sha256(tensor.detach().numpy().tobytes()).hexdigest() for tensor in (y, x.grad, weights.grad)]
    x.grad = weights.grad = None
    return tuple(of)

def train():
    miniqat.train(sys.argv[1], dataset="synthetic", model="lenet5", steps=40)
    ended.append(True)

digests, ended = {digest() for _ in range(5)}, []
if "miniqat" in sys.modules:
    thread = threading.Thread(target=train)
    thread.start()
    while thread.is_alive():
        digests.add(digest())
    assert ended, "the training failed"
print(sorted(digests))
"""


def digests_with(imports):
    """Of a process of its own: the line that names all results that it had."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([sys.executable, "-c", f"import {imports}\n{CONVOLVES}", folder + "/run"], capture_output=True,
                              text=True, timeout=600)
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout


class BesideTorch(unittest.TestCase):
    def test_convolutions_keep_their_bits(self):
        alone = digests_with("torch")
        self.assertEqual(alone.count("("), 1, "without miniqat each time has the same bits")
        for order in ("miniqat, torch", "torch, miniqat"):
            with self.subTest(order):
                self.assertEqual(digests_with(order), alone)


if __name__ == "__main__":
    if importlib.util.find_spec("torch") is None:
        print("skipped: no torch (python3-torch)")
        sys.exit(SKIPPED)
    unittest.main(argv=sys.argv[:1])
