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
# The layers of miniqat's networks, in the order in which they run.
BLOCKS = [f"stage{stage}/block{block}" for stage in (1, 2, 3) for block in (1, 2, 3)]
LAYERS = {"lenet5": ("conv1", "conv2", "fc1", "fc2", "fc3"),
          "resnet20": ("conv0", *(f"{block}/conv{k}" for block in BLOCKS for k in (1, 2)), "fc")}
# Of a layer: with biases, or with a batch norm.
PARTS = (("weights", "biases"),
         ("weights", *(f"BatchNorm/{part}" for part in ("gamma", "beta", "moving_mean", "moving_variance"))))


def read_idx(folder, name):
    for path, opened in ((folder / name, open), (folder / f"{name}.gz", gzip.open)):
        if path.exists():
            with opened(path, "rb") as file:
                data = file.read()
            axes = data[3]
            return np.frombuffer(data, np.uint8, offset=4 + 4 * axes).reshape(struct.unpack(f">{axes}i", data[4:4 + 4 * axes]))
    raise SystemExit(f"{folder}: there is no {name}")


def read_cifar10(folder, names):
    """Bytes [n, 32, 32, 3] and labels of the binary files."""
    data = np.concatenate([np.fromfile(pathlib.Path(folder) / name, np.uint8) for name in names]).reshape(-1, 3073)
    return data[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1), data[:, 0]


def crop_and_mirror(pictures, random, pad=4):
    """Each at another place of the picture with a border of zeros, half of them mirrored."""
    side = pictures.shape[1]
    padded = np.pad(pictures, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (side, side), (1, 2))
    top, left, mirrored = (random.integers(0, count, len(pictures)) for count in (2 * pad + 1, 2 * pad + 1, 2))
    crops = windows[np.arange(len(pictures)), top, left].transpose(0, 2, 3, 1)
    return np.where(mirrored[:, None, None, None] == 1, crops[:, :, ::-1], crops)


class Pictures:
    """Those of a network's data set, [n, height, width, channels], and labels. A pixel of MNIST is byte / 255, one of CIFAR-10
    (byte - 128) / 64, as in miniqat. `turned`: by 180 degrees."""

    def __init__(self, network, folder, turned=False):
        folder = pathlib.Path(folder)
        self.varies = network == "resnet20"
        if self.varies:
            zero, scale = 128, 64
            names = [f"data_batch_{k}.bin" for k in range(1, 6)]
            parts = [read_cifar10(folder, files) for files in (names, ["test_batch.bin"])]
        else:
            zero, scale = 0, 255
            parts = [(read_idx(folder, f"{part}-images-idx3-ubyte")[..., None], read_idx(folder, f"{part}-labels-idx1-ubyte"))
                     for part in ("train", "t10k")]
        (self.train, self.labels), (self.test, self.test_labels) = (
            (((pictures[:, ::-1, ::-1] if turned else pictures).astype(np.float32) - zero) / scale, labels.astype(np.int64))
            for pictures, labels in parts)

    def epochs(self, seed, epochs):
        """Yields (epoch, rate, pictures, labels) for each step, shuffled by the seed, pictures of CIFAR-10 cropped and mirrored;
        the rate falls to 0 on a cosine."""
        random = np.random.default_rng(seed)
        steps = len(self.train) // BATCH
        for epoch in range(epochs):
            order = random.permutation(len(self.train))
            for step in range(steps):
                chosen = order[step * BATCH:(step + 1) * BATCH]
                done = (epoch * steps + step) / (epochs * steps)
                pictures = self.train[chosen]
                yield (epoch, RATE * (1 + math.cos(math.pi * done)) / 2,
                       crop_and_mirror(pictures, random) if self.varies else pictures, self.labels[chosen])


def variables(path):
    """Arrays by name of a .safetensors file of float32."""
    data = pathlib.Path(path).read_bytes()
    begin = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:begin])
    return {name: np.frombuffer(data, np.float32, offset=begin + entry["data_offsets"][0],
                                count=math.prod(entry["shape"])).reshape(entry["shape"])
            for name, entry in header.items() if name != "__metadata__" and entry["dtype"] == "F32"}


def layers(network, path):
    """Of each layer the weights, [kh, kw, in, out] or [in, out], as in TensorFlow, then biases, or gamma, beta, mean and variance
    of its batch norm."""
    found = variables(path)
    return [[found[f"{name}/{part}"] for part in next(parts for parts in PARTS if f"{name}/{parts[-1]}" in found)]
            for name in LAYERS[network]]


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
