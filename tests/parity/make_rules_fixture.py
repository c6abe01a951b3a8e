"""Makes what PyTorch decides rather than computes, in tests/data/parity/: which samples a rank gets, the
learning rate of each epoch, which modules become FSDP units, and how the wrapped network is printed.

    python3 tests/parity/make_rules_fixture.py
"""

import functools
import os

import numpy as np
import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.distributed.fsdp.wrap import size_based_auto_wrap_policy
from torch.optim.lr_scheduler import StepLR
from torch.utils.data.distributed import DistributedSampler

from nets import Net
from safetensors_file import write

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "parity")
SAMPLERS = [(60000, 3), (10000, 3), (10, 4), (3, 8)]  # items, ranks
MIN_NUM_PARAMS = [None, 100, 320, 321, 1000, 18496, 20000, 1179776, 1179777, 10**8]


def sampler_indices():
    """Per case and rank all indices if they are few, else the first and the last two; and their count."""
    out = {}
    for items, ranks in SAMPLERS:
        for rank in range(ranks):
            indices = list(DistributedSampler(range(items), ranks, rank, shuffle=False))
            out[f"sampler/{items}_{ranks}/rank{rank}/count"] = np.array(len(indices))
            kept = indices if len(indices) <= 4 else indices[:2] + indices[-2:]
            out[f"sampler/{items}_{ranks}/rank{rank}/indices"] = np.array(kept)
    return out


def learning_rates(step_size):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    scheduler = StepLR(optimizer, step_size=step_size, gamma=0.7)
    rates = []
    for _ in range(14):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return np.array(rates, np.float32)


def wrapped(min_num_params):
    policy = None
    if min_num_params is not None:
        policy = functools.partial(size_based_auto_wrap_policy, min_num_params=min_num_params)
    return FullyShardedDataParallel(Net(), auto_wrap_policy=policy, device_id=torch.device("cpu"))


def units(model):
    """Names of the modules that are units below the root."""
    names = [name for name, module in model.named_modules() if isinstance(module, FullyShardedDataParallel)]
    return [name.replace("_fsdp_wrapped_module.", "").replace("_fsdp_wrapped_module", "") for name in names if name]


def main():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    rates = {f"step_lr/step_size{n}": learning_rates(n) for n in (1, 3)}
    write(os.path.join(OUT, "rules.safetensors"), {**sampler_indices(), **rates}, {"torch": torch.__version__})
    with open(os.path.join(OUT, "units.txt"), "w") as file:
        for limit in MIN_NUM_PARAMS:
            model = wrapped(limit)
            name = "none" if limit is None else limit
            print(f"{name}:", *units(model), file=file)
            if limit in (None, 100, 20000):
                with open(os.path.join(OUT, f"tree_{name}.txt"), "w") as tree:
                    print(model, file=tree)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
