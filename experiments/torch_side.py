"""PyTorch's side of bench-peers, in a process of its own: its environment decides how its threads wait. Trains miniqat's
models, and fake-quantizes, whenever it is told to (peer_side.py). For PyTorch 1.13 and 2.13.

    torch_side.py about
    torch_side.py train NETWORK float|bfloat16|QAT WAY THREADS
    torch_side.py fake_quant CHANNELS forward|backward|learned ELEMENTS

A WAY is a list of words with commas between: channels_last or contiguous, compiled, and for QAT fused or unfused (eager
mode's fake quantizers, after prepare_qat) or PT2E (torchao's)."""

import ctypes
import pathlib
import re
import sys

sys.dont_write_bytecode = True
import torch
from torch import nn
from torch.ao import quantization
from peer_side import NETWORKS, serve, serve_training


def work(kind, *arguments):
    """What a worker does."""
    # miniqat does, too: denormals make convolutions slow beyond measure.
    torch.set_flush_denormal(True)
    blas = Blas()
    if kind == "about":
        print(f"PyTorch {torch.__version__} with {blas.describe()}")
    elif kind == "train":
        name, arithmetic, way, threads = arguments
        use_threads(blas, int(threads))
        serve_training(NETWORKS[name][0], training(name, arithmetic, way.split(", ")))
    else:
        channels, what, elements = arguments
        use_threads(blas, 1)
        if what == "learned":
            serve(int(elements), learned_fake_quantizer(int(elements), int(channels)))
        else:
            serve(int(elements), fake_quantizer(int(elements), int(channels), what == "backward"))


# Models: as miniqat's, layer by layer. Lists of sequences, so that fuse() finds what belongs together.

def conv_relu(inputs, channels, kernel, padding):
    return nn.Sequential(nn.Conv2d(inputs, channels, kernel, padding=padding), nn.ReLU())


def dense_relu(inputs, outputs):
    return nn.Sequential(nn.Linear(inputs, outputs), nn.ReLU())


def lenet(activation):
    return nn.Sequential(conv_relu(1, 32, 5, 2), nn.MaxPool2d(2), conv_relu(32, 64, 5, 2), nn.MaxPool2d(2), nn.Flatten(),
                         dense_relu(7 * 7 * 64, 1024), nn.Dropout(0.5), nn.Sequential(nn.Linear(1024, 10)))


def lenet5(activation):
    return nn.Sequential(conv_relu(1, 6, 5, 2), nn.MaxPool2d(2), conv_relu(6, 16, 5, 0), nn.MaxPool2d(2), nn.Flatten(),
                         dense_relu(5 * 5 * 16, 120), dense_relu(120, 84), nn.Sequential(nn.Linear(84, 10)))


