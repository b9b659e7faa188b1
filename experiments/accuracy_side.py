"""What the workers of peers-accuracy share: pictures in the same order for all, the variables of the float network, the
schedule, and the measurement of what they have trained."""

import gzip
import json
import math
import pathlib
import struct
import time

import numpy as np

BATCH, RATE, MOMENTUM, DECAY = 128, 0.01, 0.9, 5e-4
# The layers of miniqat's lenet5, in the order in which they run.
LAYERS = {"lenet5": ("conv1", "conv2", "fc1", "fc2", "fc3")}


def read_idx(folder, name):
    for path, opened in ((folder / name, open), (folder / f"{name}.gz", gzip.open)):
        if path.exists():
            with opened(path, "rb") as file:
                data = file.read()
            axes = data[3]
            return np.frombuffer(data, np.uint8, offset=4 + 4 * axes).reshape(struct.unpack(f">{axes}i", data[4:4 + 4 * axes]))
    raise SystemExit(f"{folder}: there is no {name}")


class Pictures:
    """MNIST: numbers from 0 to 1, [n, 28, 28, 1], and labels."""

    def __init__(self, folder):
        folder = pathlib.Path(folder)
        (self.train, self.labels), (self.test, self.test_labels) = (
            (read_idx(folder, f"{part}-images-idx3-ubyte")[..., None].astype(np.float32) / 255,
             read_idx(folder, f"{part}-labels-idx1-ubyte").astype(np.int64)) for part in ("train", "t10k"))

    def epochs(self, seed, epochs):
        """Yields (rate, pictures, labels) for each step, shuffled by the seed; the rate falls to 0 on a cosine."""
        random = np.random.default_rng(seed)
        steps = len(self.train) // BATCH
        for epoch in range(epochs):
            order = random.permutation(len(self.train))
            for step in range(steps):
                chosen = order[step * BATCH:(step + 1) * BATCH]
                done = (epoch * steps + step) / (epochs * steps)
                yield epoch, RATE * (1 + math.cos(math.pi * done)) / 2, self.train[chosen], self.labels[chosen]


def variables(path):
    """Arrays by name of a .safetensors file of float32."""
    data = pathlib.Path(path).read_bytes()
    begin = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:begin])
    return {name: np.frombuffer(data, np.float32, offset=begin + entry["data_offsets"][0],
                                count=math.prod(entry["shape"])).reshape(entry["shape"])
            for name, entry in header.items() if name != "__metadata__" and entry["dtype"] == "F32"}


def layers(network, path):
    """Weights and biases of each layer: [kh, kw, in, out] or [in, out], as in TensorFlow."""
    found = variables(path)
    return [(found[f"{name}/weights"], found[f"{name}/biases"]) for name in LAYERS[network]]


def answers(logits_of, pictures):
    """The class of each picture; logits_of takes batches of BATCH pictures, the last one filled up."""
    missing = -len(pictures) % BATCH
    filled = np.concatenate([pictures, np.repeat(pictures[-1:], missing, axis=0)])
    batches = [np.asarray(logits_of(filled[at:at + BATCH])).argmax(-1) for at in range(0, len(filled), BATCH)]
    return np.concatenate(batches)[:len(pictures)]


class Clock:
    """Seconds of training, without what was imported and read before."""

    def __init__(self):
        self.begin = time.perf_counter()

    def seconds(self):
        return round(time.perf_counter() - self.begin, 1)


def report(pictures, simulated, integers, seconds, runtime):
    """Prints the result of a worker; `simulated` and `integers`: its answers()."""
    print(json.dumps({"simulated": float((simulated == pictures.test_labels).mean()),
                      "integers": float((integers == pictures.test_labels).mean()),
                      "agree": float((simulated == integers).mean()), "seconds": seconds, "runtime": runtime}))
