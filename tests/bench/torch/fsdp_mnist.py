"""The FSDP tutorial's training loop in PyTorch on the CPU, as the peer to be compared with.

    fsdp_mnist.py --ranks 4 --threads 1 ddp full_shard      prints samples/s of each strategy; ddp_compile: through torch.compile
    fsdp_mnist.py --ranks 4 --threads 1 --epochs 2 ddp      trains instead and prints the test accuracy

PyTorch gets its best: the whole normalised set lies in memory, so no loader slows it down; images and weights
are laid out channels-last, which was the faster layout; DDP has a static graph and gradients that are views of
its buckets (compiled, it has no static graph: the two exclude each other). The strategies take turns in short rounds, so that a disturbance from outside meets all of them,
and the median round counts.
"""

import argparse
import functools
import gzip
import itertools
import os
import socket
import statistics
import time

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy, fully_shard
from torch.distributed.fsdp.wrap import size_based_auto_wrap_policy
from torch.nn.parallel import DistributedDataParallel
from torch.optim.lr_scheduler import StepLR


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3, 1)
        self.conv2 = nn.Conv2d(32, 64, 3, 1)
        self.dropout1 = nn.Dropout(0.25)
        self.dropout2 = nn.Dropout(0.5)
        self.fc1 = nn.Linear(9216, 128)
        self.fc2 = nn.Linear(128, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        x = self.dropout1(F.max_pool2d(x, 2))
        x = F.relu(self.fc1(torch.flatten(x, 1)))
        x = self.fc2(self.dropout2(x))
        return F.log_softmax(x, dim=1)


def read_idx(path, header_bytes):
    with gzip.open(path) as file:
        return np.frombuffer(file.read(), np.uint8, offset=header_bytes)


def load(folder, part):
    """Images [N, 1, 28, 28] float32, normalised, and labels [N] int64."""
    pixels = read_idx(f"{folder}/{part}-images-idx3-ubyte.gz", 16)
    labels = read_idx(f"{folder}/{part}-labels-idx1-ubyte.gz", 8)
    images = torch.from_numpy(pixels.reshape(-1, 1, 28, 28).astype(np.float32))
    return images.div_(255).sub_(0.1307).div_(0.3081), torch.from_numpy(labels.astype(np.int64))


def wrap_fsdp(net, strategy, min_num_params=None, mesh=None):
    policy = None
    if min_num_params is not None:
        policy = functools.partial(size_based_auto_wrap_policy, min_num_params=min_num_params)
    return FullyShardedDataParallel(
        net, sharding_strategy=strategy, auto_wrap_policy=policy, device_mesh=mesh,
        use_orig_params=True, device_id=torch.device("cpu"),
    )


def wrap_ddp(net, static_graph=True):
    return DistributedDataParallel(net, static_graph=static_graph, gradient_as_bucket_view=True)


def wrap_hybrid(net, strategy):
    """Shard groups of half the ranks, as ours in `make bench`."""
    replicas = 2 if dist.get_world_size() % 2 == 0 else 1
    mesh = init_device_mesh("cpu", (replicas, dist.get_world_size() // replicas), mesh_dim_names=("replica", "shard"))
    return wrap_fsdp(net, strategy, mesh=mesh)


def wrap_fsdp2(net):
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    return fully_shard(net, mesh=mesh)


STRATEGIES = {
    "plain": lambda net: net,
    "ddp": wrap_ddp,
    "full_shard": lambda net: wrap_fsdp(net, ShardingStrategy.FULL_SHARD),
    "full_shard_wrapped": lambda net: wrap_fsdp(net, ShardingStrategy.FULL_SHARD, min_num_params=20000),
    "shard_grad_op": lambda net: wrap_fsdp(net, ShardingStrategy.SHARD_GRAD_OP),
    "no_shard": lambda net: wrap_fsdp(net, ShardingStrategy.NO_SHARD),
    "hybrid_shard": lambda net: wrap_hybrid(net, ShardingStrategy.HYBRID_SHARD),
    "hybrid_shard_zero2": lambda net: wrap_hybrid(net, ShardingStrategy._HYBRID_SHARD_ZERO2),
    "fsdp2": wrap_fsdp2,
}
COMPILED = {
    "plain_compile": STRATEGIES["plain"],
    "ddp_compile": lambda net: wrap_ddp(net, static_graph=False),
    "full_shard_compile": STRATEGIES["full_shard"],
}


def batches(images, labels, options, rank, epoch):
    """DistributedSampler's rule: one shuffled order for all ranks, every ranks-th sample is this rank's."""
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(epoch))[rank :: options.ranks]
    for chosen in order.split(options.batch):
        batch = images[chosen]
        if options.channels_last:
            batch = batch.contiguous(memory_format=torch.channels_last)
        yield batch, labels[chosen]


def make_trainer(strategy, options):
    net = Net()
    if options.channels_last:
        net = net.to(memory_format=torch.channels_last)
    model = (STRATEGIES | COMPILED)[strategy](net)
    if strategy in COMPILED:
        model.compile()
    return model, torch.optim.Adadelta(model.parameters(), lr=1.0)


def train_step(model, optimizer, batch, labels):
    optimizer.zero_grad()
    loss = F.nll_loss(model(batch), labels, reduction="sum")
    loss.backward()
    optimizer.step()
    loss.item()  # the tutorial adds it up


def endless(images, labels, options, rank):
    for epoch in itertools.count():
        yield from batches(images, labels, options, rank, epoch)


def timed_round(model, optimizer, source, steps):
    """Seconds of so many steps, from barrier to barrier."""
    dist.barrier()
    start = time.perf_counter()
    for batch, labels in itertools.islice(source, steps):
        train_step(model, optimizer, batch, labels)
    dist.barrier()
    return time.perf_counter() - start


def measure(options, rank):
    source = endless(*load(options.data, "train"), options, rank)
    trainers = {strategy: make_trainer(strategy, options) for strategy in options.strategies}
    seconds = {strategy: [] for strategy in options.strategies}
    for trainer in trainers.values():
        timed_round(*trainer, source, options.warmup)
    for _ in range(options.rounds):
        for strategy, trainer in trainers.items():
            seconds[strategy].append(timed_round(*trainer, source, options.steps))
    for strategy, rounds in seconds.items() if rank == 0 else ():
        step = statistics.median(rounds) / options.steps
        print(
            f"strategy={strategy} ranks={options.ranks} threads={options.threads} "
            f"samples_per_s={options.batch * options.ranks / step:.0f} step_ms={1e3 * step:.2f}",
            flush=True,
        )


def evaluate(model, data, options, rank):
    """Share of the test images that are told right."""
    model.eval()
    right = torch.zeros(2)
    with torch.no_grad():
        for batch, labels in batches(*data, options, rank, 0):
            right += torch.tensor([(model(batch).argmax(1) == labels).sum().item(), len(labels)])
    model.train()
    dist.all_reduce(right)
    return (right[0] / right[1]).item()


def train(strategy, options, rank):
    data, test = load(options.data, "train"), load(options.data, "t10k")
    model, optimizer = make_trainer(strategy, options)
    scheduler = StepLR(optimizer, step_size=1, gamma=0.7)
    for epoch in range(options.epochs):
        start = time.perf_counter()
        for batch, labels in batches(*data, options, rank, epoch):
            train_step(model, optimizer, batch, labels)
        seconds = time.perf_counter() - start
        accuracy = evaluate(model, test, options, rank)
        scheduler.step()
        if rank == 0:
            print(f"strategy={strategy} epoch={epoch + 1} accuracy={accuracy:.4f} seconds={seconds:.1f}", flush=True)


def work(rank, options):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(options.port))
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    dist.init_process_group("gloo", rank=rank, world_size=options.ranks)
    if options.epochs:
        for strategy in options.strategies:
            train(strategy, options, rank)
    else:
        measure(options, rank)
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("strategies", nargs="+", choices=STRATEGIES | COMPILED, metavar="STRATEGY", help=", ".join(STRATEGIES | COMPILED))
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--threads", type=int, default=1, help="of each rank")
    parser.add_argument("--batch", type=int, default=64, help="samples of a rank and step")
    parser.add_argument("--warmup", type=int, default=10, help="steps")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=30, help="of a round")
    parser.add_argument("--epochs", type=int, default=0, help="train this long instead of measuring")
    parser.add_argument("--channels-last", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--data", default="/usr/share/datasets/fashion-mnist")
    options = parser.parse_args()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        options.port = free.getsockname()[1]
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # else its pool of compilers keeps the processes from ending
    mp.spawn(work, args=(options,), nprocs=options.ranks)


if __name__ == "__main__":
    main()
