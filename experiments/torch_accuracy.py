"""A worker of peers-accuracy, on PyTorch: trains lenet5 with fake quantizers from a float network, makes integers of it, and
prints the accuracies of both.

    torch_accuracy.py SYSTEM NETWORK BITS FLOAT.safetensors DATA SEED EPOCHS THREADS

A SYSTEM is pytorch (eager mode: prepare_qat and convert), torchao (PT2E, lowered to oneDNN's integer operations) or brevitas
(QCDQ, run by ONNX Runtime)."""

import os
import sys
import tempfile

sys.dont_write_bytecode = True
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
import numpy as np
import torch
from torch import nn
from accuracy_side import BATCH, DECAY, MOMENTUM, Clock, Pictures, answers, layers, report

# As in PyTorch's tutorial on quantization-aware training: observers stop in the last epochs.
OBSERVED_EPOCHS = 3


def tensor(pictures):
    """NCHW."""
    return torch.from_numpy(np.ascontiguousarray(pictures.transpose(0, 3, 1, 2)))


def load(model, wanted):
    """miniqat's variables into the convolutions and products of a model of PyTorch."""
    own = [module for module in model.modules() if isinstance(module, (nn.Conv2d, nn.Linear))]
    before = None
    for module, (weights, biases) in zip(own, wanted, strict=True):
        if weights.ndim == 4:
            weights, before = weights.transpose(3, 2, 0, 1), weights.shape[3]
        else:
            # The first product reads pictures: rows in the order height, width, channels become channels, height, width.
            if before:
                side = round((weights.shape[0] // before)**0.5)
                weights = weights.reshape(side, side, before, -1).transpose(2, 0, 1, 3).reshape(weights.shape)
                before = None
            weights = weights.T
        with torch.no_grad():
            module.weight.copy_(torch.from_numpy(weights.copy()))
            module.bias.copy_(torch.from_numpy(biases.copy()))
    return model


def train(model, pictures, seed, epochs, stop_observers=None):
    """The seconds that it took. `stop_observers`: applied to the modules after OBSERVED_EPOCHS."""
    clock = Clock()
    # As in miniqat, weights alone decay.
    weights = [module.weight for module in model.modules() if isinstance(module, (nn.Conv2d, nn.Linear))]
    weights = weights or [parameter for parameter in model.parameters() if parameter.ndim > 1]
    others = [parameter for parameter in model.parameters() if all(parameter is not weight for weight in weights)]
    optimizer = torch.optim.SGD([{"params": weights, "weight_decay": DECAY}, {"params": others}], lr=0.1, momentum=MOMENTUM)
    for epoch, rate, x, labels in pictures.epochs(seed, epochs):
        if stop_observers and epoch == OBSERVED_EPOCHS:
            model.apply(stop_observers)
            stop_observers = None
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(model(tensor(x)), torch.from_numpy(labels)).backward()
        optimizer.step()
    return clock.seconds()


def logits_of(model):
    def logits(pictures):
        with torch.no_grad():
            return model(tensor(pictures)).numpy()

    return logits


def pytorch(network, bits, wanted, pictures, seed, epochs):
    from torch.ao import quantization
    from torch_side import BUILDERS, prepared_for_qat
    torch.backends.quantized.engine = "qnnpack"
    model = nn.Sequential(quantization.QuantStub(), load(BUILDERS[network](nn.ReLU), wanted), quantization.DeQuantStub())
    model = prepared_for_qat(model, True)

    seconds = train(model, pictures, seed, epochs, quantization.disable_observer)
    simulated = answers(logits_of(model.eval()), pictures.test)
    integers = answers(logits_of(quantization.convert(model)), pictures.test)
    report(pictures, simulated, integers, seconds, f"PyTorch {torch.__version__}, qnnpack")


def torchao(network, bits, wanted, pictures, seed, epochs):
    from torch_side import BUILDERS, prepared_by_export
    from torchao.quantization import pt2e
    from torchao.quantization.pt2e.lowering import lower_pt2e_quantized_to_x86
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e
    example = torch.zeros(BATCH, 1, 28, 28)
    model = prepared_by_export(load(BUILDERS[network](nn.ReLU), wanted), example)

    seconds = train(model, pictures, seed, epochs, pt2e.disable_observer)
    pt2e.move_exported_model_to_eval(model)
    simulated = answers(logits_of(model), pictures.test)
    integers = lower_pt2e_quantized_to_x86(convert_pt2e(model), (example,))
    # Lowered convolutions give channels last, of which a view, nn.Flatten in the exported graph, makes an error.
    for node in integers.graph.nodes:
        if node.target == torch.ops.aten.view.default:
            node.target = torch.ops.aten.reshape.default
    integers.recompile()
    report(pictures, simulated, answers(logits_of(integers), pictures.test), seconds, "torchao, oneDNN")


def brevitas(network, bits, wanted, pictures, seed, epochs):
    import onnxruntime
    from brevitas import nn as quantized
    from brevitas.export import export_onnx_qcdq
    from brevitas.quant import Int32Bias, Uint8ActPerTensorFloat
    options = {"weight_bit_width": bits, "bias_quant": Int32Bias, "return_quant_tensor": True}
    relu = lambda: quantized.QuantReLU(bit_width=bits, return_quant_tensor=True)
    conv = lambda *shape, padding: [quantized.QuantConv2d(*shape, padding=padding, **options), relu(), nn.MaxPool2d(2)]
    dense = lambda *shape: quantized.QuantLinear(*shape, bias=True, **options)
    model = nn.Sequential(quantized.QuantIdentity(act_quant=Uint8ActPerTensorFloat, return_quant_tensor=True),
                          *conv(1, 6, 5, padding=2), *conv(6, 16, 5, padding=0), nn.Flatten(), dense(400, 120), relu(),
                          dense(120, 84), relu(), dense(84, 10), quantized.QuantIdentity(bit_width=8))
    load(model.train(), wanted)
    seconds = train(model, pictures, seed, epochs)
    simulated = answers(logits_of(model.eval()), pictures.test)
    with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
        export_onnx_qcdq(model, args=torch.zeros(BATCH, 1, 28, 28), export_path=file.name, dynamo=False)
        session = onnxruntime.InferenceSession(file.name, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    integers = answers(lambda batch: session.run(None, {name: tensor(batch).numpy()})[0], pictures.test)
    report(pictures, simulated, integers, seconds, f"ONNX Runtime {onnxruntime.__version__}")


if __name__ == "__main__":
    system, network, bits, source, data, seed, epochs, threads = sys.argv[1:]
    torch.set_num_threads(int(threads))
    torch.set_flush_denormal(True)
    torch.manual_seed(int(seed))
    {"pytorch": pytorch, "torchao": torchao, "brevitas": brevitas}[system](
        network, int(bits), layers(network, source), Pictures(data), int(seed), int(epochs))
