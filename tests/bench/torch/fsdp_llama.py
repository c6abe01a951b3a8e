"""A 25M-parameter Llama trained by transformers and PyTorch on the CPU, as the peer to be compared with.

    fsdp_llama.py --ranks 2 --threads 1 fp32 fp32_compile bf16 bf16_compile

prints for each variant the tokens/s of whole optimizer steps (AdamW, clipping at 1) and the process's peak
memory. One rank trains the plain model (bf16: under autocast, with fp32 weights), several shard it with FSDP, a
unit per decoder layer (bf16: MixedPrecision with fp32 reduction). Attention is scaled_dot_product_attention. Each
variant runs in processes of its own, so that its peak memory is its own; the best of the rounds counts.
"""

import argparse
import functools
import os
import socket
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision, ShardingStrategy
from torch.distributed.fsdp.wrap import transformer_auto_wrap_policy
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.models.llama.modeling_llama import LlamaDecoderLayer

CONFIG = dict(
    vocab_size=32000,
    hidden_size=384,
    intermediate_size=1024,
    num_hidden_layers=8,
    num_attention_heads=6,
    num_key_value_heads=2,
    max_position_embeddings=512,
    tie_word_embeddings=True,
    attn_implementation="sdpa",
    use_cache=False,
)


def make_model(variant, options):
    model = LlamaForCausalLM(LlamaConfig(**CONFIG))
    bf16 = variant.startswith("bf16")
    if options.ranks > 1:
        precision = MixedPrecision(torch.bfloat16, torch.float32) if bf16 else None
        policy = functools.partial(transformer_auto_wrap_policy, transformer_layer_cls={LlamaDecoderLayer})
        model = FullyShardedDataParallel(
            model, sharding_strategy=ShardingStrategy.FULL_SHARD, auto_wrap_policy=policy,
            mixed_precision=precision, use_orig_params=True, device_id=torch.device("cpu"),
        )
    return torch.compile(model) if variant.endswith("compile") else model


def train_step(model, optimizer, tokens, autocast):
    optimizer.zero_grad()
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        loss = model(input_ids=tokens, labels=tokens).loss
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
    model = make_model(variant, options)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    autocast = variant.startswith("bf16") and options.ranks == 1
    tokens = torch.randint(0, CONFIG["vocab_size"], (options.batch, CONFIG["max_position_embeddings"]))
    for _ in range(2):
        train_step(model, optimizer, tokens, autocast)
    best = float("inf")
    for _ in range(options.rounds):
        dist.barrier()
        start = time.perf_counter()
        for _ in range(options.steps):
            train_step(model, optimizer, tokens, autocast)
        dist.barrier()
        best = min(best, (time.perf_counter() - start) / options.steps)
    if rank == 0:
        rate = tokens.numel() * options.ranks / best
        print(f"torch {variant} {options.ranks} {rate:.0f} {peak_bytes()}", flush=True)
    dist.destroy_process_group()


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("variants", nargs="+", choices=["fp32", "fp32_compile", "bf16", "bf16_compile"])
    arguments = parser.parse_args()
    for name in arguments.variants:
        arguments.port = free_port()
        mp.spawn(work, (name, arguments), nprocs=arguments.ranks)
