"""Brevitas' side of bench-peers, in a process of its own: lenet and lenet5 with weights and activations of 4 bits and
learned scales, trained whenever it is told to (peer_side.py).

    brevitas_side.py about
    brevitas_side.py train NETWORK W4A4 WAY THREADS

A WAY is a layout, channels_last or contiguous. With BREVITAS_JIT=1 in the environment its quantizers are TorchScript."""

import importlib.metadata
import sys

sys.dont_write_bytecode = True
import torch
from brevitas import nn as quantized
from torch import nn
from peer_side import NETWORKS, serve_training

BITS, LOGITS_BITS = 4, 8
# Scales are statistics for so many steps, and parameters from then on: before the warm-up ends.
STATISTICS = {"collect_stats_steps": 5}


def relu():
    return quantized.QuantReLU(bit_width=BITS, **STATISTICS)


def conv_relu(inputs, channels, padding):
    return quantized.QuantConv2d(inputs, channels, 5, padding=padding, weight_bit_width=BITS), relu(), nn.MaxPool2d(2)


def dense(inputs, outputs):
    return quantized.QuantLinear(inputs, outputs, bias=True, weight_bit_width=BITS)


def lenet():
    return [*conv_relu(1, 32, 2), *conv_relu(32, 64, 2), nn.Flatten(), dense(7 * 7 * 64, 1024), relu(), nn.Dropout(0.5),
            dense(1024, 10)]


def lenet5():
    return [*conv_relu(1, 6, 2), *conv_relu(6, 16, 0), nn.Flatten(), dense(5 * 5 * 16, 120), relu(), dense(120, 84), relu(),
            dense(84, 10)]


BUILDERS = {"lenet": lenet, "lenet5": lenet5}


def training(name, channels_last):
    """A function that trains for one step."""
    batch, side, channels, rate = NETWORKS[name]
    torch.manual_seed(1)
    model = nn.Sequential(*BUILDERS[name](), quantized.QuantIdentity(bit_width=LOGITS_BITS, **STATISTICS)).train()
    labels = torch.arange(batch) % 10
    images = (torch.rand(10, channels, side, side)[labels] + torch.rand(batch, channels, side, side)) / 2
    if channels_last:
        model, images = (x.to(memory_format=torch.channels_last) for x in (model, images))
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9, weight_decay=5e-4, fused=True)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def work(kind, *arguments):
    if kind == "about":
        print(f"Brevitas {importlib.metadata.version('brevitas')} on PyTorch {torch.__version__}")
        return
    name, _, way, threads = arguments
    torch.set_flush_denormal(True)
    torch.set_num_threads(int(threads))
    serve_training(NETWORKS[name][0], training(name, "channels_last" in way))


if __name__ == "__main__":
    work(*sys.argv[1:])
