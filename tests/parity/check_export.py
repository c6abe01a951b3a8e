"""Reads a Llama, a GPT-2, a T5 or a BERT that shoal-agent saved, with transformers, and gives its loss for rows (a
masked LM has none), as `make check-torch` does:

    shoal-agent --model.name_or_path DIR --dataset ROWS.jsonl --dropout 0 --lr 0 --weight_decay 0 --mixed_precision no \\
        --max_steps 1 --train_batch_size ROWS --label_pad_token_id -100 --save_model OUT ...
    python3 tests/parity/check_export.py OUT ROWS.jsonl [DIR]

The loss must be the one that the run's only step tells: so tokens, padding, labels, weights and config.json are read
as they were meant. With DIR the logits of its model are compared, too: the largest difference over the largest logit.
Weights that are missing, or too much, are an error."""

import json
import os
import sys

import torch
from tokenizers import Tokenizer
from transformers import (AutoConfig, AutoModelForCausalLM, AutoModelForMaskedLM, AutoModelForSequenceClassification,
                          AutoTokenizer, T5ForConditionalGeneration)


def t5_ids(directory, texts):
    """Ids with </s> behind, as lists."""
    import sentencepiece
    model = sentencepiece.SentencePieceProcessor(model_file=os.path.join(directory, "spiece.model"))
    return [model.encode(text) + [1] for text in texts]


def padded(rows, pad):
    return torch.tensor([row + [pad] * (max(map(len, rows)) - len(row)) for row in rows])


def t5_inputs(directory, rows):
    source = t5_ids(directory, [row["text"] for row in rows])
    target = t5_ids(directory, [row["summary"] for row in rows])
    return {"input_ids": padded(source, 0), "attention_mask": padded([[1] * len(ids) for ids in source], 0),
            "labels": padded(target, -100)}


def words_inputs(directory, rows):
    tokenizer = AutoTokenizer.from_pretrained(directory, pad_token="[PAD]")
    return tokenizer([row["text"] for row in rows], return_tensors="pt", padding=True)


def classes_inputs(directory, rows):
    return {**words_inputs(directory, rows), "labels": torch.tensor([row["label"] for row in rows])}


def causal_inputs(directory, rows):
    tokenizer = Tokenizer.from_file(os.path.join(directory, "tokenizer.json"))
    ids = [tokenizer.encode(row["text"]).ids for row in rows]
    return {"input_ids": padded(ids, 0), "attention_mask": padded([[1] * len(row) for row in ids], 0),
            "labels": padded(ids, -100)}


KINDS = {"T5ForConditionalGeneration": (T5ForConditionalGeneration, t5_inputs),
         "BertForSequenceClassification": (AutoModelForSequenceClassification, classes_inputs),
         "BertForMaskedLM": (AutoModelForMaskedLM, words_inputs),
         "LlamaForCausalLM": (AutoModelForCausalLM, causal_inputs),
         "GPT2LMHeadModel": (AutoModelForCausalLM, causal_inputs)}


def run(directory, kind, inputs):
    """The outputs of the model in the directory, all of whose weights must be its own."""
    model, info = kind.from_pretrained(directory, output_loading_info=True)
    wrong = {key: value for key, value in info.items() if value}
    if wrong:
        sys.exit(f"{directory}: {wrong}")
    with torch.no_grad():
        return model.eval()(**inputs)


def main():
    directory, data, *source = sys.argv[1:]
    with open(data) as file:
        rows = [json.loads(line) for line in file]
    kind, make_inputs = KINDS[AutoConfig.from_pretrained(directory).architectures[0]]
    inputs = make_inputs(directory, rows)
    out = run(directory, kind, inputs)
    if out.loss is not None:
        print(f"loss {out.loss.item():.7f}")
    for other in source:
        logits = run(other, kind, inputs).logits
        print(f"logits {((out.logits - logits).abs().max() / logits.abs().max()).item():.1e}")


main()
