"""Makes tests/data/parity/schedules.safetensors: the learning rate of each step as transformers' schedulers give it.

    python3 tests/parity/make_schedules_fixture.py
"""

import os

import numpy as np
import torch
import transformers
from transformers import optimization as hf

from safetensors_file import write

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "parity", "schedules.safetensors")
PEAK, FLOOR, STEPS, WARMUP, COOLDOWN = 3e-4, 3e-5, 57, 7, 20

SCHEDULES = {
    "constant_with_warmup": lambda o: hf.get_constant_schedule_with_warmup(o, WARMUP),
    "linear": lambda o: hf.get_linear_schedule_with_warmup(o, WARMUP, STEPS),
    "linear_no_warmup": lambda o: hf.get_linear_schedule_with_warmup(o, 0, STEPS),
    "cosine": lambda o: hf.get_cosine_schedule_with_warmup(o, WARMUP, STEPS),
    "cosine_2_waves": lambda o: hf.get_cosine_schedule_with_warmup(o, WARMUP, STEPS, num_cycles=2),
    "cosine_min_lr": lambda o: hf.get_cosine_with_min_lr_schedule_with_warmup(o, WARMUP, STEPS, min_lr=FLOOR),
    "restarts": lambda o: hf.get_cosine_with_hard_restarts_schedule_with_warmup(o, WARMUP, STEPS),
    "restarts_3": lambda o: hf.get_cosine_with_hard_restarts_schedule_with_warmup(o, WARMUP, STEPS, num_cycles=3),
    "wsd": lambda o: hf.get_wsd_schedule(o, WARMUP, COOLDOWN, STEPS),
    "wsd_min_lr": lambda o: hf.get_wsd_schedule(o, WARMUP, COOLDOWN, STEPS, min_lr_ratio=FLOOR / PEAK),
}


def rates(make):
    """During each step, and one step beyond the end."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=PEAK)
    scheduler = make(optimizer)
    out = []
    for _ in range(STEPS + 1):
        out.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return np.array(out, np.float32)


if __name__ == "__main__":
    versions = {"torch": torch.__version__, "transformers": transformers.__version__}
    write(OUT, {name: rates(make) for name, make in SCHEDULES.items()}, versions)
