"""Makes tests/data/tokenizers/spm_kinds (README.md there): small SentencePiece models of many kinds, and what sentencepiece
makes of texts with them.

    pip install sentencepiece==0.2.3
    python3 tests/parity/make_spm_fixture.py
"""

import io
import json
import os
import random

import sentencepiece

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, "..", "data", "tokenizers", "spm_kinds")
USER = dict(user_defined_symbols=["<sep>", "foo", "  ", "de", "ab", "abc", "日本"], control_symbols=["<ctl>"])
# the longest of several rules counts, white space comes of rules, and one makes nothing
RULES = "\n".join(["FF01\t21", "FF21\t61", "FF21 FF22\t78 79", "3000\t20", "BD\t31 2044 32", "200B\t", "C4\t61 20 20 65"])
KINDS = {
    "unigram": {},
    "unigram_user": USER,
    "unigram_bytes": dict(byte_fallback=True, remove_extra_whitespaces=False),
    "unigram_suffix": dict(treat_whitespace_as_suffix=True),
    "unigram_bare": dict(add_dummy_prefix=False, split_by_whitespace=False, unk_surface="[U]"),
    "bpe": dict(model_type="bpe"),
    "bpe_user": dict(model_type="bpe", character_coverage=0.98, **USER),
    "bpe_bytes": dict(model_type="bpe", byte_fallback=True, split_digits=True, remove_extra_whitespaces=False, pad_id=3),
    "bpe_bare": dict(model_type="bpe", add_dummy_prefix=False, split_by_whitespace=False, max_sentencepiece_length=30),
}


def sentences():
    lines = []
    for name in ("README.md", "CONTRIBUTING.md"):
        with open(os.path.join(HERE, "..", "..", name)) as file:
            lines += [line.strip() for line in file if line.strip()]
    return lines + ["日本語のテキスト。", "été à la plage", "aaaa bbbb", "00000 1111 ----"] * 9


def train(lines, rules, **options):
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=out, vocab_size=400, hard_vocab_limit=False, num_threads=1, minloglevel=2,
        normalization_rule_tsv=rules, **{"model_type": "unigram", **options})
    return out.getvalue()


def texts(lines):
    draw = random.Random(5)
    letters = list("abcdefox0129 .-<>\t\n") + ["é", "e\u0301", "！", "Ａ", "ＡＢ", "日本", "語", "\u3000", "½", "\u200b", "Ä", "П", "😀",
                                               "\u2581", "<s>", "</s>", "<unk>", "<sep>", "<ctl>", "<0x41>", "foo", "  "]
    runs = [c * n for c in "0-a=. #" for n in (2, 3, 4, 5, 7, 12, 31)]
    return (["", " ", "  a  b  ", "\u200b", "日", "П😀x"] + runs + draw.sample(lines, 20)
            + ["".join(draw.choice(letters) for _ in range(draw.randint(1, 30))) for _ in range(60)]
            + ["ab0--日0 0" * 6000])  # beyond where sums in single precision begin anew


def main():
    os.makedirs(OUT, exist_ok=True)
    rules = os.path.join(OUT, "rules.tsv")
    with open(rules, "w") as file:
        print(RULES, file=file)
    lines = sentences()
    inputs = texts(lines)
    draw = random.Random(6)
    for name, options in KINDS.items():
        model = train(lines, rules, **options)
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        with open(os.path.join(OUT, name + ".model"), "wb") as file:
            file.write(model)
        with open(os.path.join(OUT, name + ".jsonl"), "w") as file:
            for text in inputs:
                ids = processor.encode(text)
                decoded = processor.decode(ids)
                if len(text) > 10000:  # [what is repeated, how often], and of the ids those of the ends and how many
                    text, ids, decoded = ["ab0--日0 0", 6000], ids[:50] + ids[-50:] + [len(ids)], None
                print(json.dumps([text, ids, decoded]), file=file)
            for _ in range(30):  # any ids, so that bytes are no characters
                ids = [draw.randrange(processor.get_piece_size()) for _ in range(draw.randint(1, 12))]
                print(json.dumps([None, ids, processor.decode(ids)]), file=file)
    os.remove(rules)


if __name__ == "__main__":
    main()
