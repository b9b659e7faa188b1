"""The figures of docs/course, from the runs that its pages' commands leave in a folder (experiments/course-figures)."""

import json
import re

import numpy as np
import safetensors_numpy
from course_chart import Axis, Chart

BITS_AXIS = [(1, "2"), (2, "3"), (3, "4"), (4, "8")]
PLACE = {2: 1, 3: 2, 4: 3, 8: 4}


def more_runs(run):
    """Runs that only figures need: a weight and a range, looked at every few steps."""
    print("figures: a training stopped every 9 steps, and another every 6", flush=True)
    run("for step in $(seq 9 9 279); do\n"
        "  if [ $step = 9 ]; then start='--model lenet5 --init-checkpoint float --weight-bits 3 --activation-bits 3\n"
        "    --ranges observed --epochs 3'; else start=--resume; fi\n"
        "  miniqat train $start --stop-at $step --out path || [ $? = 130 ]\n"
        "  cp path/checkpoint.safetensors path-$step.safetensors\ndone")
    run("for step in $(seq 6 6 372); do\n"
        "  if [ $step = 6 ]; then start='--model lenet5 --epochs 4 --quant-delay 186'; else start=--resume; fi\n"
        "  miniqat train $start --stop-at $step --out grow\n"
        "  cp grow/checkpoint.safetensors grow-$step.safetensors\ndone")
    run("miniqat run float --index 0 --fetch conv2/Relu --out relu.safetensors")
    run("for b in 8 4; do miniqat predict echo-output$b $(seq 0 299) --integer --json > distances$b.json; done")


def accuracy(folder, name):
    """Test accuracy of a run in per cent."""
    return 100 * json.loads((folder / name / "summary.json").read_text())["test_accuracy"]


def variables(folder, name):
    return safetensors_numpy.read(folder / name / "checkpoint.safetensors")


def grid(low, high, bits, narrow=False):
    """The numbers of the grid of a range, nudged as quantize/affine.h says, and its scale."""
    first, last = (1 if narrow else 0), 2**bits - 1
    low, high = min(low, 0.0), max(high, 0.0)
    scale = (high - low) / (last - first)
    zero_point = first + np.floor(-low / scale + 0.5)
    return scale * (np.arange(first, last + 1) - zero_point), scale


def on_grid(values, numbers):
    """Each value's neighbour on the grid; ties go upwards."""
    scale = numbers[1] - numbers[0]
    places = np.floor((np.clip(values, numbers[0], numbers[-1]) - numbers[0]) / scale + 0.5)
    return numbers[places.astype(int)]


def histogram(values, low, high, bins):
    """Middles of the bins, with the share of the values in each, in per cent."""
    counts, edges = np.histogram(values, bins, (low, high))
    return list(zip((edges[:-1] + edges[1:]) / 2, 100 * counts / len(values))), (high - low) / bins


def weights_on_grids(folder):
    weights = variables(folder, "float")["fc1/weights"].ravel()
    chart = Chart("The 48,000 weights of fc1, and the grids of their range at 4 and 2 bits",
                  Axis("weight", -0.42, 0.3, [-0.4, -0.3, -0.2, -0.1, 0, 0.1, 0.2]), Axis("% of the weights", -3.5, 8, [0, 2, 4, 6, 8]))
    points, width = histogram(weights, -0.42, 0.3, 90)
    chart.bars(points, width * 0.85, "grey")
    for bits, colour, top in (4, "blue", -0.3), (2, "orange", -1.9):
        numbers, _ = grid(weights.min(), weights.max(), bits)
        chart.marks(numbers, colour, top - 1.3, top)
    chart.legend([("weights", "grey"), ("4 bits: 16 numbers", "blue"), ("2 bits: 4 numbers", "orange")])
    return chart


