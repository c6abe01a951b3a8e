"""The small language models of the fixtures: configurations, weights and batches by formula (nets.hash32)."""

import numpy as np
import torch
from nets import hash32
from transformers import (BertConfig, BertForMaskedLM, BertForPreTraining, BertForSequenceClassification, GPT2Config,
                          GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM, T5Config,
                          T5ForConditionalGeneration)
from transformers.models.llama.modeling_llama import LlamaRMSNorm
from transformers.models.mistral.modeling_mistral import MistralRMSNorm
from transformers.models.t5.modeling_t5 import T5LayerNorm

V = 37
# Hash streams; parameters use 0, 1, 2... in declaration order.
TOKEN_STREAM, IGNORE_STREAM, SOURCE_STREAM, COUNT_STREAM = 102, 103, 104, 105
LENGTH_STREAM, TYPE_STREAM, TARGET_STREAM, LABEL_STREAM = 106, 107, 108, 109

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
        "tree_mistral": MistralForCausalLM(MistralConfig(**TREE, pad_token_id=2)),
        "tree_gpt2": GPT2LMHeadModel(gpt2),
        "tree_t5": T5ForConditionalGeneration(t5_tree()),
        "tree_t5_v1_1": untie(T5ForConditionalGeneration(
            t5_tree(feed_forward_proj="gated-gelu", num_decoder_layers=2, tie_word_embeddings=False))),
        "tree_bert_masked_lm": BertForMaskedLM(bert_tree()),
        "tree_bert_pretraining": BertForPreTraining(bert_tree(hidden_act="gelu_new")),
        "tree_bert_classification": BertForSequenceClassification(bert_tree(num_labels=5, classifier_dropout=0.2)),
    }


def t5_tree(**more):
    return T5Config(vocab_size=61, d_model=48, d_kv=10, d_ff=80, num_layers=3, num_heads=6, **more)


def bert_tree(**more):
    return BertConfig(vocab_size=61, hidden_size=48, num_hidden_layers=3, num_attention_heads=6, intermediate_size=80,
                      max_position_embeddings=64, **more)


def untie(model):
    """A head of its own, as T5 v1.1's, which this transformers ties until weights are loaded."""
    model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.detach().clone())
    return model


def llama(heads, kv_heads, hidden, rope=None, **more):
    rope = rope or {"rope_type": "default", "rope_theta": 1e4}
    return LlamaConfig(**{**SMALL, **more}, hidden_size=hidden, num_attention_heads=heads,
                       num_key_value_heads=kv_heads, rope_parameters=rope)


def gpt2(**more):
    return GPT2Config(vocab_size=V, n_embd=24, n_layer=2, n_head=3, n_positions=40, bos_token_id=1, eos_token_id=2,
                      **NO_DROPOUT, **more)


LLAMA3 = {"rope_type": "llama3", "rope_theta": 500.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 16}

def t5(**more):
    return T5Config(vocab_size=V, d_model=12, d_kv=5, d_ff=20, num_layers=2, num_heads=3, dropout_rate=0.0,
                    relative_attention_num_buckets=8, relative_attention_max_distance=20, decoder_start_token_id=0,
                    **more)


def bert(**more):
    return BertConfig(vocab_size=V, hidden_size=12, num_hidden_layers=2, num_attention_heads=3, intermediate_size=20,
                      max_position_embeddings=16, type_vocab_size=3, hidden_dropout_prob=0.0,
                      attention_probs_dropout_prob=0.0, **more)


PADDING = 5  # of the padded cases: often an input and a target

# name -> (configuration, tokens of a sequence, whether ten steps of training are recorded)
CASES = {
    "llama": (llama(3, 3, 24), 7, True),
    "llama_tied_llama3": (llama(4, 1, 20, LLAMA3, head_dim=6, tie_word_embeddings=True), 33, True),
    "llama_bias_linear": (llama(5, 5, 20, {"rope_type": "linear", "rope_theta": 1e4, "factor": 2.0},
                                attention_bias=True, mlp_bias=True), 33, False),
    "llama_dynamic": (llama(6, 2, 24, {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.5},
                            max_position_embeddings=16), 33, False),
    "llama_tied_padded": (llama(4, 2, 16, tie_word_embeddings=True, pad_token_id=PADDING), 13, True),
    "mistral_padded": (MistralConfig(**SMALL, hidden_size=16, num_attention_heads=4, num_key_value_heads=2,
                                     sliding_window=None, pad_token_id=PADDING), 13, True),
    "gpt2": (gpt2(), 33, True),
    "gpt2_untied_gelu": (gpt2(n_inner=40, activation_function="gelu", tie_word_embeddings=False), 7, False),
    "t5": (t5(), 13, True),
    "t5_v1_1": (t5(feed_forward_proj="gated-gelu", num_decoder_layers=1, tie_word_embeddings=False), 13, True),
    "bert_masked_lm": (bert(), 11, True),
    "bert_pretraining": (bert(hidden_act="gelu_new"), 11, True),
    "bert_classification": (bert(num_labels=3), 11, True),
}
CLASSES = {"llama": LlamaForCausalLM, "mistral": MistralForCausalLM, "gpt2": GPT2LMHeadModel,
           "t5": T5ForConditionalGeneration}
