"""A worker of peers-accuracy, on PyTorch: trains a network with fake quantizers from a float network, makes integers of it, and
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
from torch.ao import quantization
from accuracy_side import BATCH, DECAY, MOMENTUM, Clock, Pictures, answers, layers, report
from torch_side import BUILDERS, Residual, prepared_by_export, prepared_for_qat

# As in PyTorch's tutorial on quantization-aware training: batch norms keep their statistics, then observers stop.
NORMS_EPOCHS, OBSERVED_EPOCHS = 2, 3


def tensor(pictures):
    """NCHW."""
    return torch.from_numpy(np.ascontiguousarray(pictures.transpose(0, 3, 1, 2)))


def load(model, wanted):
    """miniqat's variables into the convolutions, batch norms and products of a model of PyTorch. Windows of PyTorch with a stride
    of 2 begin a pixel before those of miniqat; so networks with batch norms are turned by 180 degrees, as their pictures are."""
    own = [module for module in model.modules() if isinstance(module, (nn.Conv2d, nn.Linear))]
    norms = iter([module for module in model.modules() if isinstance(module, nn.BatchNorm2d)])
    is_turned = any(len(arrays) > 2 for arrays in wanted)
    side = None
    for module, (weights, *others) in zip(own, wanted, strict=True):
        if weights.ndim == 4:
            weights, channels = (weights[::-1, ::-1] if is_turned else weights).transpose(3, 2, 0, 1), weights.shape[3]
            side = 0
        else:
            # The first product may read pictures: rows in the order height, width, channels become channels, height, width.
            if side == 0:
                side = round((weights.shape[0] // channels)**0.5)
                weights = weights.reshape(side, side, channels, -1).transpose(2, 0, 1, 3).reshape(weights.shape)
            weights = weights.T
        targets = [module.weight]
        if len(others) == 1:
            targets.append(module.bias)
        else:
            norm = next(norms)
            targets += [norm.weight, norm.bias, norm.running_mean, norm.running_var]
        with torch.no_grad():
            for target, array in zip(targets, [weights, *others], strict=True):
                target.copy_(torch.from_numpy(array.copy()))
    return model


def built(network, wanted):
    model = BUILDERS[network](nn.ReLU)
    for module in model.modules():
        if isinstance(module, Residual):
            # In a turned network the other pixel of two.
            module.first = module.stride - 1
    return load(model, wanted)


def example(network):
    return torch.zeros(BATCH, *((3, 32, 32) if network == "resnet20" else (1, 28, 28)))


def train(model, pictures, seed, epochs, freeze_norms=None, stop_observers=None):
    """The seconds that it took. `freeze_norms` and `stop_observers`: applied to the model after so many epochs."""
    clock = Clock()
    # As in miniqat, weights alone decay.
    weights = [module.weight for module in model.modules() if isinstance(module, (nn.Conv2d, nn.Linear))]
    weights = weights or [parameter for parameter in model.parameters() if parameter.ndim > 1]
    others = [parameter for parameter in model.parameters() if all(parameter is not weight for weight in weights)]
    optimizer = torch.optim.SGD([{"params": weights, "weight_decay": DECAY}, {"params": others}], lr=0.1, momentum=MOMENTUM)
    due = {NORMS_EPOCHS: freeze_norms, OBSERVED_EPOCHS: stop_observers}
    for epoch, rate, x, labels in pictures.epochs(seed, epochs):
        if change := due.pop(epoch, None):
            change(model)
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
    torch.backends.quantized.engine = "qnnpack"
    model = nn.Sequential(quantization.QuantStub(), built(network, wanted), quantization.DeQuantStub())
    model = prepared_for_qat(model, True)

    seconds = train(model, pictures, seed, epochs, lambda model: model.apply(torch.ao.nn.intrinsic.qat.freeze_bn_stats),
                    lambda model: model.apply(quantization.disable_observer))
    simulated = answers(logits_of(model.eval()), pictures.test)
    integers = answers(logits_of(quantization.convert(model)), pictures.test)
    report(pictures, simulated, integers, seconds, f"PyTorch {torch.__version__}, qnnpack")


def torchao(network, bits, wanted, pictures, seed, epochs):
    from torchao.quantization import pt2e
    from torchao.quantization.pt2e.lowering import lower_pt2e_quantized_to_x86
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e
    model = prepared_by_export(built(network, wanted), example(network))

    def freeze_norms(model):
        for node in model.graph.nodes:
            if node.target == torch.ops.aten.batch_norm.default:
                is_training = 5
                node.args = (*node.args[:is_training], False, *node.args[is_training + 1:])
        model.recompile()

    seconds = train(model, pictures, seed, epochs, freeze_norms, lambda model: model.apply(pt2e.disable_observer))
    pt2e.move_exported_model_to_eval(model)
    simulated = answers(logits_of(model), pictures.test)
    integers = lower_pt2e_quantized_to_x86(convert_pt2e(model), (example(network),))
    # Lowered convolutions give channels last, of which a view, nn.Flatten in the exported graph, makes an error.
    for node in integers.graph.nodes:
        if node.target == torch.ops.aten.view.default:
            node.target = torch.ops.aten.reshape.default
    integers.recompile()
    report(pictures, simulated, answers(logits_of(integers), pictures.test), seconds, "torchao, oneDNN")


def brevitas(network, bits, wanted, pictures, seed, epochs):
    import onnxruntime
    from brevitas.export import export_onnx_qcdq
    model = load({"lenet5": brevitas_lenet5, "resnet20": brevitas_resnet20}[network](bits).train(), wanted)
    seconds = train(model, pictures, seed, epochs)
    simulated = answers(logits_of(model.eval()), pictures.test)
    with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
        export_onnx_qcdq(model, args=example(network), export_path=file.name, dynamo=False)
        session = onnxruntime.InferenceSession(file.name, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    integers = answers(lambda batch: session.run(None, {name: tensor(batch).numpy()})[0], pictures.test)
    report(pictures, simulated, integers, seconds, f"ONNX Runtime {onnxruntime.__version__}")


def brevitas_lenet5(bits):
    from brevitas import nn as quantized
    from brevitas.quant import Int32Bias, Uint8ActPerTensorFloat
    options = {"weight_bit_width": bits, "bias_quant": Int32Bias, "return_quant_tensor": True}
    relu = lambda: quantized.QuantReLU(bit_width=bits, return_quant_tensor=True)
    conv = lambda *shape, padding: [quantized.QuantConv2d(*shape, padding=padding, **options), relu(), nn.MaxPool2d(2)]
    dense = lambda *shape: quantized.QuantLinear(*shape, bias=True, **options)
    return nn.Sequential(quantized.QuantIdentity(act_quant=Uint8ActPerTensorFloat, return_quant_tensor=True),
                         *conv(1, 6, 5, padding=2), *conv(6, 16, 5, padding=0), nn.Flatten(), dense(400, 120), relu(),
                         dense(120, 84), relu(), dense(84, 10), quantized.QuantIdentity(bit_width=8))


def brevitas_resnet20(bits):
    """As in Brevitas' own residual networks batch norms stay in float; the first and the last layer have 8 bits. The sum is
    quantized behind its Relu."""
    from brevitas import nn as quantized
    from brevitas.quant import Int8WeightPerChannelFloat

    class Block(nn.Module):
        def __init__(self, inputs, channels):
            super().__init__()
            self.stride, self.missing = (2 if channels > inputs else 1), channels - inputs
            self.convs = nn.Sequential(*conv_norm(inputs, channels, self.stride), relu(), *conv_norm(channels, channels))
            self.relu = relu()

        def forward(self, x):
            kept = x[:, :, self.stride - 1::self.stride, self.stride - 1::self.stride]
            side = self.missing // 2
            return self.relu(self.convs(x) + nn.functional.pad(kept, (0, 0, 0, 0, side, self.missing - side)))

    def relu():
        return quantized.QuantReLU(bit_width=bits)

    def conv_norm(inputs, channels, stride=1, width=bits):
        conv = quantized.QuantConv2d(inputs, channels, 3, stride, padding=1, bias=False, weight_bit_width=width,
                                     weight_quant=Int8WeightPerChannelFloat)
        return conv, nn.BatchNorm2d(channels, eps=1e-5)

    blocks = [Block(inputs if k == 0 else channels, channels)
              for inputs, channels in ((16, 16), (16, 32), (32, 64)) for k in range(3)]
    fc = quantized.QuantLinear(64, 10, bias=True, weight_bit_width=8)
    return nn.Sequential(quantized.QuantIdentity(bit_width=8), *conv_norm(3, 16, width=8), relu(), *blocks,
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), quantized.QuantIdentity(bit_width=bits), fc,
                         quantized.QuantIdentity(bit_width=8))


if __name__ == "__main__":
    system, network, bits, source, data, seed, epochs, threads = sys.argv[1:]
    torch.set_num_threads(int(threads))
    torch.set_flush_denormal(True)
    torch.manual_seed(int(seed))
    {"pytorch": pytorch, "torchao": torchao, "brevitas": brevitas}[system](
        network, int(bits), layers(network, source), Pictures(network, data, turned=network == "resnet20"), int(seed),
        int(epochs))