def accuracy_of_grids(folder):
    chart = Chart("LeNet-5 quantized without training", Axis("bits of weights and activations", 0.5, 4.5, BITS_AXIS),
                  Axis("test accuracy in %", 0, 100, [0, 20, 40, 60, 80, 100]))
    points = [(PLACE[bits], accuracy(folder, f"minmax{bits}")) for bits in (2, 3, 4, 8)]
    chart.line([(0.5, accuracy(folder, "float")), (4.5, accuracy(folder, "float"))], "grey", "line dashed")
    chart.bars(points, 0.5, "blue")
    for x, y in points:
        chart.label(x, y - 6 if y > 20 else y + 2, f"{y:.2f}", "ground" if y > 20 else "blue", "middle")
    chart.legend([("float", "grey"), ("smallest to largest value", "blue")])
    return chart


def stairs(folder):
    tensors = safetensors_numpy.read(folder / "weights.safetensors")
    weights, rounded = tensors["conv1/weights"].ravel(), tensors["conv1/weights_quant"].ravel()
    chart = Chart("FakeQuant at 3 bits: the 150 weights of conv1", Axis("weight, float", -0.8, 0.8, [-0.8, -0.4, 0, 0.4, 0.8]),
                  Axis("what the layer computes with", -0.8, 0.8, [-0.8, -0.4, 0, 0.4, 0.8]))
    chart.line([(-0.8, -0.8), (0.8, 0.8)], "grey", "thin dashed")
    chart.dots(sorted(zip(weights, rounded)), "blue", 3)
    chart.legend([("a weight", "blue"), ("the line that the gradient sees", "grey")])
    return chart


def weight_path(folder):
    """The weight of conv1 whose rounded value changes most often in training."""
    steps, floats, rounded = [], [], []
    for step in range(9, 280, 9):
        tensors = safetensors_numpy.read(folder / f"path-{step}.safetensors")
        values = tensors["conv1/weights"].ravel()
        numbers, _ = grid(float(tensors["conv1/weights_quant/min"]), float(tensors["conv1/weights_quant/max"]), 3, True)
        steps.append(step)
        floats.append(values)
        rounded.append(on_grid(values, numbers))
    floats, rounded = np.array(floats), np.array(rounded)
    jumps = (np.abs(np.diff(rounded, axis=0)) > 0.1).sum(axis=0)
    chosen = int(np.argmax(jumps))
    low = min(floats[:, chosen].min(), rounded[:, chosen].min()) - 0.05
    high = max(floats[:, chosen].max(), rounded[:, chosen].max()) + 0.05
    chart = Chart(f"Weight {chosen} of conv1 in 3-bit training", Axis("step", 0, 280, [0, 93, 186, 279]),
                  Axis("weight", low, high, [v / 10 for v in range(-8, 9) if low < v / 10 < high]))
    stairs_of = []
    for i, step in enumerate(steps):
        stairs_of += ([(step, rounded[i - 1, chosen])] if i else []) + [(step, rounded[i, chosen])]
    chart.line(stairs_of, "orange")
    chart.line(list(zip(steps, floats[:, chosen])), "blue")
    chart.dots(list(zip(steps, floats[:, chosen])), "blue", 2.5)
    chart.legend([("the float weight, which the optimizer changes", "blue"), ("on the grid", "orange")])
    return chart


def range_ends(folder, name, quantizer):
    tensors = variables(folder, name)
    return float(tensors[f"{quantizer}/min"]), float(tensors[f"{quantizer}/max"])


METHODS = [("minmax3", "minmax", "grey"), ("average3", "moving average", "green"), ("percentile3", "percentile", "blue"),
           ("mse3", "least squares", "orange")]


