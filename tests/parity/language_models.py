"""The small language models of the fixtures: configurations, weights and batches by formula (nets.hash32)."""

import numpy as np
import torch
from nets import hash32
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM
from transformers.models.llama.modeling_llama import LlamaRMSNorm
from transformers.models.mistral.modeling_mistral import MistralRMSNorm

V = 37
TOKEN_STREAM, IGNORE_STREAM = 102, 103  # hash streams; parameters use 0, 1, 2... in declaration order

TREE = dict(vocab_size=61, hidden_size=48, intermediate_size=80, num_hidden_layers=3, num_attention_heads=6,
            num_key_value_heads=2, max_position_embeddings=64)
SMALL = dict(vocab_size=V, intermediate_size=28, num_hidden_layers=2, max_position_embeddings=64, rms_norm_eps=1e-5,
             bos_token_id=1, eos_token_id=2)
NO_DROPOUT = dict(embd_pdrop=0.0, attn_pdrop=0.0, resid_pdrop=0.0)


def trees():
    """File name -> a model of which the tree and the parameters are listed."""
    gpt2 = GPT2Config(vocab_size=61, n_embd=48, n_layer=3, n_head=3, n_positions=64, bos_token_id=1, eos_token_id=2)
    bias = dict(attention_bias=True, mlp_bias=True, tie_word_embeddings=True)
    return {
        "tree_llama": LlamaForCausalLM(LlamaConfig(**TREE)),
        "tree_llama_tied_bias": LlamaForCausalLM(LlamaConfig(**TREE, **bias)),
        "tree_mistral": MistralForCausalLM(MistralConfig(**TREE)),
        "tree_gpt2": GPT2LMHeadModel(gpt2),
    }


def llama(heads, kv_heads, hidden, rope=None, **more):
    rope = rope or {"rope_type": "default", "rope_theta": 1e4}
    return LlamaConfig(**{**SMALL, **more}, hidden_size=hidden, num_attention_heads=heads,
                       num_key_value_heads=kv_heads, rope_parameters=rope)


def gpt2(**more):
    return GPT2Config(vocab_size=V, n_embd=24, n_layer=2, n_head=3, n_positions=40, bos_token_id=1, eos_token_id=2,
                      **NO_DROPOUT, **more)


LLAMA3 = {"rope_type": "llama3", "rope_theta": 500.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 16}

# name -> (configuration, tokens of a sequence, whether ten steps of training are recorded)
CASES = {
    "llama": (llama(3, 3, 24), 7, True),
    "llama_tied_llama3": (llama(4, 1, 20, LLAMA3, head_dim=6, tie_word_embeddings=True), 33, True),
    "llama_bias_linear": (llama(5, 5, 20, {"rope_type": "linear", "rope_theta": 1e4, "factor": 2.0},
                                attention_bias=True, mlp_bias=True), 33, False),
    "llama_dynamic": (llama(6, 2, 24, {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.5},
                            max_position_embeddings=16), 33, False),
    "mistral": (MistralConfig(**SMALL, hidden_size=16, num_attention_heads=4, num_key_value_heads=2,
                              sliding_window=None), 7, False),
    "gpt2": (gpt2(), 33, True),
    "gpt2_untied_gelu": (gpt2(n_inner=40, activation_function="gelu", tie_word_embeddings=False), 7, False),
}
CLASSES = {"llama": LlamaForCausalLM, "mistral": MistralForCausalLM, "gpt2": GPT2LMHeadModel}
BATCH = 2


def unit(count, stream, first=0):
    return hash32(first + np.arange(count), stream) / 2.0**31 - 1.0


def weight(name, shape, stream):
    """Matrices in +-0.3, what norms multiply with around 1, biases in +-0.1."""
    values = unit(int(np.prod(shape)), stream)
    if len(shape) > 1:
        values = values * 0.3
    elif name.endswith(".bias"):
        values = values * 0.1
    else:
        values = 1.0 + values * 0.25
    return torch.from_numpy(values.astype(np.float32)).view(shape)


class ExactNorm(torch.nn.Module):
    """RMSNorm without the rounding to float32 that transformers' has for half precision."""

    def __init__(self, norm):
        super().__init__()
        self.weight, self.eps = norm.weight, norm.variance_epsilon

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps))


def build(name, dtype):
    config = CASES[name][0]
    config._attn_implementation = "sdpa"
    model = CLASSES[config.model_type](config).to(dtype)
    for stream, (parameter, value) in enumerate(model.named_parameters()):
        value.data.copy_(weight(parameter, value.shape, stream))
    if dtype == torch.float64:
        for module in list(model.modules()):
            for child, norm in module.named_children():
                if isinstance(norm, (LlamaRMSNorm, MistralRMSNorm)):
                    setattr(module, child, ExactNorm(norm))
    return model


def batch(T, step=0):
    """Tokens [BATCH, T] and the tokens that follow; about one target in seven is -100."""
    samples = step * BATCH + np.arange(BATCH)
    index = (samples[:, None] * (T + 1) + np.arange(T + 1)).astype(np.int64)
    text = hash32(index, TOKEN_STREAM).astype(np.int64) % V
    target = text[:, 1:].copy()
    target[hash32(index[:, 1:], IGNORE_STREAM) % np.uint32(7) == 0] = -100
    return torch.from_numpy(text[:, :-1].copy()), torch.from_numpy(target)
