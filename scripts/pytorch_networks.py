"""The networks that scripts/import-against-pytorch exports: small ones written here, and torchvision's."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torchvision import models
from torchvision.models.resnet import BasicBlock
from torchvision.models.vgg import VGG, make_layers


def conv_norm(inputs, outputs, kernel=3, stride=1, groups=1, activation=nn.ReLU):
    layers = [nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False), nn.BatchNorm2d(outputs)]
    return nn.Sequential(*layers, *([activation()] if activation else []))


class Residual(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.a, self.b = conv_norm(inputs, outputs, 3, stride), conv_norm(outputs, outputs, activation=None)
        self.shortcut = conv_norm(inputs, outputs, 1, stride, activation=None) if inputs != outputs else nn.Identity()

    def forward(self, x):
        return F.relu(self.b(self.a(x)) + self.shortcut(x))


class Inverted(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        wide = 3 * inputs
        self.layers = nn.Sequential(conv_norm(inputs, wide, 1, activation=nn.ReLU6),
                                    conv_norm(wide, wide, 3, stride, wide, nn.ReLU6),
                                    conv_norm(wide, outputs, 1, activation=None))
        self.adds = stride == 1 and inputs == outputs

    def forward(self, x):
        return x + self.layers(x) if self.adds else self.layers(x)


class Excited(nn.Module):
    """Squeeze and excitation, hard swish: as in MobileNetV3."""

    def __init__(self, channels):
        super().__init__()
        self.first = conv_norm(channels, channels, 5, 2, channels, nn.Hardswish)
        self.squeeze, self.excite = nn.Conv2d(channels, 4, 1), nn.Conv2d(4, channels, 1)

    def forward(self, x):
        x = self.first(x)
        weights = F.hardsigmoid(self.excite(F.relu(self.squeeze(F.adaptive_avg_pool2d(x, 1)))))
        return x * weights


class Dense(nn.Module):
    def __init__(self, inputs):
        super().__init__()
        self.norm, self.conv = nn.BatchNorm2d(inputs), nn.Conv2d(inputs, 6, 3, padding=1, bias=False)

    def forward(self, x):
        return torch.cat([x, self.conv(F.relu(self.norm(x)))], 1)


class Viewed(nn.Module):
    """Flattens as older code does, by sizes."""

    def __init__(self, features, outputs):
        super().__init__()
        self.features, self.classes = features, outputs

    def forward(self, x):
        x = self.features(x)
        return self.classes(x.view(x.size(0), -1))


class Parted(nn.Module):
    """A gate by one half of the channels for the other, and a part of the image beside it."""

    def forward(self, x):
        gated = F.glu(x, 1)
        return torch.cat([gated, x[:, -5:-1, 1:, :-2].amax((2, 3), keepdim=True) + gated[:, :4]], 1)


class Scaled(nn.Module):
    """Constants before, between and behind layers: preprocessing, a scale layer, hardtanh, a softmax as a gate."""

    def __init__(self, channels):
        super().__init__()
        self.register_buffer("mean", torch.tensor([0.4, 0.5, 0.6]).view(1, 3, 1, 1))
        self.register_buffer("std", torch.tensor([0.2, 0.3, 0.25]).view(3, 1, 1))
        self.conv = nn.Conv2d(3, channels, 3, padding=1)
        self.factors, self.offsets = (nn.Parameter(torch.randn(channels, 1, 1)) for _ in range(2))
        self.classes = nn.Linear(channels, 10)

    def forward(self, x):
        x = F.relu(self.conv((x / 2.55 - self.mean) / self.std))
        x = F.hardtanh(x * self.factors + self.offsets) * 0.5
        gate = F.softmax(x.mean((2, 3)), 1)
        x = (1 - x) * gate[:, :, None, None]
        return self.classes(x.clamp(max=0.4).mean((2, 3))) * 3 + 1


class Sequences(nn.Module):
    """One dimension: plain, depthwise, grouped and dilated convolutions, pools, a skip, rows of a flattened sequence."""

    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Conv1d(3, 12, 5, 2, 2), nn.BatchNorm1d(12), nn.ReLU(), nn.MaxPool1d(3, 2, 1))
        self.deep = nn.Sequential(nn.Conv1d(12, 12, 3, padding=2, dilation=2, groups=12, bias=False), nn.Conv1d(12, 12, 1, groups=2),
                                  nn.BatchNorm1d(12), nn.ReLU())
        self.pool = nn.AvgPool1d(2, ceil_mode=True)
        self.dense, self.classes = nn.Linear(12 * 8, 16), nn.Linear(28, 10)

    def forward(self, x):
        x = self.first(x)
        x = self.pool(x + self.deep(x))
        return self.classes(torch.cat([x.mean(2), F.relu(self.dense(x.flatten(1)))], 1))


def head(channels):
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10))


def small_networks():
    """name -> (network, [channels, height, width] or [channels, steps])"""
    lenet = nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.Sigmoid(),
                          nn.AvgPool2d(2))
    resnet = nn.Sequential(conv_norm(3, 8, 7, 2), nn.MaxPool2d(3, 2, 1), Residual(8, 8, 1), Residual(8, 16, 2), Residual(16, 16, 1), head(16))
    mobile = nn.Sequential(conv_norm(3, 8, 3, 2, activation=nn.ReLU6), Inverted(8, 8, 1), Inverted(8, 12, 2), head(12))
    mobile3 = nn.Sequential(conv_norm(3, 16, 3, 2, activation=nn.Hardswish), Excited(16), head(16))
    vgg = nn.Sequential(*[layer for i, o in ((3, 8), (8, 12)) for layer in
                          (nn.Conv2d(i, o, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2, ceil_mode=True))],
                        nn.Flatten(), nn.Dropout(), nn.Linear(12 * 6 * 5, 20), nn.ReLU(), nn.Linear(20, 10), nn.Softmax(1))
    # A convolution with a bias right before a batch norm.
    dense = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), Dense(8), Dense(14), nn.BatchNorm2d(20), nn.ReLU(),
                          nn.AvgPool2d(3, 2, 1, count_include_pad=False), nn.AvgPool2d(3, 1, 1), head(20))
    bordered = nn.Sequential(nn.ZeroPad2d((0, 1, 2, 1)), nn.Conv2d(3, 6, 3, 2), nn.ReLU(), nn.ZeroPad2d((3, 0, 0, 3)),
                             nn.Conv2d(6, 8, 2), nn.ReLU(), head(8))
    grouped = nn.Sequential(conv_norm(3, 12, 3, 2), nn.Conv2d(12, 18, 3, padding=1, groups=3), nn.BatchNorm2d(18), nn.LeakyReLU(0.1),
                            nn.Conv2d(18, 16, 3, 2, groups=2), nn.LeakyReLU(0.2), Parted(), nn.AdaptiveMaxPool2d(1), nn.Flatten(),
                            nn.Linear(12, 10))
    return {"lenet": (Viewed(lenet, nn.Linear(16 * 5 * 6, 10)), [1, 28, 32]), "resnet": (resnet, [3, 34, 40]),
            "mobilenet_v2": (mobile, [3, 24, 30]), "mobilenet_v3": (mobile3, [3, 24, 30]), "vgg": (vgg, [3, 21, 18]),
            "densenet": (dense, [3, 20, 26]), "bordered": (bordered, [3, 21, 18]),
            "grouped": (grouped, [3, 25, 22]), "scaled": (Scaled(8), [3, 14, 17]), "sequences": (Sequences(), [3, 61])}


class LeNet(nn.Module):
    """LeNet-5 as PyTorch's tutorials write it."""

    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 6, 5, padding=2), nn.Conv2d(6, 16, 5)
        self.fc1, self.fc2, self.fc3 = nn.Linear(16 * 5 * 7, 120), nn.Linear(120, 84), nn.Linear(84, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = torch.flatten(F.max_pool2d(F.relu(self.conv2(x)), (2, 2)), 1)
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))


