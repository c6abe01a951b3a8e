"""Reads what shoal-agent wrote with the programs it is meant for, as `make check-torch` does:

    shoal-agent --preset mnist ... --checkpoint.dir=ckpt --save-model=net.safetensors
    python3 tests/parity/check_formats.py net.safetensors ckpt/mnist_cnn-...steps

(or the model.safetensors of a language model's directory; and then the word bf16, of a run in bf16-true).

Both files were written at the end of one run, so both must hold the same weights: the export as Hugging Face's
safetensors reads it, the checkpoint as PyTorch's distributed checkpoint reader puts it together."""

import os
import sys

import torch
import torch.distributed.checkpoint as dcp
from safetensors.torch import load_file
from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader


def load_part(directory, names):
    """The tensors of one part of a checkpoint, whole, as PyTorch reads them."""
    reader = HuggingFaceStorageReader(directory)
    found = reader.read_metadata().state_dict_metadata
    state = {
        name: torch.full(tuple(found[name].size), float("nan"), dtype=found[name].properties.dtype) for name in names or found
    }
    dcp.load(state, storage_reader=HuggingFaceStorageReader(directory), no_dist=True)
    return state


def main():
    export, checkpoint = sys.argv[1:3]
    kept = torch.bfloat16 if "bf16" in sys.argv[3:] else torch.float32
    model = load_file(export)
    sharded = load_part(os.path.join(checkpoint, "model"), model)
    for name, tensor in model.items():
        assert tensor.dtype == kept and torch.isfinite(tensor).all(), name
        assert sharded[name].dtype == kept and torch.equal(tensor, sharded[name]), name
        print(f"{name} {list(tensor.shape)}: the same in both, norm {tensor.norm():.4f}")
    optimizer = load_part(os.path.join(checkpoint, "optimizer"), None)
    for name, tensor in optimizer.items():
        parameter = name.rsplit(".", 1)[0]
        assert tensor.dtype == kept and tensor.shape == model[parameter].shape and torch.isfinite(tensor).all(), name
    print(f"{len(optimizer)} tensors of optimizer state")


main()
