"""A small language model trained by transformers and PyTorch on the CPU, as the peer to be compared with.

    fsdp_models.py --model tests/bench/models/t5 --ranks 2 --threads 1 --targets 128 fp32 fp32_compile bf16 bf16_compile

makes what DIR/config.json says, with random values, and prints for each variant `torch VARIANT RANKS TOKENS_PER_S
PEAK_BYTES` of whole optimizer steps (AdamW, clipping at 1). One rank trains the plain model (bf16: under autocast,
with fp32 weights), several shard it with FSDP, a unit per block (bf16: MixedPrecision with fp32 reduction). Attention
is scaled_dot_product_attention. Each variant runs in processes of its own, so that its peak memory is its own.
"""

import argparse
import functools
import os
import socket
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import transformers
from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision, ShardingStrategy
from torch.distributed.fsdp.wrap import transformer_auto_wrap_policy

BLOCKS = {"llama": "LlamaDecoderLayer", "t5": "T5Block", "bert": "BertLayer"}
MASKED = 0.15  # part of the ids that BERT is asked for


def make_model(variant, options):
    config = transformers.AutoConfig.from_pretrained(options.model, attn_implementation="sdpa", use_cache=False)
    model = getattr(transformers, config.architectures[0])(config)
    blocks = {type(module) for module in model.modules() if type(module).__name__ == BLOCKS[config.model_type]}
    bf16 = variant.startswith("bf16")
    if options.ranks > 1:
        precision = MixedPrecision(torch.bfloat16, torch.float32) if bf16 else None
        policy = functools.partial(transformer_auto_wrap_policy, transformer_layer_cls=blocks)
        model = FullyShardedDataParallel(
            model, sharding_strategy=ShardingStrategy.FULL_SHARD, auto_wrap_policy=policy,
            mixed_precision=precision, use_orig_params=True, device_id=torch.device("cpu"),
        )
    if variant.endswith("compile"):
        model.compile()
    return config, model


def make_batch(config, options):
    """Random ids of full rows; the labels are the target's (T5), some of the ids (BERT) or all of them."""
    ids = torch.randint(config.vocab_size, (options.batch, options.tokens))
    if config.is_encoder_decoder:
        return {"input_ids": ids, "labels": torch.randint(config.vocab_size, (options.batch, options.targets))}
    if config.model_type == "bert":
        return {"input_ids": ids, "labels": torch.where(torch.rand(ids.shape) < MASKED, ids, -100)}
    return {"input_ids": ids, "labels": ids}


def train_step(model, optimizer, batch, autocast):
    optimizer.zero_grad()
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        loss = model(**batch).loss
    loss.backward()
    if isinstance(model, FullyShardedDataParallel):
        model.clip_grad_norm_(1.0)
    else:
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss.item()


def peak_bytes():
    with open("/proc/self/status") as file:
        line = next(line for line in file if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def work(rank, variant, options):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(options.port))
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    dist.init_process_group("gloo", rank=rank, world_size=options.ranks)
    config, model = make_model(variant, options)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    autocast = variant.startswith("bf16") and options.ranks == 1
    batch = make_batch(config, options)
    for _ in range(options.warm_up):
        train_step(model, optimizer, batch, autocast)
    dist.barrier()
    start = time.perf_counter()
    for _ in range(options.steps):
        train_step(model, optimizer, batch, autocast)
    dist.barrier()
    seconds = time.perf_counter() - start
    if rank == 0:
        count = options.batch * (options.tokens + options.targets) * options.ranks * options.steps
        print(f"torch {variant} {options.ranks} {count / seconds:.0f} {peak_bytes()}", flush=True)
    dist.destroy_process_group()


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True, metavar="DIR")
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--targets", type=int, default=0)
    parser.add_argument("--warm_up", type=int, default=2)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("variants", nargs="+", choices=["fp32", "fp32_compile", "bf16", "bf16_compile"])
    arguments = parser.parse_args()
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # else its pool of compilers may keep the processes from ending
    for name in arguments.variants:
        arguments.port = free_port()
        mp.spawn(work, (name, arguments), nprocs=arguments.ranks)
