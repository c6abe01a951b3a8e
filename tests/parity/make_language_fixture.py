"""Makes tests/data/parity/tree_{llama,mistral,gpt2,t5,bert}*.txt and language_*.safetensors (README.md there),
and the Hugging Face directories of tests/data/pretrained.

    python3 tests/parity/make_language_fixture.py

Every figure is computed by transformers' models in double precision and stored as float32. The same work in
float32 and bfloat16 is done beside it, and the differences are printed: no implementation can be asked for less.
"""

import json
import os
import shutil

import torch
import torch.nn.functional as F
import transformers
from language_models import CASES, build, model_batch, outputs, trees
from safetensors.torch import save_file
from safetensors_file import write
from transformers import get_cosine_schedule_with_warmup

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, "..", "data", "parity")
PRETRAINED = os.path.join(HERE, "..", "data", "pretrained")
STEPS, WARMUP = 10, 2
OPTIMIZER = dict(lr=1e-3, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)
MAX_NORM = 1.0


def write_trees():
    for name, model in trees().items():
        with open(os.path.join(OUT, name + ".txt"), "w") as file:
            print(model, file=file)
            for parameter, value in model.named_parameters():
                print(parameter, list(value.shape), file=file)


def cross_entropy(logits, target):
    exact = logits if logits.dtype == torch.float64 else logits.float()
    return F.cross_entropy(exact.flatten(0, -2), target.flatten(), ignore_index=-100)


def mean_loss(model, batch):
    """The logits by name, and the loss: of tokens, of labels, or the sum of both."""
    out = outputs(model, batch)
    if "prediction_logits" in out:
        logits = {"logits": out.prediction_logits, "label_logits": out.seq_relationship_logits}
        return logits, cross_entropy(out.prediction_logits, batch["target"]) + cross_entropy(
            out.seq_relationship_logits, batch["labels"])
    target = batch["labels"] if out.logits.dim() == 2 else batch["target"]
    return {"logits": out.logits}, cross_entropy(out.logits, target)


def forward_backward(name, dtype):
    model = build(name, dtype)
    batch = model_batch(name)
    logits, loss = mean_loss(model, batch)
    loss.backward()
    out = {**batch, **{key: value.detach() for key, value in logits.items()}, "loss": loss.detach()}
    out.update({f"grad/{parameter}": value.grad for parameter, value in model.named_parameters()})
    return out


def training(name, dtype):
    model = build(name, dtype)
    optimizer = torch.optim.AdamW(model.parameters(), **OPTIMIZER)
    schedule = get_cosine_schedule_with_warmup(optimizer, WARMUP, STEPS)
    losses, norms = [], []
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = mean_loss(model, model_batch(name, step))[1]
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM).item())
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    out = {"train/loss": torch.tensor(losses, dtype=torch.float64), "train/norm": torch.tensor(norms)}
    out.update({f"train/final/{parameter}": value.detach() for parameter, value in model.named_parameters()})
    return out


def report(name, truth, other, kind):
    grads = [(k, (v.double() - truth[k].double()).norm() / truth[k].double().norm().clamp_min(1e-30))
             for k, v in other.items() if k.startswith("grad/")]
    worst = max(grads, key=lambda pair: pair[1])
    logits = (other["logits"].double() - truth["logits"]).abs().max()
    loss = abs(other["loss"].double() - truth["loss"])
    print(f"{name:20} {kind:5} logits {logits:.1e}  loss {loss:.1e}  gradient {worst[1]:.1e} {worst[0]}", end="")
    if "train/loss" in other:
        finals = max((v.double() - truth[k]).abs().max() for k, v in other.items() if k.startswith("train/final/"))
        print(f"  final {finals:.1e}  loss {(other['train/loss'] - truth['train/loss']).abs().max():.1e}", end="")
    print()


def figures(name, dtype):
    out = forward_backward(name, dtype)
    if CASES[name][2] and dtype != torch.bfloat16:
        out.update(training(name, dtype))
    return out


def write_pretrained():
    """Directories as the hub has them: sharded, in bf16 and tied, and GPT-2's with its old names and buffers."""
    shutil.rmtree(PRETRAINED, ignore_errors=True)
    build("llama", torch.float32).save_pretrained(os.path.join(PRETRAINED, "llama_sharded"), max_shard_size="12KB")
    build("llama_tied_llama3", torch.bfloat16).save_pretrained(os.path.join(PRETRAINED, "llama_tied_bf16"))
    model = build("gpt2", torch.float16)
    model.save_pretrained(os.path.join(PRETRAINED, "gpt2_f16"))
    tensors = {name.removeprefix("transformer."): value for name, value in model.state_dict().items()}
    tensors["lm_head.weight"] = tensors["lm_head.weight"].clone()
    for i in range(model.config.n_layer):
        tensors[f"h.{i}.attn.bias"] = torch.ones(1, 1, 4, 4)
        tensors[f"h.{i}.attn.masked_bias"] = torch.tensor(-1e4)
    tensors["odd.weight"] = torch.zeros(3)
    save_file(tensors, os.path.join(PRETRAINED, "gpt2_f16", "model.safetensors"), {"format": "pt"})
    model = build("t5", torch.bfloat16)
    model.save_pretrained(os.path.join(PRETRAINED, "t5_bf16"))
    tensors = {name: value.clone() for name, value in model.state_dict().items()}  # the embedding four times
    tensors["decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"] = torch.zeros(8, 3)
    save_file(tensors, os.path.join(PRETRAINED, "t5_bf16", "model.safetensors"), {"format": "pt"})
    build("t5_v1_1", torch.bfloat16).save_pretrained(os.path.join(PRETRAINED, "t5_v1_1"))  # calls itself tied
    model = build("bert_pretraining", torch.float16)
    model.save_pretrained(os.path.join(PRETRAINED, "bert_f16"))
    tensors = {name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"):
               value.clone() for name, value in model.state_dict().items()}
    tensors["bert.embeddings.position_ids"] = torch.arange(16)[None]
    save_file(tensors, os.path.join(PRETRAINED, "bert_f16", "model.safetensors"), {"format": "pt"})
    for directory in os.listdir(PRETRAINED):
        generation = os.path.join(PRETRAINED, directory, "generation_config.json")
        if os.path.exists(generation):
            os.remove(generation)


def main():
    torch.set_num_threads(1)
    write_trees()
    write_pretrained()
    for name, (config, _, _) in CASES.items():
        truth = figures(name, torch.float64)
        report(name, truth, figures(name, torch.float32), "fp32")
        report(name, truth, figures(name, torch.bfloat16), "bf16")
        tensors = {k: v.numpy() if v.dtype == torch.int64 else v.float().numpy() for k, v in truth.items()}
        config.architectures = [type(build(name, torch.float32)).__name__]
        written = json.loads(config.to_json_string(use_diff=False))
        if name == "t5_v1_1":
            written["tie_word_embeddings"] = False  # as files of v1.1 say; this transformers forgets it
        notes = {"torch": torch.__version__, "transformers": transformers.__version__, "config": json.dumps(written)}
        write(os.path.join(OUT, f"language_{name}.safetensors"), tensors, notes)


if __name__ == "__main__":
    main()
