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

# Trainer's own names, as get_scheduler() takes them: name, warm-up, steps, keyword arguments.
TRAINER = {
    "trainer_linear": ("linear", 3, 10, {}),
    "trainer_linear_long": ("linear", 10, 4, {}),
    "trainer_cosine": ("cosine", 3, 10, {}),
    "trainer_cosine_long": ("cosine", 10, 4, {}),
    "trainer_constant": ("constant", 3, 10, {}),
    "trainer_constant_with_warmup": ("constant_with_warmup", 3, 10, {}),
    "trainer_cosine_with_restarts": ("cosine_with_restarts", 3, 10, {"num_cycles": 2}),
    "trainer_polynomial": ("polynomial", 3, 10, {}),
    "trainer_polynomial_2": ("polynomial", 3, 10, {"power": 2, "lr_end": 1e-5}),
    "trainer_inverse_sqrt": ("inverse_sqrt", 3, 10, {}),
    "trainer_inverse_sqrt_cold": ("inverse_sqrt", 0, 10, {}),
    "trainer_cosine_with_min_lr": ("cosine_with_min_lr", 3, 10, {"min_lr": 1e-5}),
    "trainer_cosine_with_min_lr_rate": ("cosine_with_min_lr", 3, 10, {"min_lr_rate": 0.1}),
    "trainer_warmup_stable_decay": ("warmup_stable_decay", 3, 10, {"num_decay_steps": 4, "min_lr_ratio": 0.1}),
    "trainer_warmup_stable_waves": ("warmup_stable_decay", 3, 10, {"num_decay_steps": 6, "num_cycles": 1.25}),
}

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


def rates(make, steps=STEPS):
    """During each step, and one step beyond the end."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=PEAK)
    scheduler = make(optimizer)
    out = []
    for _ in range(steps + 1):
        out.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return np.array(out, np.float32)


if __name__ == "__main__":
    versions = {"torch": torch.__version__, "transformers": transformers.__version__}
    out = {name: rates(make) for name, make in SCHEDULES.items()}
    for key, (name, warmup, steps, more) in TRAINER.items():
        out[key] = rates(lambda o: hf.get_scheduler(name, o, warmup, steps, scheduler_specific_kwargs=more), steps)
    write(OUT, out, versions)
