"""The small random models of the fixtures of tests/data/language."""

from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM

V = 61

LLAMA = dict(vocab_size=V, hidden_size=48, intermediate_size=80, num_hidden_layers=3, num_attention_heads=6,
             num_key_value_heads=2, max_position_embeddings=64)


def trees():
    """File name -> a model of which the tree and the parameters are listed."""
    gpt2 = GPT2Config(vocab_size=V, n_embd=48, n_layer=3, n_head=3, n_positions=64, bos_token_id=1, eos_token_id=2)
    bias = dict(attention_bias=True, mlp_bias=True, tie_word_embeddings=True)
    return {
        "tree_llama": LlamaForCausalLM(LlamaConfig(**LLAMA)),
        "tree_llama_tied_bias": LlamaForCausalLM(LlamaConfig(**LLAMA, **bias)),
        "tree_mistral": MistralForCausalLM(MistralConfig(**LLAMA)),
        "tree_gpt2": GPT2LMHeadModel(gpt2),
    }
