"""Whole training steps in PyTorch on one GPU, as the peer to be compared with.

    torch_step.py --model mnist|t5|bert|gpt2|llama|llama-document|llama-1.5b --variant eager|fsdp2_compile --batch N --steps N

prints `torch MODEL VARIANT SAMPLES_PER_S PEAK_BYTES`. Models are written in plain PyTorch, with the sizes of ours;
T5-small and BERT-base (masked LM), with dropout as ours, are transformers'. Attention is scaled_dot_product_attention.
eager: no wrapper, bf16 under autocast (MNIST: fp32, as its tutorial). fsdp2_compile: fully_shard for each block and the
whole, bf16 with fp32 gradients, each block compiled. Both with the fused optimizer, and clipping at 1 but for MNIST. The
first steps do not count. --device cpu, with --warm_up 1 --steps 1, tries it without a GPU.
"""

import argparse
import os
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn.functional import scaled_dot_product_attention as attention

MASKED = 0.15  # part of the ids that BERT is asked for
# width, layers, heads, key heads, inner width, vocabulary, tied
LLAMAS = {
    "llama": (2048, 16, 32, 8, 8192, 128256, True),
    "llama-document": (2048, 16, 32, 2, 8192, 50432, False),
    "llama-1.5b": (1536, 28, 12, 2, 8960, 151936, True),
}


class Mnist(nn.Sequential):
    def __init__(self):
        super().__init__(
            nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.25),
            nn.Flatten(), nn.Linear(9216, 128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, 10), nn.LogSoftmax(1),
        )


class Gpt2Block(nn.Module):
    def __init__(self, width=768, heads=12):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        y = attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt2(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(50257, 768), nn.Embedding(1024, 768)
        self.blocks = nn.ModuleList(Gpt2Block() for _ in range(12))
        self.norm, self.head = nn.LayerNorm(768), nn.Linear(768, 50257, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, ids):
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def rotate(x, cos, sin):
    first, second = x.chunk(2, -1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), -1).type_as(x)


class LlamaBlock(nn.Module):
    def __init__(self, width, heads, kv_heads, inner):
        super().__init__()
        self.heads, self.kv_heads, self.hd = heads, kv_heads, width // heads
        self.norm1, self.norm2 = nn.RMSNorm(width, eps=1e-5), nn.RMSNorm(width, eps=1e-5)
        self.qkv = nn.Linear(width, (heads + 2 * kv_heads) * self.hd, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.gate_up, self.down = nn.Linear(width, 2 * inner, bias=False), nn.Linear(inner, width, bias=False)

    def forward(self, x, cos, sin):
        b, t, d = x.shape
        heads = self.qkv(self.norm1(x)).view(b, t, -1, self.hd).transpose(1, 2)
        q, k, v = heads.split((self.heads, self.kv_heads, self.kv_heads), 1)
        y = attention(rotate(q, cos, sin), rotate(k, cos, sin), v, is_causal=True, enable_gqa=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, d))
        gate, up = self.gate_up(self.norm2(x)).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)


class Llama(nn.Module):
    def __init__(self, name):
        super().__init__()
        width, layers, heads, kv_heads, inner, vocabulary, tied = LLAMAS[name]
        self.tokens = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(LlamaBlock(width, heads, kv_heads, inner) for _ in range(layers))
        self.norm, self.head = nn.RMSNorm(width, eps=1e-5), nn.Linear(width, vocabulary, bias=False)
        if tied:
            self.head.weight = self.tokens.weight
        self.hd = width // heads

    def forward(self, ids):
        place = torch.arange(ids.shape[1], device=ids.device)
        pace = 500000.0 ** (-torch.arange(0, self.hd, 2, device=ids.device) / self.hd)
        angle = torch.outer(place, pace)
        x = self.tokens(ids)
        for block in self.blocks:
            x = block(x, angle.cos(), angle.sin())
        return self.head(self.norm(x))


class T5(nn.Module):
    def __init__(self):
        super().__init__()
        from transformers import T5Config, T5ForConditionalGeneration

        # the rest of its sizes are T5-small's
        self.model = T5ForConditionalGeneration(T5Config(decoder_start_token_id=0, use_cache=False))
        self.vocabulary = self.model.config.vocab_size
        self.blocks = [*self.model.encoder.block, *self.model.decoder.block]

    def forward(self, ids, labels):
        return self.model(input_ids=ids, labels=labels).loss