class ResNet20(nn.Module):
    """He et al. 2015, section 4.2, of torchvision's blocks."""

    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16)
        blocks, inputs = [], 16
        for outputs, stride in ((16, 1), (16, 1), (16, 1), (32, 2), (32, 1), (32, 1), (64, 2), (64, 1), (64, 1)):
            shortcut = None
            if stride != 1:
                shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))
            blocks.append(BasicBlock(inputs, outputs, stride, shortcut))
            inputs = outputs
        self.blocks, self.fc = nn.Sequential(*blocks), nn.Linear(64, 10)

    def forward(self, x):
        x = self.blocks(F.relu(self.bn1(self.conv1(x))))
        return self.fc(x.mean((2, 3)))


def torchvision_networks():
    """name -> (network, [channels, height, width])"""
    vgg = VGG(make_layers([16, "M", 32, "M", 64, 64, "M"], batch_norm=True), num_classes=10)
    vgg.classifier = nn.Sequential(nn.Linear(64 * 7 * 7, 64), nn.ReLU(True), nn.Dropout(), nn.Linear(64, 10))
    return {
        "LeNet": (LeNet(), [1, 28, 36]),
        "ResNet-20": (ResNet20(), [3, 32, 44]),
        "ResNet-18": (models.resnet18(num_classes=10), [3, 64, 96]),
        "MobileNetV2": (models.mobilenet_v2(num_classes=10), [3, 64, 96]),
        "MobileNetV3 small": (models.mobilenet_v3_small(num_classes=10), [3, 64, 96]),
        "SqueezeNet 1.1": (models.squeezenet1_1(num_classes=10), [3, 64, 96]),
        "ShuffleNetV2 x0.5": (models.shufflenet_v2_x0_5(num_classes=10), [3, 64, 96]),
        "DenseNet, growth 8": (models.DenseNet(growth_rate=8, block_config=(2, 3, 2, 2), num_init_features=16, num_classes=10),
                               [3, 64, 96]),
        "VGG, 4 convolutions": (vgg, [3, 56, 112]),
    }