BERT_CLASSES = {"bert_masked_lm": BertForMaskedLM, "bert_pretraining": BertForPreTraining,
                "bert_classification": BertForSequenceClassification}
T_SOURCE = 33  # tokens of what T5's encoder reads: beyond the last bucket
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
    config._attn_implementation = "eager" if config.model_type == "t5" else "sdpa"
    model = (BERT_CLASSES.get(name) or CLASSES[config.model_type])(config).to(dtype)
    if name == "t5_v1_1":
        untie(model)
    for stream, (parameter, value) in enumerate(model.named_parameters()):
        value.data.copy_(weight(parameter, value.shape, stream))
    if dtype == torch.float64:
        for module in list(model.modules()):
            for child, norm in module.named_children():
                if isinstance(norm, (LlamaRMSNorm, MistralRMSNorm, T5LayerNorm)):
                    setattr(module, child, ExactNorm(norm))
    return model


def counts(samples, T, stream):
    return 1 + hash32(samples, stream).astype(np.int64) % T


def text(samples, T, stream, most=V):
    """[samples, T] numbers below `most`, and the indices they were hashed from."""
    index = (samples[:, None] * T + np.arange(T)).astype(np.int64)
    return hash32(index, stream).astype(np.int64) % most, index


def t5_batch(T, step):
    """What the encoder reads, padded with 0 behind its length, and labels; about one in seven is -100, too."""
    samples = step * BATCH + np.arange(BATCH)
    source_counts = counts(samples, T_SOURCE, COUNT_STREAM)
    source, _ = text(samples, T_SOURCE, SOURCE_STREAM)
    source[np.arange(T_SOURCE) >= source_counts[:, None]] = 0
    labels, index = text(samples, T, TOKEN_STREAM)
    labels[hash32(index, IGNORE_STREAM) % np.uint32(7) == 0] = -100
    labels[np.arange(T) >= counts(samples, T, LENGTH_STREAM)[:, None]] = -100
    labels[:, 0] = index[:, 0] % V
    return {"source": source, "source_counts": source_counts, "target": labels}


def bert_batch(config, T, step):
    """Tokens padded with 0 behind their length (0 may be among them, too), about a third of them to be predicted."""
    samples = step * BATCH + np.arange(BATCH)
    token_counts = counts(samples, T, COUNT_STREAM)
    padding = np.arange(T) >= token_counts[:, None]
    tokens, index = text(samples, T, TOKEN_STREAM)
    tokens[padding] = 0
    types, _ = text(samples, T, TYPE_STREAM, config.type_vocab_size)
    target, _ = text(samples, T, TARGET_STREAM)
    target[(hash32(index, IGNORE_STREAM) % np.uint32(3) != 0) & (np.arange(T) > 0) | padding] = -100
    labels = hash32(samples, LABEL_STREAM).astype(np.int64) % config.num_labels
    return {"tokens": tokens, "token_counts": token_counts, "token_types": types, "target": target, "labels": labels}


def model_batch(name, step=0):
    """The tensors of a step's batch by name, as the fixture has them."""
    config, T, _ = CASES[name]
    if config.model_type == "t5":
        arrays = t5_batch(T, step)
    elif config.model_type == "bert":
        arrays = bert_batch(config, T, step)
    else:
        return dict(zip(("tokens", "target"), batch(T, step)))
    return {key: torch.from_numpy(value) for key, value in arrays.items()}


def outputs(model, batch):
    """The model's outputs for a batch."""
    if "source" in batch:
        T_source = batch["source"].shape[1]
        mask = (torch.arange(T_source) < batch["source_counts"][:, None]).long()
        return model(input_ids=batch["source"], attention_mask=mask, labels=batch["target"])
    if "token_types" in batch:
        mask = (torch.arange(batch["tokens"].shape[1]) < batch["token_counts"][:, None]).long()
        return model(input_ids=batch["tokens"], attention_mask=mask, token_type_ids=batch["token_types"])
    return model(input_ids=batch["tokens"])


def batch(T, step=0):
    """Tokens [BATCH, T] and the tokens that follow; about one target in seven is -100."""
    samples = step * BATCH + np.arange(BATCH)
    index = (samples[:, None] * (T + 1) + np.arange(T + 1)).astype(np.int64)
    text = hash32(index, TOKEN_STREAM).astype(np.int64) % V
    target = text[:, 1:].copy()
    target[hash32(index[:, 1:], IGNORE_STREAM) % np.uint32(7) == 0] = -100
    return torch.from_numpy(text[:, :-1].copy()), torch.from_numpy(target)