def conv_norm(inputs, channels, kernel, *activation, stride=1, groups=1, eps=0.001):
    conv = nn.Conv2d(inputs, channels, kernel, stride, padding=kernel // 2, groups=groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(channels, eps=eps), *activation)


def classifier(inputs):
    return nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Sequential(nn.Linear(inputs, 10))


def mobilenet_v1(activation):
    layers, inputs = [conv_norm(3, 32, 3, activation())], 32
    for channels, repeats, stride in ((64, 1, 1), (128, 2, 2), (256, 2, 2), (512, 6, 2), (1024, 2, 2)):
        for k in range(repeats):
            layers.append(conv_norm(inputs, inputs, 3, activation(), stride=stride if k == 0 else 1, groups=inputs))
            layers.append(conv_norm(inputs, channels, 1, activation()))
            inputs = channels
    return nn.Sequential(*layers, *classifier(inputs))


class Residual(nn.Module):
    """relu(convs(x) + shortcut(x)), or without the relu. The sum is quantized, too. `first`: of `stride` pixels the one that the
    shortcut takes."""

    def __init__(self, convs, stride=1, missing=0, with_relu=False):
        super().__init__()
        self.convs, self.stride, self.missing, self.with_relu = nn.Sequential(*convs), stride, missing, with_relu
        self.first = 0
        self.sum = torch.ao.nn.quantized.FloatFunctional()

    def forward(self, x):
        kept = x[:, :, self.first::self.stride, self.first::self.stride] if self.stride > 1 else x
        if self.missing:
            kept = nn.functional.pad(kept, (0, 0, 0, 0, self.missing // 2, self.missing - self.missing // 2))
        return (self.sum.add_relu if self.with_relu else self.sum.add)(self.convs(x), kept)


def resnet20(activation):
    layers, inputs = [conv_norm(3, 16, 3, nn.ReLU(), eps=1e-5)], 16
    for channels in (16, 32, 64):
        for k in range(3):
            stride = 2 if channels > 16 and k == 0 else 1
            convs = [conv_norm(inputs, channels, 3, nn.ReLU(), stride=stride, eps=1e-5),
                     conv_norm(channels, channels, 3, eps=1e-5)]
            layers.append(Residual(convs, stride, channels - inputs, with_relu=True))
            inputs = channels
    return nn.Sequential(*layers, *classifier(inputs))


def mobilenet_v2(activation):
    layers, inputs = [conv_norm(3, 32, 3, activation())], 32
    for expansion, channels, repeats, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2),
                                                 (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):
        for k in range(repeats):
            wide, step = inputs * expansion, stride if k == 0 else 1
            convs = [conv_norm(inputs, wide, 1, activation())] if expansion > 1 else []
            convs += [conv_norm(wide, wide, 3, activation(), stride=step, groups=wide), conv_norm(wide, channels, 1)]
            layers += [Residual(convs)] if step == 1 and inputs == channels else convs
            inputs = channels
    return nn.Sequential(*layers, conv_norm(inputs, 1280, 1, activation()), *classifier(1280))


BUILDERS = {"lenet": lenet, "lenet5": lenet5, "resnet20": resnet20, "mobilenet_v1": mobilenet_v1,
            "mobilenet_v2": mobilenet_v2}


def prepared_for_qat(model, fused):
    """With ConvBn folding; version 1 of a qconfig has the fused observer and fake quantizer."""
    model.train()
    for block in list(model.modules()):
        if isinstance(block, nn.Sequential) and isinstance(block[0], (nn.Conv2d, nn.Linear)) and len(block) > 1:
            quantization.fuse_modules_qat(block, [str(i) for i in range(len(block))], inplace=True)
    model.qconfig = quantization.get_default_qat_qconfig("qnnpack", version=1 if fused else 0)
    return quantization.prepare_qat(model)


def prepared_by_export(model, images):
    """8 bits, weights per channel: the only kind that torchao's quantizer for these processors has. Its lowering comes
    after training and is not timed."""
    from torchao.quantization.pt2e.quantize_pt2e import prepare_qat_pt2e
    from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86
    quantizer = x86.X86InductorQuantizer().set_global(x86.get_default_x86_inductor_quantization_config(is_qat=True))
    return prepare_qat_pt2e(torch.export.export(model.train(), (images,)).module(), quantizer)


def training(name, arithmetic="float", way=("contiguous",), ranks=1, wrap=lambda model: model):
    """A function that trains for one step, on this rank's part of the batch. `wrap` makes a network of many ranks."""
    whole, side, channels, rate = NETWORKS[name]
    batch = whole // ranks
    torch.manual_seed(1)
    model = BUILDERS[name](nn.ReLU if arithmetic == "QAT" else nn.ReLU6).train()
    labels = torch.arange(batch) % 10
    images = (torch.rand(10, channels, side, side)[labels] + torch.rand(batch, channels, side, side)) / 2
    if "channels_last" in way:
        model, images = (x.to(memory_format=torch.channels_last) for x in (model, images))
    if "PT2E" in way:
        model = prepared_by_export(model, images)
    elif arithmetic == "QAT":
        model = prepared_for_qat(model, "fused" in way)
    model = wrap(model)
    # Of the ways to update the faster one, where this PyTorch has it.
    today = {"fused": True} if hasattr(torch, "compile") else {}
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9, weight_decay=5e-4, **today)

    def loss_of(images, labels):
        with torch.autocast("cpu", torch.bfloat16, enabled=arithmetic == "bfloat16"):
            return nn.functional.cross_entropy(model(images), labels)

    if "compiled" in way:
        loss_of = torch.compile(loss_of)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(images, labels)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def fake_quantizer(elements, channels, backward):
    """The fused moving-average observer and fake quantizer, per tensor or per channel of the first axis."""
    per_channel = channels > 1
    rows = elements // channels
    x = torch.rand(channels, rows) * 2 - 1
    x.requires_grad_(backward)
    d_y = torch.rand(channels, rows)
    on = torch.tensor([1])
    low, high = torch.zeros(channels), torch.zeros(channels)
    scale, zero_point = torch.ones(channels), torch.zeros(channels, dtype=torch.int32)
    low.fill_(float("inf")), high.fill_(float("-inf"))

    def repeat():
        y = torch.fused_moving_avg_obs_fake_quant(x, on, on, low, high, scale, zero_point, 0.001, 0, 255, 0,
                                                  per_channel, False)
        if backward:
            x.grad = None
            y.backward(d_y)

    return repeat


def learned_fake_quantizer(elements, channels):
    """Forward and backward with the gradients of scale and zero point."""
    per_channel = channels > 1
    x = (torch.rand(channels, elements // channels) * 2 - 1).requires_grad_()
    d_y = torch.rand(channels, elements // channels)
    scale = torch.full((channels,), 1.6 / 255, requires_grad=True)
    zero_point = torch.full((channels,), 128.0, requires_grad=True)

    def repeat():
        if per_channel:
            y = torch._fake_quantize_learnable_per_channel_affine(x, scale, zero_point, 0, 0, 255, 1.0)
        else:
            y = torch._fake_quantize_learnable_per_tensor_affine(x, scale, zero_point, 0, 255, 1.0)
        x.grad = scale.grad = zero_point.grad = None
        y.backward(d_y)

    return repeat


class Blas:
    """The library that PyTorch multiplies matrices with, and its thread count."""

    def __init__(self):
        self.libraries, self.set_threads = [], None
        # PyPI's PyTorch contains MKL, whose threads are PyTorch's.
        if torch.backends.mkl.is_available():
            return
        torch.rand(64, 64) @ torch.rand(64, 64)
        maps = pathlib.Path("/proc/self/maps").read_text()
        self.libraries = sorted(set(re.findall(r"(/\S*blas\S*\.so\S*)", maps)))
        for library in self.libraries:
            self.set_threads = self.set_threads or getattr(ctypes.CDLL(library), "openblas_set_num_threads", None)

    def describe(self):
        if torch.backends.mkl.is_available():
            return "MKL"
        name = ", ".join(self.libraries) or "built in"
        if self.set_threads:
            return name
        return name + " - NOT OpenBLAS: PyTorch is slower than it need be; install libopenblas0-pthread"


def use_threads(blas, threads):
    torch.set_num_threads(threads)
    if blas.set_threads:
        blas.set_threads(threads)


if __name__ == "__main__":
    work(*sys.argv[1:])