def activations(folder):
    values = safetensors_numpy.read(folder / "relu.safetensors")["conv2/Relu"].ravel()
    above = values[values > 0]
    chart = Chart("Outputs of conv2 above 0, and the ends of four ranges at 3 bits", Axis("output behind the Relu", 0, 11, range(12)),
                  Axis("% of the outputs above 0", 0, 12, range(0, 13, 2)))
    points, width = histogram(above, 0, 11, 110)
    chart.bars(points, width * 0.85, "blue")
    for i, (name, words, colour) in enumerate(METHODS):
        end = range_ends(folder, name, "conv2/act_quant")[1]
        chart.marks([end], "orange", 0, 10 - 1.8 * i)
        chart.label(end - 0.1, 9.5 - 1.8 * i, f"{words} {end:.2f}", "orange", "end")
    return chart


def clipping_and_rounding(folder):
    values = safetensors_numpy.read(folder / "relu.safetensors")["conv2/Relu"].ravel().astype(np.float64)
    chart = Chart("Squared error of conv2's outputs at 3 bits, by the end of the range",
                  Axis("end of the range", 0, 11, range(12)), Axis("mean squared error", 0, 0.15, [0, 0.05, 0.1, 0.15]))
    rounding, clipping = [], []
    for end in np.arange(1.0, 11.01, 0.25):
        numbers, _ = grid(0.0, end, 3)
        error, beyond = (on_grid(values, numbers) - values)**2, values > end
        rounding.append((end, error[~beyond].sum() / len(values)))
        clipping.append((end, error[beyond].sum() / len(values)))
    chart.line([(end, a + b) for (end, a), (_, b) in zip(rounding, clipping)], "orange")
    chart.line(rounding, "blue", "line dashed")
    chart.line(clipping, "green", "line dashed")
    chosen = range_ends(folder, "mse3", "conv2/act_quant")[1]
    chart.marks([chosen], "grey", 0, 0.11)
    chart.label(chosen, 0.115, f"least squares {chosen:.2f}", "grey", "middle")
    chart.legend([("sum", "orange"), ("rounding", "blue"), ("clipping", "green")])
    return chart


def growing_range(folder):
    chart = Chart("Ranges that steps observe, in a training from random weights", Axis("step", 0, 372, [0, 93, 186, 279, 372]),
                  Axis("stored end of the range", 0, 20, [0, 5, 10, 15, 20]))
    for layer, colour in ("fc1", "orange"), ("conv2", "blue"), ("conv1", "green"):
        points = []
        for step in range(6, 373, 6):
            tensors = safetensors_numpy.read(folder / f"grow-{step}.safetensors")
            points.append((step, float(tensors[f"{layer}/act_quant/max"])))
        chart.line(points, colour)
        chart.label(368, points[-1][1] + 0.6, layer, colour, "end")
    chart.marks([186], "grey", 0, 20)
    chart.label(190, 18.6, "from here on numbers are rounded", "grey")
    return chart


def folded_channels(folder):
    tensors = variables(folder, "mobile")
    scope = "block1/depthwise"
    norm = scope + "/BatchNorm/"
    factor = tensors[norm + "gamma"] / np.sqrt(tensors[norm + "moving_variance"] + 0.001)
    before = np.abs(tensors[scope + "/weights"]).max(axis=(0, 1)).ravel()
    after = np.abs(before * factor)
    chart = Chart("Largest weight of each channel of block1/depthwise", Axis("channel", -0.5, len(before) - 0.5, range(len(before))),
                  Axis("largest weight", 0, 8, [0, 2, 4, 6, 8]))
    chart.bars([(i - 0.2, value) for i, value in enumerate(before)], 0.36, "blue")
    chart.bars([(i + 0.2, value) for i, value in enumerate(after)], 0.36, "orange")
    chart.legend([("before folding", "blue"), ("after folding", "orange")])
    return chart


def per_channel(folder):
    chart = Chart("A MobileNet quantized without training", Axis("bits of the weights (activations: 8)", 0.5, 2.5, [(1, "4"), (2, "8")]),
                  Axis("test accuracy in %", 0, 100, [0, 20, 40, 60, 80, 100]))
    for shift, name, colour in (-0.18, "tensor", "orange"), (0.18, "channel", "blue"):
        points = [(place + shift, accuracy(folder, f"{name}{bits}")) for place, bits in ((1, 4), (2, 8))]
        chart.bars(points, 0.32, colour)
        for x, y in points:
            chart.label(x, y - 6, f"{y:.2f}", "ground", "middle")
    chart.legend([("one range for all weights", "orange"), ("a range for each channel", "blue")])
    return chart


