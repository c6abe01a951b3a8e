"""The FSDP tutorial's network in two sizes, and the formulas that fill its weights and batches.

Nothing here draws random numbers: weights, pixels and labels come from an integer hash of their index, so
that a program in another language makes the same bits without reading them from a file.
"""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass(frozen=True)
class Size:
    image: int  # pixels of a side
    conv1: int  # channels
    conv2: int
    hidden: int


SMALL = Size(image=12, conv1=4, conv2=6, hidden=16)
FULL = Size(image=28, conv1=32, conv2=64, hidden=128)
CLASSES = 10
PIXEL_STREAM, LABEL_STREAM = 100, 101  # hash streams; parameters use 0, 1, 2... in declaration order


class Net(nn.Module):
    def __init__(self, size=FULL, dropout=True):
        super().__init__()
        pooled = (size.image - 4) // 2
        self.conv1 = nn.Conv2d(1, size.conv1, 3, 1)
        self.conv2 = nn.Conv2d(size.conv1, size.conv2, 3, 1)
        self.dropout1 = nn.Dropout(0.25 if dropout else 0.0)
        self.dropout2 = nn.Dropout(0.5 if dropout else 0.0)
        self.fc1 = nn.Linear(size.conv2 * pooled * pooled, size.hidden)
        self.fc2 = nn.Linear(size.hidden, CLASSES)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        x = self.dropout1(F.max_pool2d(x, 2))
        x = F.relu(self.fc1(torch.flatten(x, 1)))
        x = self.fc2(self.dropout2(x))
        # of bf16 in float32: autocast does so on a GPU, but not on a CPU
        return F.log_softmax(x, dim=1, dtype=torch.float32 if x.dtype == torch.bfloat16 else None)


def hash32(index, stream):
    """MurmurHash3's 32-bit finalizer over index + (stream + 1) * 0x9e3779b9, all modulo 2^32."""
    h = np.asarray(index, np.uint64) + np.uint64((stream + 1) * 0x9E3779B9 & 0xFFFFFFFF)
    h = h.astype(np.uint32)
    h ^= h >> np.uint32(16)
    h *= np.uint32(0x85EBCA6B)
    h ^= h >> np.uint32(13)
    h *= np.uint32(0xC2B2AE35)
    return h ^ (h >> np.uint32(16))


def uniform(count, stream, bound):
    """count float32 values in [-bound, bound): (2 * hash / 2^32 - 1) * bound in double, rounded once."""
    return ((hash32(np.arange(count), stream) / 2.0**31 - 1.0) * bound).astype(np.float32)


def fill(net):
    """Weights and biases by formula, bound 1/sqrt(fan_in) of the layer as in PyTorch's own initialisation."""
    named = dict(net.named_parameters())
    for stream, (name, parameter) in enumerate(named.items()):
        fan_in = named[name.rsplit(".", 1)[0] + ".weight"][0].numel()
        values = uniform(parameter.numel(), stream, 1.0 / np.sqrt(float(fan_in)))
        parameter.data.copy_(torch.from_numpy(values).view_as(parameter))
    return net


def samples(indices, image):
    """Images [N, 1, image, image] float32, normalised as the tutorial does, and labels [N] int64.

    Sample n has the label hash(n) % 10; its pixel bytes are noise below 128 with a band of rows, chosen by
    the label, that is 128 brighter.
    """
    indices = np.asarray(indices, np.int64)
    labels = hash32(indices, LABEL_STREAM).astype(np.int64) % CLASSES
    pixel = indices[:, None] * image * image + np.arange(image * image)
    band = (np.arange(image * image) // image) * CLASSES // image
    byte = (hash32(pixel, PIXEL_STREAM) >> np.uint32(25)) + 128 * (band == labels[:, None])
    values = (byte.astype(np.float32) / np.float32(255) - np.float32(0.1307)) / np.float32(0.3081)
    return values.reshape(-1, 1, image, image), labels
