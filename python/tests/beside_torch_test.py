"""PyTorch in the process of miniqat, imported before it or after: Debian's shares its oneDNN. Both keep their bits."""

import importlib.util
import subprocess
import sys
import tempfile
import unittest

SKIPPED = 77

CONVOLVES = """
import hashlib
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

digests = {digest() for _ in range(5)}
"""
TRAINS = """
import hashlib, pathlib, sys, threading
def train():
    miniqat.train(sys.argv[1], dataset="synthetic", model="lenet5", steps=40, float=True, threads=2)

thread = threading.Thread(target=train)
thread.start()
while "torch" in sys.modules and thread.is_alive():
    digests.add(digest())
thread.join()
print("trained", hashlib.sha256(pathlib.Path(sys.argv[1], "checkpoint.safetensors").read_bytes()).hexdigest())
"""


def lines_of(program):
    """What the program prints in a process of its own; its argument is the folder of a run."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([sys.executable, "-c", program, folder + "/run"], capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout


class BesideTorch(unittest.TestCase):
    def test_both_keep_their_bits(self):
        convolved = "print(sorted(digests))"
        alone = lines_of("import miniqat" + TRAINS) + lines_of("import torch" + CONVOLVES + convolved)
        self.assertEqual(alone.count("("), 1, "torch alone has the same bits each time")
        for order in ("miniqat, torch", "torch, miniqat"):
            with self.subTest(order):
                self.assertEqual(lines_of(f"import {order}" + CONVOLVES + TRAINS + convolved), alone)


if __name__ == "__main__":
    if importlib.util.find_spec("torch") is None:
        print("skipped: no torch (python3-torch)")
        sys.exit(SKIPPED)
    unittest.main(argv=sys.argv[:1])