class Bert(nn.Module):
    def __init__(self):
        super().__init__()
        from transformers import BertConfig, BertForMaskedLM

        self.model = BertForMaskedLM(BertConfig(use_cache=False))  # its sizes are BERT-base's
        self.vocabulary = self.model.config.vocab_size
        self.blocks = list(self.model.bert.encoder.layer)

    def forward(self, ids, labels):
        return self.model(input_ids=ids, labels=labels).loss


def make(options):
    """The model on the device, its inputs and targets."""
    model = {"mnist": Mnist, "gpt2": Gpt2, "t5": T5, "bert": Bert}.get(options.model, lambda: Llama(options.model))
    with torch.device(options.device):
        model = model()
        if options.model == "mnist":
            inputs, targets = torch.randn(options.batch, 1, 28, 28), torch.randint(0, 10, (options.batch,))
        elif options.model == "t5":
            inputs = torch.randint(0, model.vocabulary, (options.batch, options.tokens))
            targets = torch.randint(0, model.vocabulary, (options.batch, options.targets))
        elif options.model == "bert":
            inputs = torch.randint(0, model.vocabulary, (options.batch, options.tokens))
            targets = torch.where(torch.rand(inputs.shape) < MASKED, inputs, -100)
        else:
            vocabulary = model.tokens.num_embeddings
            inputs, targets = torch.randint(0, vocabulary, (2, options.batch, options.tokens))
    if options.variant == "fsdp2_compile":
        policy = None if options.model == "mnist" else MixedPrecisionPolicy(torch.bfloat16, torch.float32)
        for block in getattr(model, "blocks", []):
            block.compile(dynamic=False)  # T5's decoder is shorter than its encoder
            fully_shard(block, **({"mp_policy": policy} if policy else {}))
        if options.model == "mnist":
            model.compile()
        fully_shard(model, **({"mp_policy": policy} if policy else {}))
    return model, inputs, targets


def step(model, optimizer, inputs, targets, options):
    optimizer.zero_grad()
    autocast = options.variant == "eager" and options.model != "mnist"
    whole = options.model in ("t5", "bert")  # these make their loss themselves
    with torch.autocast(options.device, torch.bfloat16, enabled=autocast):
        y = model(inputs, targets) if whole else model(inputs)
    if whole:
        loss = y
    elif options.model == "mnist":
        loss = F.nll_loss(y, targets, reduction="sum")
    else:
        loss = F.cross_entropy(y.float().view(-1, y.shape[-1]), targets.reshape(-1))
    loss.backward()
    if options.model != "mnist":
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True, choices=["mnist", "t5", "bert", "gpt2", *LLAMAS])
    parser.add_argument("--variant", required=True, choices=["eager", "fsdp2_compile"])
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--tokens", type=int, default=0)
    parser.add_argument("--targets", type=int, default=128, help="ids of T5's targets")
    parser.add_argument("--warm_up", type=int, default=10)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    arguments = parser.parse_args()
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29511", RANK="0", WORLD_SIZE="1")
    torch.manual_seed(1)
    dist.init_process_group("nccl" if arguments.device == "cuda" else "gloo")
    device = getattr(torch, arguments.device)
    net, x, y = make(arguments)
    rule = torch.optim.Adadelta if arguments.model == "mnist" else torch.optim.AdamW
    optimizer = rule(net.parameters(), lr=1e-4, **({} if arguments.model == "mnist" else {"fused": True}))
    for _ in range(arguments.warm_up):
        step(net, optimizer, x, y, arguments)
    device.synchronize()
    start = time.perf_counter()
    for _ in range(arguments.steps):
        loss = step(net, optimizer, x, y, arguments)
    loss.item()
    device.synchronize()
    rate = arguments.batch * arguments.steps / (time.perf_counter() - start)
    peak = device.max_memory_allocated() if arguments.device == "cuda" else 0
    print(f"torch {arguments.model} {arguments.variant} {rate:.3f} {peak}", flush=True)
    dist.destroy_process_group()
