"""Makes tests/data/tokenizers/classes: what transformers 4's tokenizer classes make of a tokenizer.json and what
tokenizer_config.json says beside it.

    pip install transformers==4.57.1
    python3 tests/parity/make_classes_fixture.py
"""

import json
import os
import tempfile

import transformers

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "tokenizers", "classes")

BERT = {
    "version": "1.0", "truncation": None, "padding": None, "added_tokens": [],
    "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": False},
    "pre_tokenizer": {"type": "BertPreTokenizer"}, "post_processor": None, "decoder": None,
    "model": {"type": "WordPiece", "unk_token": "?", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
              "vocab": {"?": 0, "e": 1, "E": 2, "\u00e9": 3, "\u4e00\u4e01": 4, "\u4e00": 5, "\u4e01": 6}},
}
BYTES = {
    "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
    "post_processor": {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "B", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"B": {"id": "B", "ids": [2], "tokens": ["B"]}},
    },
    "decoder": None,
    "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
              "fuse_unk": False, "byte_fallback": False, "vocab": {"a": 0, "\u0120": 1, "B": 2, "E": 3}, "merges": []},
}

BERTS = ["Bert", "DistilBert", "Electra", "MobileBert", "Funnel", "MPNet", "SqueezeBert", "ConvBert", "LayoutLM", "Lxmert", "Splinter", "RetriBert"]
BERT_OPTIONS = [
    {},
    {"do_lower_case": True},
    {"do_lower_case": True, "strip_accents": False},
    {"do_lower_case": False, "strip_accents": True},
    {"do_lower_case": False, "tokenize_chinese_chars": False},
]
AROUND = ["Llama", "CodeLlama", "Gemma", "Cohere", "GPTNeoX", "GPT2", "Qwen2"]
AROUND_OPTIONS = [{"add_eos_token": True}, {"add_bos_token": True}, {"add_bos_token": False, "add_eos_token": True}, {"add_bos_token": False}]


def tokenized(form, config, text):
    # With their own class, fast: AutoTokenizer would ask for a model's config.json, too.
    name = config["tokenizer_class"].removesuffix("Fast") + "Fast"
    with tempfile.TemporaryDirectory() as folder:
        for file, content in (("tokenizer.json", form), ("tokenizer_config.json", config)):
            with open(os.path.join(folder, file), "w", encoding="utf-8") as out:
                json.dump(content, out)
        return getattr(transformers, name).from_pretrained(folder)(text)["input_ids"]


def main():
    assert transformers.__version__.startswith("4."), "transformers 5 passes over add_bos_token beside a tokenizer.json"
    cases = []

    def add(name, form, config, text):
        cases.append({"tokenizer": name, "config": config, "text": text, "ids": tokenized(form, config, text)})

    for family in BERTS:
        for options in BERT_OPTIONS:
            add("bert", BERT, {"tokenizer_class": family + "Tokenizer", "unk_token": "?", **options}, "E \u00e9 \u4e00\u4e01")
    add("bert", BERT, {"tokenizer_class": "BertTokenizerFast", "unk_token": "?", "do_lower_case": True}, "E \u00e9")
    add("bert", BERT, {"tokenizer_class": "PreTrainedTokenizerFast", "do_lower_case": True}, "E \u00e9")
    for family in AROUND:
        for options in AROUND_OPTIONS:
            add("bytes", BYTES, {"tokenizer_class": family + "Tokenizer", "bos_token": "B", "eos_token": "E", **options}, "a")
    for family in ("GPT2Tokenizer", "PreTrainedTokenizerFast"):
        add("bytes", BYTES, {"tokenizer_class": family, "bos_token": "B", "add_prefix_space": True}, "a")
    os.makedirs(OUT, exist_ok=True)
    for name, form in (("bert", BERT), ("bytes", BYTES)):
        with open(os.path.join(OUT, name + ".json"), "w", encoding="utf-8") as out:
            json.dump(form, out)
    with open(os.path.join(OUT, "cases.json"), "w", encoding="utf-8") as out:
        out.write("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n")


main()
