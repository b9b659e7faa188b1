"""Computes a miniqat graph JSON with PyTorch: for every op the PyTorch function that should give the same numbers.

Tensors keep miniqat's layouts (images [n, h, w, c], filters [kh, kw, in, out]); an op permutes them to PyTorch's and
back, so that autograd's gradients come out in miniqat's layouts, too.
"""

import math

import torch
import torch.nn.functional as F


def to_torch(images):
    return images.permute(0, 3, 1, 2)


def from_torch(images):
    return images.permute(0, 2, 3, 1)


def pad(images, window, strides, dilations, padding, pads, value):
    """Pads NCHW images by `pads`, or as TensorFlow's SAME does: ceil(size / stride) results, the odd pixel below and right."""
    if padding == "EXPLICIT":
        top, left, bottom, right = pads
        return F.pad(images, [left, right, top, bottom], value=value)
    amounts = []
    for size, k, stride, dilation in reversed(list(zip(images.shape[2:], window, strides, dilations))):
        reach = (k - 1) * dilation + 1
        total = max((math.ceil(size / stride) - 1) * stride + reach - size, 0) if padding == "SAME" else 0
        amounts += [total // 2, total - total // 2]
    return F.pad(images, amounts, value=value)


def convolve(attrs, x, filter, groups):
    strides, dilations = attrs.get("strides", [1, 1]), attrs.get("dilations", [1, 1])
    padded = pad(to_torch(x), filter.shape[2:], strides, dilations, attrs.get("padding", "SAME"), attrs.get("pads"), 0)
    return from_torch(F.conv2d(padded, filter, stride=strides, dilation=dilations, groups=groups))


def conv2d(attrs, x, w):
    return convolve(attrs, x, w.permute(3, 2, 0, 1), 1)


def depthwise_conv2d(attrs, x, w):
    return convolve(attrs, x, w.permute(2, 3, 0, 1).flatten(0, 1).unsqueeze(1), x.shape[3])


def matmul(attrs, a, b):
    return (a.T if attrs.get("transpose_a") else a) @ (b.T if attrs.get("transpose_b") else b)


def pool_windows(attrs):
    window = attrs.get("window", [2, 2])
    strides = attrs.get("strides", [0, 0])
    return window, strides if any(strides) else window


def max_pool(attrs, x):
    window, strides = pool_windows(attrs)
    padded = pad(to_torch(x), window, strides, [1, 1], attrs.get("padding", "VALID"), attrs.get("pads"), -math.inf)
    return from_torch(F.max_pool2d(padded, window, strides))


def avg_pool(attrs, x):
    """Padding counts neither as a value nor in the divisor."""
    window, strides = pool_windows(attrs)
    mean = lambda images: F.avg_pool2d(
        pad(images, window, strides, [1, 1], attrs.get("padding", "VALID"), attrs.get("pads"), 0), window, strides)
    images = to_torch(x)
    return from_torch(mean(images) / mean(torch.ones_like(images)))


def batch_norm(attrs, x, gamma, beta, moving_mean, moving_variance):
    """A training step: batch statistics, and the moving ones updated in place."""
    y = F.batch_norm(x.flatten(0, -2), moving_mean, moving_variance, gamma, beta, training=True,
                     momentum=1 - attrs.get("decay", 0.99), eps=attrs.get("epsilon", 0.001))
    return y.reshape(x.shape)


def cut(attrs, x):
    """The part that Slice keeps."""
    parts = [slice(None)] * x.dim()
    for axis, start, end, step in zip(attrs["axes"], attrs["starts"], attrs["ends"],
                                      attrs.get("steps", [1] * len(attrs["axes"]))):
        parts[axis] = slice(start, end, step)
    return x[tuple(parts)]


def grid(attrs, low, high):
    """quant_min, quant_max, scale and zero point of ranges that contain 0."""
    quant_min, quant_max = int(attrs.get("narrow_range", False)), 2 ** attrs.get("bits", 8) - 1
    levels = quant_max - quant_min
    # In double and without the scale, as in quantize/affine.cpp: a range [-m, m] is a tie whatever m.
    zero_point = (quant_min - low.double() * levels / (high.double() - low.double()) + 0.5).floor().int()
    return quant_min, quant_max, (high - low) / levels, zero_point


def held(exact, rounded):
    """`rounded`, with the derivative of `exact`: the straight-through estimator."""
    return exact + (rounded - exact).detach()


def learned_fake_quant(attrs, x, low, high):
    """A learned step size (Esser et al. 2020, algorithm 1; with two ends Bhalgat et al. 2020): the rounding passes
    gradients, and autograd finds those of the ends through the scale. Beyond an end y follows it."""
    if attrs.get("symmetric"):
        # One parameter, what both ends are multiplied by: half of its change in logarithms comes from each.
        width = (-low * high).sqrt()
        low, high = (end.detach() * width / width.detach() for end in (low, high))
    quant_min, quant_max, scale, zero_point = grid(attrs, low.clamp(max=0), high.clamp(min=0))
    lowest, highest = (quant_min - zero_point) * scale, (quant_max - zero_point) * scale
    steps = x / scale
    inside = held(steps, (steps + 0.5).floor()) * scale
    return torch.where(x < lowest, held(low, lowest), torch.where(x > highest, held(high, highest), inside))


def fake_quant(attrs, x, low, high):
    """PyTorch rounds ties to even where miniqat rounds them up."""
    if attrs["range"] == "learned":
        return learned_fake_quant(attrs, x, low, high)
    quant_min, quant_max, scale, zero_point = grid(attrs, low.clamp(max=0), high.clamp(min=0))
    if attrs.get("per_channel"):
        return torch.fake_quantize_per_channel_affine(x, scale, zero_point, x.dim() - 1, quant_min, quant_max)
    return torch.fake_quantize_per_tensor_affine(x, scale, zero_point, quant_min, quant_max)


class LogAdam:
    """Adam on the logarithms of the absolute values (optim/log_adam.h), in double."""

    def __init__(self, parameters, rate, beta1=0.9, beta2=0.999, epsilon=1e-12):
        self.parameters, self.rate, self.betas, self.epsilon = parameters, rate, (beta1, beta2), epsilon
        # Both averages, and the steps from the first gradient on.
        self.state = [[torch.zeros_like(w, dtype=torch.double) for _ in range(3)] for w in parameters]

    @torch.no_grad()
    def step(self):
        beta1, beta2 = self.betas
        for w, (m, v, t) in zip(self.parameters, self.state):
            t.copy_(torch.where((m == 0) & (v == 0), 1, t + 1))
            slope = w.double() * w.grad.double()
            m.mul_(beta1).add_(slope, alpha=1 - beta1)
            v.mul_(beta2).add_(slope ** 2, alpha=1 - beta2)
            divisor = (v / (1 - beta2 ** t)).sqrt() + self.epsilon
            w.copy_(w.double() * (-self.rate / (1 - beta1 ** t) * m / divisor).exp())
            w.grad = None


# Elementwise functions.
UNARY = {
    "Relu": lambda x: x.relu(),
    "Relu6": F.relu6,
    "Sigmoid": torch.sigmoid,
    "HardSwish": F.hardswish,
}

OPS = {
    "Conv2D": conv2d,
    "DepthwiseConv2d": depthwise_conv2d,
    "MatMul": matmul,
    "BiasAdd": lambda attrs, x, biases: x + biases,
    "Mul": lambda attrs, a, b: a * b,
    **{name: lambda attrs, x, function=function: function(x) for name, function in UNARY.items()},
    "LeakyRelu": lambda attrs, x: F.leaky_relu(x, attrs.get("alpha", 0.01)),
    "Clip": lambda attrs, x: x.clamp(attrs.get("low", -1), attrs.get("high", 1)),
    "HardSigmoid": lambda attrs, x: (attrs.get("alpha", 1 / 6) * x + attrs.get("beta", 0.5)).clamp(0, 1),
    "Slice": cut,
    "Reshape": lambda attrs, x: x.reshape(attrs["shape"]),
    "MaxPool": max_pool,
    "AvgPool": avg_pool,
    "BatchNorm": batch_norm,
    "FakeQuant": fake_quant,
    "SoftmaxCrossEntropy": lambda attrs, logits, labels: (row_weights(attrs, labels, logits.dtype) * F.cross_entropy(
        logits, labels.long(), label_smoothing=attrs.get("label_smoothing", 0.0), reduction="none")).mean(),
    "MeanSquaredError": lambda attrs, prediction, target: F.mse_loss(prediction, target),
    "Huber": lambda attrs, prediction, target: F.huber_loss(prediction, target, delta=attrs.get("delta", 1.0)),
    "SigmoidCrossEntropy": lambda attrs, logits, targets: F.binary_cross_entropy_with_logits(logits, targets),
}


def row_weights(attrs, labels, dtype):
    """What each row counts in the loss: the weight of its label."""
    weights = attrs.get("class_weights", [])
    return torch.tensor(weights, dtype=dtype)[labels.long()] if weights else torch.ones(len(labels), dtype=dtype)


def compute(graph, values):
    """The tensors of all nodes by name. `graph`: parsed JSON, its nodes in any order; `values`: those of its
    placeholders and variables."""
    tensors = dict(values)
    waiting = [node for node in graph["nodes"] if node["name"] not in tensors]
    while waiting:
        node = next(node for node in waiting if all(name in tensors for name in node["inputs"]))
        tensors[node["name"]] = OPS[node["op"]](node.get("attrs", {}), *(tensors[name] for name in node["inputs"]))
        waiting.remove(node)
    return tensors