def operation(model, name):
    return next(one for one in model["operations"] if one["name"] == name)


def requantization(folder):
    """Accumulators of conv1 on picture 0, from the exported integers, and what becomes of them."""
    model = json.loads((folder / "model.json").read_text())
    layer = operation(model, "conv1/Conv2D")
    picture = safetensors_numpy.read(folder / "layers.safetensors")["images"][0]
    pixels = np.pad(np.round(picture[..., 0] * 255).astype(np.int64), 2)
    kernels = np.array(layer["weights"], np.int64).reshape(layer["filter"])[:, :, 0, :] - layer["weight_zero_points"][0]
    sums = np.array(layer["bias"]) + np.einsum("hwyx,yxc->hwc", np.lib.stride_tricks.sliding_window_view(pixels, (5, 5)), kernels)
    mantissa, shift = layer["multipliers"]["mantissas"][0], layer["multipliers"]["shifts"][0]
    results = np.clip((sums * mantissa + (1 << shift - 1)) >> shift, *layer["clamp"])
    chart = Chart("Requantization in conv1: the 4,704 accumulators of a picture", Axis("accumulator", -80000, 150000,
                  [-80000, -40000, 0, 40000, 80000, 120000]), Axis("integer of the output", 0, 255, [0, 50, 100, 150, 200, 255]))
    chart.dots(sorted(set(zip((sums.ravel() // 1000 * 1000).tolist(), results.ravel().tolist()))), "blue", 2)
    chart.label(-75000, 14, "below 0: the Relu", "grey")
    return chart


def agreement(folder):
    report = json.loads((folder / "verify.json").read_text())
    layers = [one for one in report["layers"] if one["type"] in ("Conv2D", "FullyConnected")]
    chart = Chart("Integers of the engine that differ from the simulation", Axis("layer", -0.5, len(layers) - 0.5,
                  [(i, one["operation"].split("/")[0]) for i, one in enumerate(layers)]),
                  Axis("% of the integers", 0, 2, [0, 0.5, 1, 1.5, 2]))
    for shift, key, colour in (-0.2, "alone", "blue"), (0.2, "end_to_end", "orange"):
        chart.bars([(i + shift, 100 * (1 - one[key]["share"])) for i, one in enumerate(layers)], 0.36, colour)
    chart.legend([("given equal inputs", "blue"), ("from the picture on", "orange")])
    return chart


def low_bits(folder):
    chart = Chart("LeNet-5 at few bits, logits at 8", Axis("bits of weights and activations", 0.8, 3.2, BITS_AXIS[:3]),
                  Axis("test accuracy in %", 0, 100, [0, 20, 40, 60, 80, 100]))
    reference = accuracy(folder, "float")
    chart.line([(0.8, reference), (3.2, reference)], "grey", "line dashed")
    for name, colour in ("mse", "blue"), ("observed", "orange"), ("learned", "green"):
        points = [(PLACE[bits], accuracy(folder, f"{name}{bits}-8")) for bits in (2, 3, 4)]
        chart.line(points, colour)
        chart.dots(points, colour)
    chart.legend([("float", "grey"), ("calibrated", "blue"), ("trained, observed", "orange"), ("trained, learned", "green")])
    return chart


def integers_of_weights(folder, run, layer, bits):
    """-1, 0 and 1 at 2 bits: the integers of a layer's weights, less their zero point."""
    tensors = variables(folder, run)
    numbers, scale = grid(*range_ends(folder, run, f"{layer}/weights_quant"), bits, True)
    return np.round(on_grid(tensors[f"{layer}/weights"].ravel(), numbers) / scale).astype(int)


def changed_integers(folder):
    layers = ["conv1", "conv2", "fc1", "fc2", "fc3"]
    chart = Chart("Weights with another integer after training at 2 bits", Axis("layer", -0.5, 4.5, list(enumerate(layers))),
                  Axis("% of the layer's weights", 0, 16, [0, 4, 8, 12, 16]))
    for i, layer in enumerate(layers):
        before, after = (integers_of_weights(folder, run, layer, 2) for run in ("mse2-8", "learned2-8"))
        share = 100 * np.mean(before != after)
        chart.bars([(i, share)], 0.5, "blue")
        chart.label(i, share + 0.3, f"{share:.1f}", "blue", "middle")
    return chart


def sensitivity(folder):
    report = json.loads((folder / "sens/sensitivity.json").read_text())
    chart = Chart("Loss of accuracy, one quantizer at 2 bits, all others float", Axis("layer", -0.5, 4.5, [
        (i, name) for i, name in enumerate(("conv1", "conv2", "fc1", "fc2", "fc3"))]), Axis("points of accuracy", 0, 7, range(8)))
    before = report["float"]["accuracy"]
    for one in report["quantizers"]:
        place = [tick[1] for tick in chart.x.ticks].index(re.match(r"\w+", one["layer"])[0])
        at_two = next(result for result in one["alone"] if result["bits"] == 2)
        shift, colour = (-0.2, "blue") if one["kind"] == "weights" else (0.2, "orange")
        chart.bars([(place + shift, 100 * (before - at_two["accuracy"]))], 0.36, colour)
    chart.legend([("its weights", "blue"), ("its output", "orange")])
    return chart


def file_sizes(folder):
    names = [("float/checkpoint.safetensors", "float"), ("lenet8.miniqat", "8 bits"), ("lenet4.miniqat", "4 bits"), ("lenet2.miniqat", "2 bits")]
    chart = Chart("Bytes of LeNet-5: 32-bit variables, and model.miniqat", Axis("", -0.5, 3.5, [(i, words) for i, (_, words) in enumerate(names)]),
                  Axis("kB", 0, 260, [0, 50, 100, 150, 200, 250]))
    floats = sum(value.nbytes for name, value in variables(folder, "float").items() if ":" not in name)
    sizes = [floats if name.endswith("safetensors") else (folder / name).stat().st_size for name, _ in names]
    for i, size in enumerate(sizes):
        chart.bars([(i, size / 1000)], 0.5, "grey" if i == 0 else "blue")
        chart.label(i, size / 1000 + 5, f"{size:,}", "grey" if i == 0 else "blue", "middle")
    return chart


def numbers_on_grids(folder):
    chart = Chart("Errors of the distances, by outputs of 8 and of 4 bits", Axis("true, in cm", 10, 190, [20, 60, 100, 140, 180]),
                  Axis("predicted less true, in cm", -15, 15, [-15, -10, -5, 0, 5, 10, 15]))
    wanted = np.load(folder / "echoes.npz")["y_test"]
    chart.line([(10, 0), (190, 0)], "grey", "thin dashed")
    for bits, colour in (4, "orange"), (8, "blue"):
        examples = json.loads((folder / f"distances{bits}.json").read_text())["examples"]
        chart.dots([(wanted[one["example"]], one["outputs"][0] - wanted[one["example"]]) for one in examples], colour, 2.5)
    chart.legend([("8 bits", "blue"), ("4 bits", "orange")])
    return chart


FIGURES = [weights_on_grids, accuracy_of_grids, stairs, weight_path, activations, clipping_and_rounding, growing_range, folded_channels,
           per_channel, requantization, agreement, low_bits, changed_integers, sensitivity, file_sizes,
           numbers_on_grids]


def all_charts(folder):
    """The charts by the names of their files."""
    return {figure.__name__.replace("_", "-"): figure(folder) for figure in FIGURES}
