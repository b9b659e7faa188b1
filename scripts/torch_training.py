"""What trains a graph JSON with PyTorch's autograd as `miniqat train` does."""
import gzip

import numpy as np
import torch

import torch_graph


def variables_of(graph, trainable=True):
    return [node for node in graph["nodes"]
            if node["op"] == "Variable" and node["attrs"].get("trainable", True) == trainable]


def as_parameters(variables, graph):
    """Tensors of their own, those of trainable variables with gradients."""
    trainable = {node["name"] for node in variables_of(graph)}
    return {name: torch.tensor(values, requires_grad=name in trainable) for name, values in variables.items()}


def read_idx(directory, name, header):
    raw = directory / name
    content = raw.read_bytes() if raw.exists() else gzip.open(directory / (name + ".gz")).read()
    return np.frombuffer(content, np.uint8, offset=header)


class Training:
    """SGD with momentum, weights alone decayed, and ranges in steps of their logarithms."""

    def __init__(self, graph, variables, rate, momentum, weight_decay, range_rate):
        self.graph, self.rate, self.range_rate = graph, rate, range_rate
        self.parameters = as_parameters(variables, graph)
        factors = {node["name"] for node in variables_of(graph) if node["attrs"].get("update") == "multiplicative"}
        weights = [tensor for name, tensor in self.parameters.items() if name not in factors]
        decayed = [tensor for tensor in weights if tensor.dim() > 1]
        others = [tensor for tensor in weights if tensor.dim() <= 1]
        self.optimizer = torch.optim.SGD([{"params": decayed, "weight_decay": weight_decay}, {"params": others}],
                                         lr=rate, momentum=momentum)
        self.ranges = torch_graph.LogAdam([self.parameters[name] for name in factors], range_rate)

    def step(self, images, labels, factor=1):
        """Returns the loss. `factor` multiplies both rates."""
        feeds = {"images": torch.tensor(images), "labels": torch.tensor(labels)}
        loss = torch_graph.compute(self.graph, {**self.parameters, **feeds})["loss"]
        self.optimizer.zero_grad()
        loss.backward()
        for group in self.optimizer.param_groups:
            group["lr"] = factor * self.rate
        self.optimizer.step()
        self.ranges.rate = factor * self.range_rate
        self.ranges.step()
        return loss.item()
