"""Makes tests/data/parity/mnist_*.safetensors; what is in them is told in the README.md there.

    python3 tests/parity/make_mnist_fixture.py

Every figure is computed by PyTorch in double precision and stored as float32. The same work in float32 is
done beside it, and the differences are printed: no implementation in float32 can be asked for less. So they
are for bf16 under autocast, where a gradient's difference is measured as one vector.
"""

import os

import numpy as np
import torch
import torch.nn.functional as F

from nets import FULL, SMALL, Net, fill, samples
from safetensors_file import write

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, "..", "data", "parity")
STEPS = 10
WORLD = 4
SMALL_BATCH = 8  # samples per rank
FULL_BATCH = 16
PICKED = 16  # elements stored of each tensor of the full-size net

OPTIMIZERS = {
    "adadelta": (torch.optim.Adadelta, dict(lr=1.0, rho=0.9, eps=1e-6)),
    "sgd": (torch.optim.SGD, dict(lr=0.01)),
    "sgd_momentum": (torch.optim.SGD, dict(lr=0.01, momentum=0.9)),
    "sgd_nesterov": (torch.optim.SGD, dict(lr=0.01, momentum=0.9, nesterov=True)),
    "sgd_weight_decay": (torch.optim.SGD, dict(lr=0.01, momentum=0.9, weight_decay=0.1)),
    "adam": (torch.optim.Adam, dict(lr=0.01, betas=(0.9, 0.999), eps=1e-8)),
    "adamw": (torch.optim.AdamW, dict(lr=0.01, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01)),
}
NOTES = {name: " ".join(f"{k}={v}" for k, v in options.items()) for name, (_, options) in OPTIMIZERS.items()}


def weights_of(dtype):
    """Mixed precision keeps weights, their gradients and the optimizer's state in float32."""
    return torch.float32 if dtype == torch.bfloat16 else dtype


def rank_batch(rank, world, batch, image, step=0):
    """What DistributedSampler without shuffling hands to a rank: every world-th sample."""
    values, labels = samples((step * batch + np.arange(batch)) * world + rank, image)
    return torch.from_numpy(values), torch.from_numpy(labels)


def rank_loss(net, batch, dtype):
    """Log-probabilities [B, 10] and the NLL summed over the batch; bfloat16: of a float32 net under autocast."""
    with torch.autocast("cpu", torch.bfloat16, enabled=dtype == torch.bfloat16):
        log_prob = net(batch[0].to(weights_of(dtype)))
        return log_prob, F.nll_loss(log_prob, batch[1], reduction="sum")


def train_step(net, optimizer, batches, dtype):
    """One step on the mean over the ranks of the summed loss; returns the loss per sample before it."""
    optimizer.zero_grad()
    total = sum(rank_loss(net, batch, dtype)[1] for batch in batches)
    (total / len(batches)).backward()
    optimizer.step()
    return total.item() / sum(len(batch[1]) for batch in batches)


def small_gradients(dtype):
    """Forward and backward of the small net on each rank's batch, and its gradients for 1 to WORLD ranks."""
    net = fill(Net(SMALL, dropout=False)).to(weights_of(dtype))
    out = {f"init/{name}": p.detach().clone() for name, p in net.named_parameters()}
    sums = {name: 0.0 for name, _ in net.named_parameters()}
    for rank in range(WORLD):
        batch = rank_batch(rank, WORLD, SMALL_BATCH, SMALL.image)
        net.zero_grad()
        log_prob, loss = rank_loss(net, batch, dtype)
        loss.backward()
        out[f"rank{rank}/input"], out[f"rank{rank}/target"] = batch
        out[f"rank{rank}/log_prob"], out[f"rank{rank}/loss"] = log_prob.detach(), loss.detach()
        for name, parameter in net.named_parameters():
            sums[name] = sums[name] + parameter.grad
            out[f"world{rank + 1}/grad/{name}"] = sums[name] / (rank + 1)
    return out


def small_training(dtype):
    """STEPS steps of every optimizer on the small net, always on the same WORLD batches."""
    out = {}
    batches = [rank_batch(rank, WORLD, SMALL_BATCH, SMALL.image) for rank in range(WORLD)]
    for case, (kind, options) in OPTIMIZERS.items():
        net = fill(Net(SMALL, dropout=False)).to(weights_of(dtype))
        optimizer = kind(net.parameters(), **options)
        losses = [train_step(net, optimizer, batches, dtype) for _ in range(STEPS)]
        out[f"{case}/loss"] = torch.tensor(losses, dtype=torch.float64)
        for name, parameter in net.named_parameters():
            out[f"{case}/final/{name}"] = parameter.detach()
    return out


def picks(parameter):
    """PICKED positions spread over a tensor, the first and the last among them."""
    return torch.linspace(0, parameter.numel() - 1, PICKED, dtype=torch.float64).long()


