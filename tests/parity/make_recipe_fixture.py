"""Makes tests/data/parity/mnist_recipe.safetensors: ten steps as language models are trained, on the small net.

    python3 tests/parity/make_recipe_fixture.py
"""

import os

import torch
from transformers import get_cosine_schedule_with_warmup

from make_mnist_fixture import OUT, SMALL_BATCH, STEPS, WORLD, rank_batch, rank_loss, report
from nets import SMALL, Net, fill
from safetensors_file import write

CLIP, WARMUP = 2.0, 2


def groups(net):
    """Weights decay; norms and biases, which have one dimension, do not."""
    params = list(net.parameters())
    return [
        {"params": [p for p in params if p.dim() >= 2], "weight_decay": 0.1},
        {"params": [p for p in params if p.dim() < 2], "weight_decay": 0.0},
    ]


def recipe(dtype):
    net = fill(Net(SMALL, dropout=False)).to(dtype)
    optimizer = torch.optim.AdamW(groups(net), lr=0.01, betas=(0.9, 0.95), eps=1e-8)
    scheduler = get_cosine_schedule_with_warmup(optimizer, WARMUP, STEPS)
    batches = [rank_batch(rank, WORLD, SMALL_BATCH, SMALL.image) for rank in range(WORLD)]
    losses, norms = [], []
    for _ in range(STEPS):
        optimizer.zero_grad()
        total = sum(rank_loss(net, batch, dtype)[1] for batch in batches)
        (total / len(batches)).backward()
        norms.append(torch.nn.utils.clip_grad_norm_(net.parameters(), CLIP).item())
        losses.append(total.item() / (WORLD * SMALL_BATCH))
        optimizer.step()
        scheduler.step()
    out = {f"final/{name}": p.detach() for name, p in net.named_parameters()}
    return {"loss": torch.tensor(losses, dtype=torch.float64), "norm": torch.tensor(norms, dtype=torch.float64), **out}


if __name__ == "__main__":
    torch.set_num_threads(1)
    truth = recipe(torch.float64)
    report("mnist_recipe", truth, recipe(torch.float32))
    print("norms", truth["norm"])
    tensors = {name: value.to(torch.float32).numpy() for name, value in truth.items()}
    write(os.path.join(OUT, "mnist_recipe.safetensors"), tensors, {"torch": torch.__version__})