def full_training(dtype):
    """The tutorial's own net: STEPS steps over fresh batches; norms and a few elements of each tensor."""
    out = {}
    for case in ("adadelta", "sgd"):
        kind, options = OPTIMIZERS[case]
        net = fill(Net(FULL, dropout=False)).to(weights_of(dtype))
        optimizer = kind(net.parameters(), **options)
        losses = []
        for step in range(STEPS):
            batches = [rank_batch(rank, WORLD, FULL_BATCH, FULL.image, step) for rank in range(WORLD)]
            losses.append(train_step(net, optimizer, batches, dtype))
            for name, parameter in net.named_parameters() if step == 0 else ():
                at = picks(parameter)
                out[f"grad_norm/{name}"] = parameter.grad.double().norm()
                out[f"grad/{name}"] = parameter.grad.flatten()[at]
                out[f"index/{name}"] = at
        out[f"{case}/loss"] = torch.tensor(losses, dtype=torch.float64)
        for name, parameter in net.named_parameters():
            out[f"{case}/final/{name}"] = parameter.detach().flatten()[picks(parameter)]
            out[f"{case}/final_norm/{name}"] = parameter.detach().double().norm()
    return out


def optimizer_traces(dtype):
    """Each optimizer alone: one vector, STEPS given gradients of very different sizes, weights after each."""
    width = 33
    rng = np.random.default_rng(1)
    sizes = 10.0 ** rng.uniform(-6, 2, width)
    gradients = (rng.standard_normal((STEPS, width)) * sizes).astype(np.float32)
    init = rng.standard_normal(width).astype(np.float32)
    gradients[:, 0] = 0.0  # an element that never gets a gradient
    out = {"init": torch.from_numpy(init), "grad": torch.from_numpy(gradients)}
    for case, (kind, options) in OPTIMIZERS.items():
        weight = torch.nn.Parameter(torch.from_numpy(init.copy()).to(dtype))
        optimizer, after = kind([weight], **options), []
        for gradient in gradients:
            weight.grad = torch.from_numpy(gradient).to(dtype)
            optimizer.step()
            after.append(weight.detach().clone())
        out[f"{case}/weight"] = torch.stack(after)
    return out


def op_cases(dtype):
    """The corners of single ops: ties in pooling, relu at zero, log-softmax of large inputs."""
    ties = torch.tensor([[1, 1, 2, 0], [1, 1, 0, 2], [0, 0, -1, -1], [0, 0, -1, -1]], dtype=dtype)
    ties = ties.view(1, 1, 4, 4).requires_grad_()
    pooled = F.max_pool2d(ties, 2)
    (pooled * torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=dtype)).sum().backward()
    relu = torch.tensor([-1.0, 0.0, 1.0], dtype=dtype, requires_grad=True)
    F.relu(relu).sum().backward()
    large = torch.tensor([[1e4, 0, -1e4], [88.8, 88.7, 88.6], [-1e4, -1e4, -1e4], [1e38, 1e38, -1e38]])
    large = large.to(dtype).requires_grad_()
    log_prob = F.log_softmax(large, dim=1)
    target = torch.tensor([0, 1, 2, 0])
    F.nll_loss(log_prob, target, reduction="sum").backward()
    return {
        "max_pool/input": ties.detach(), "max_pool/output": pooled.detach(), "max_pool/grad_input": ties.grad,
        "relu/input": relu.detach(), "relu/grad_input": relu.grad,
        "log_softmax/input": large.detach(), "log_softmax/output": log_prob.detach(),
        "log_softmax/target": target, "log_softmax/grad_input": large.grad,
    }


def report(title, truth, single):
    """The largest difference of float32 from double, per kind of tensor: absolute, and against its kind's size."""
    kinds = {}
    for name, value in truth.items():
        if value.dtype == torch.int64:
            assert torch.equal(value, single[name]), name
            continue
        kind = "/".join(part for part in name.split("/") if "." not in part)
        worst, size = kinds.get(kind, (0.0, 0.0))
        difference = (value.double() - single[name].double()).abs().max().item()
        kinds[kind] = max(worst, difference), max(size, value.abs().max().item())
    for kind, (worst, size) in kinds.items():
        print(f"{title:18} {kind:26} max |x| {size:9.3e}   max |fp32 - fp64| {worst:9.2e}")


def report_bf16(title, truth, mixed):
    """The largest difference of bf16 under autocast from double: of losses absolute, of each parameter's gradient
    the L2 norm of the difference over its own."""
    kinds = {}
    for name, value in truth.items():
        first, *_, last = name.split("/")
        difference = value.double() - mixed[name].double()
        if last == "loss":
            kind, size = "rank/loss" if first.startswith("rank") else name, difference.abs().max()
        elif first.startswith("world"):
            kind, size = f"grad/{last}", difference.norm() / value.double().norm()
        else:
            continue
        kinds[kind] = max(kinds.get(kind, 0.0), size.item())
    for kind, worst in kinds.items():
        print(f"{title:18} {kind:26} bf16 is off by {worst:9.2e}")


def store(file, make, has_bf16=False):
    truth, single = make(torch.float64), make(torch.float32)
    report(file, truth, single)
    if has_bf16:
        report_bf16(file, truth, make(torch.bfloat16))
    tensors = {
        name: value.numpy() if value.dtype == torch.int64 else value.to(torch.float32).numpy()
        for name, value in truth.items()
    }
    write(os.path.join(OUT, file + ".safetensors"), tensors, {"torch": torch.__version__, **NOTES})


def main():
    torch.set_num_threads(1)
    os.makedirs(OUT, exist_ok=True)
    store("mnist_small", small_gradients, has_bf16=True)
    store("mnist_small_train", small_training, has_bf16=True)
    store("mnist_full", full_training)
    store("optimizers", optimizer_traces)
    store("ops", op_cases)


if __name__ == "__main__":
    main()
