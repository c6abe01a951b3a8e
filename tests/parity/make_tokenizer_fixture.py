"""Makes tests/data/tokenizers: small tokenizers of each kind that the agent reads, and what the libraries they come
from give for the same hard texts. What is in there is told in the README.md there.

    pip install tokenizers sentencepiece
    python3 tests/parity/make_tokenizer_fixture.py [NAME...]    # only those; training is not repeatable
"""

import io
import json
import os
import random
import re
import sys
import tempfile

import sentencepiece
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
OUT = os.path.join(HERE, "..", "data", "tokenizers")

LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

# ---- the texts -------------------------------------------------------------------------------------------------

SCRIPTS = [
    "The quick brown fox jumps over the lazy dog. It's 5 o'clock; we'LL see, they'Ve said, I'm here, don't!",
    "Ein Übungstext: Äpfel, Öl und Straße kosten 3,50 €. Le garçon naïf a mangé un œuf à Noël.",
    "Съешь ещё этих мягких французских булок, да выпей чаю.",
    "Ο καλύμνιος σφουγγαράς ψιθύρισε πως θα βουτήξει χωρίς να διστάζει.",
    "いろはにほへと ちりぬるを。東京都は日本の首都です。カタカナ、ｶﾀｶﾅ、全角ＡＢＣ１２３",
    "我能吞下玻璃而不伤身体。漢字很多，標點符號也不少！",
    "다람쥐 헌 쳇바퀴에 타고파. 한글 자모: ㄱㄴㄷ",
    "نص حكيم له سر قاطع وذو شأن عظيم مكتوب على ثوب أخضر، ١٢٣٤٥",
    "דג סקרן שט בים מאוכזב ולפתע מצא חברה",
    "ऋषियों को सताने वाले दुष्ट राक्षसों के राजा रावण का सर्वनाश १२३",
    "เป็นมนุษย์สุดประเสริฐเลิศคุณค่า ๑๒๓",
    "Zażółć gęślą jaźń. Příliš žluťoučký kůň. Đăng ký tiếng Việt.",
    "ა ბ გ დ — ქართული; Հայերեն; አማርኛ; ᚠᛇᚻ; 𐍈𐌰𐌹; 𝔘𝔫𝔦𝔠𝔬𝔡𝔢",
]

TEXTS = SCRIPTS + [
    "",
    " ",
    "  ",
    "a",
    "\n",
    "\t\t",
    " \n \n\n  \n",
    "a  b   c    d     e",
    "trailing spaces   ",
    "   leading spaces",
    "tabs\tand\t\tmore \t mixed\t \tend",
    "line one\r\nline two\r\n\r\nline four\rold mac\n\n\nend",
    "\r\n\r\n  \r\n x",
    "1 12 123 1234 12345 123456 1234567 12345678 123456789 1234567890",
    "0x1F 3.14159 1,000,000 ½ ² Ⅷ ٣٤٥ ４５６ 1e-10 v1.2.3-rc4",
    # combining marks, precomposed and not, more of them than anyone needs, and in another order
    "e\u0301 \u00e9 a\u0308\u0304 n\u0303 \u1e9b\u0323 q\u0307\u0323 q\u0323\u0307 Z\u0351\u036b\u0343a\u0320l\u0358g\u0321o\u031b",
    "\u0301starts with a mark, \u212b \u2126 \ufb01 \ufb03 \u01c5 \u1100\u1161\u11a8 \uac01 \u3131",
    # emoji: joined, with skin tones, flags, keycaps
    "👩‍👩‍👧‍👦 👍🏽 🇩🇪🇫🇷 1️⃣ ❤️‍🔥 🏴‍☠️ 🧑🏿‍🚀 ©️™ 🫠",
    "zero\u200bwidth\u200cjoin\u200der\ufeffbom\u00adshy\u2060word",
    "no\u00a0break\u2003em\u2009thin\u3000wide\u1680ogham\u180evowel\u0085next\u2028line\u2029par\u202fnnb",
    "\x01\x02\x7f\x80\x9f controls \x1b[31mred\x1b[0m",
    "nul\x00inside",
    "can't CAN'T Can'T we'll WE'LL 'tis ''s '' 's's \u2019s isn\u2019t 'ſ x'K",
    "def f(x):\n    return x**2  # squared\n\n\nclass A:\n\tpass\n",
    "https://example.org/a_b-c?d=e&f=%20g#h user@host.tld C:\\dir\\file.txt",
    "!!! ... --- ___ *** ((())) [[{}]] <<>> == != && || ?! \u2026 \u2014 \u2026\u2026",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "aAaAaA AbAbAb camelCaseWord HTTPServer snake_case_word kebab-case",
    "\u2581 \u2581\u2581 lower one eighth \u2581block\u2581 \u0120G \u010a",
    "\U0010ffff \ue000 \ufffd \ufffe \U000e0001 \u0378",
    "<0x41> <0xE2><0x96><0x81> <0xFF> <0x0a>",
    # what added tokens are made of
    "<|endoftext|>",
    "one<|endoftext|>two <|endoftext|> three\n<|endoftext|>\n",
    "<|begin_of_text|>Hi<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nHello<|eot_id|>",
    "<s>not</s><s> <unk> <pad></s >",
    "<|endoftext <|endoftext|<|endoftext|>> <|<|endoftext|>|>",
    "x <mask> y  <mask>  z<mask><mask>\t<mask>\u2003end <mask>",
    "word\u200d \u200cword word\u3000<mask>\u3000word",
    "a word, awordb, word. wordword \u0301word word_ (word) \u00e9word",
    "cafe\u0301 CAFE\u0301 caf\u00e9 xcaf\u00e9y <|cafe\u0301|> <|caf\u00e9|>",
    "b<t>a<ta>the<t>of<ta>",
    "<t> <ta> <tab> <tabl> <table> <tables> <tab<table>le> <tt><table",
]


def random_texts(count):
    """Texts of characters from everywhere; the seed is fixed."""
    rng = random.Random(20240801)
    blocks = [(0x20, 0x7E)] * 6 + [(0xA0, 0x24F), (0x300, 0x36F), (0x370, 0x5FF), (0x600, 0x77F), (0x900, 0xDFF),
              (0x1100, 0x11FF), (0x1E00, 0x206F), (0x2070, 0x27BF), (0x3000, 0x30FF), (0x4E00, 0x4FFF), (0xAC00, 0xADFF),
              (0xFB00, 0xFB4F), (0xFF00, 0xFFEF), (0x1F300, 0x1F6FF), (0x1D400, 0x1D7FF), (0x9, 0xD)]
    texts = []
    for _ in range(count):
        text = ""
        for _ in range(rng.randint(1, 12)):
            low, high = rng.choice(blocks)
            text += "".join(chr(rng.randint(low, high)) for _ in range(rng.randint(1, 6)))
            text += rng.choice(["", "", " ", "  ", "\n", "'s", " 7"])
        texts.append(text)
    return texts


BROKEN = [
    b"\xff", b"a\x80b", b"\xc3", b"\xc3(", b"\xe2\x82", b"\xe2\x82x", b"\xf0\x9f\x98", b"\xf0\x9f\x98 \xf0\x9f",
    b"\xed\xa0\x80\xed\xb0\x80", b"\xc0\xaf", b"\xe0\x80\xaf", b"\xf4\x90\x80\x80", b"\xf8\x88\x80\x80\x80",
    b"ok \xe2\x28\xa1 \xf1\x80\x80\xf1 mid \xfe\xff end\xc2", b"\xf0\x80\x80\x41\xe0\x9f\xbf\xf4\x8f\xbf\xbf",
]


# ---- the tokenizers --------------------------------------------------------------------------------------------


def corpus():
    """Our own documents, and every script a few times, so that there is something to merge."""
    lines = []
    for name in ["README.md", "docs/install.md", "docs/pytorchjob.md", "docs/running-locally.md", "agent/shard/shard.c", "operator/kube/watch.c"]:
        with open(os.path.join(ROOT, name), encoding="utf-8") as f:
            lines += f.read().splitlines(keepends=True)
    return lines + SCRIPTS * 8


def bpe_trainer(size, specials=()):
    return trainers.BpeTrainer(vocab_size=size, special_tokens=list(specials), show_progress=False,
                               initial_alphabet=pre_tokenizers.ByteLevel.alphabet())


def gpt2():
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = decoders.ByteLevel()
    t.post_processor = processors.ByteLevel(trim_offsets=False)
    t.train_from_iterator(corpus(), bpe_trainer(700, ["<|endoftext|>"]))
    return t


def gpt2_prefix():
    """As GPT-2, with a space before the text, a normal form and added tokens with every flag."""
    t = Tokenizer(models.BPE())
    t.normalizer = normalizers.NFC()
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(corpus(), bpe_trainer(500))
    t.add_special_tokens([AddedToken("<|endoftext|>", special=True, normalized=False)])
    t.add_tokens([
        AddedToken("<mask>", lstrip=True, rstrip=True, normalized=False),
        AddedToken("word", single_word=True, normalized=False),
        AddedToken("<|cafe\u0301|>", normalized=True),
        AddedToken("cafe\u0301", normalized=True, single_word=True),
        AddedToken("<t>", lstrip=True), AddedToken("<ta>"), AddedToken("<tab>", rstrip=True), AddedToken("<table>"),
        AddedToken("<tab", normalized=False), AddedToken("<tabl", normalized=False),
    ])
    t.post_processor = processors.RobertaProcessing(("<|endoftext|>", t.token_to_id("<|endoftext|>")), ("<mask>", t.token_to_id("<mask>")))
    return t


def llama3():
    t = Tokenizer(models.BPE(ignore_merges=True))
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(LLAMA3), "isolated", invert=False),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(corpus(), bpe_trainer(1000))
    # pieces that only the look-up of whole words finds: no merge leads to them
    state = json.loads(t.to_str())
    vocab = state["model"]["vocab"]
    for piece in ["squared", "ĠHTTPServer", "ĠcamelCaseWord", "âĢ¦âĢ¦"]:
        vocab[piece] = len(vocab)
    t = Tokenizer.from_str(json.dumps(state))
    names = ["begin_of_text", "end_of_text", "start_header_id", "end_header_id", "eot_id"]
    t.add_special_tokens([AddedToken(f"<|{name}|>", special=True, normalized=False) for name in names])
    bos = "<|begin_of_text|>"
    t.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=True),
        processors.TemplateProcessing(single=f"{bos} $A", pair=f"{bos} $A {bos} $B",
                                      special_tokens=[(bos, t.token_to_id(bos))]),
    ])
    return t


def byte_pieces():
    return [f"<0x{b:02X}>" for b in range(256)]


def llama2(pre_tokenizer):
    """Pieces with U+2581 for spaces, bytes for what has no piece. Legacy: a normalizer does it, and the text is one word."""
    specials = ["<unk>", "<s>", "</s>"] + byte_pieces()
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=True)
    t.train_from_iterator(corpus()[:900], trainers.BpeTrainer(vocab_size=700, special_tokens=specials, limit_alphabet=90, show_progress=False))
    state = json.loads(t.to_str())
    state["added_tokens"] = [a for a in state["added_tokens"] if not a["content"].startswith("<0x")]
    t = Tokenizer.from_str(json.dumps(state))
    if pre_tokenizer:
        t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always", split=True)
        t.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    else:
        t.pre_tokenizer = None
        t.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
        t.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    t.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)])
    return t


def unknown(fuse):
    """No bytes to fall back on: unknown characters become <unk>, or one for several; digits alone; NFKC."""
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=fuse))
    scheme = "first" if fuse else "never"
    t.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(r"\s+"), " ")])
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=fuse), pre_tokenizers.Metaspace(prepend_scheme=scheme)])
    t.decoder = decoders.Metaspace(prepend_scheme=scheme)
    t.train_from_iterator(corpus()[:400], trainers.BpeTrainer(vocab_size=300, special_tokens=["<unk>"], limit_alphabet=60, show_progress=False))
    t.add_tokens([AddedToken("<t>", normalized=True), AddedToken("<ta>", normalized=False)])
    return t


def affixes(behavior, invert):
    """The older way to mark words: ## within, </w> at the end; a Split that merges its matches or drops them."""
    t = Tokenizer(models.BPE(unk_token="<unk>", continuing_subword_prefix="##", end_of_word_suffix="</w>"))
    t.pre_tokenizer = pre_tokenizers.Split(Regex(r"\w+" if invert else r"[\s\p{P}\d]"), behavior, invert=invert)
    t.train_from_iterator(corpus()[:300], trainers.BpeTrainer(vocab_size=300, special_tokens=["<unk>"], limit_alphabet=60, show_progress=False,
                          continuing_subword_prefix="##", end_of_word_suffix="</w>"))
    return t


BERT_SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def bert(lowercase):
    """As transformers makes them for bert-base-uncased and bert-base-cased."""
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer(clean_text=True, handle_chinese_chars=True, strip_accents=None, lowercase=lowercase)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.WordPiece(prefix="##")
    t.train_from_iterator(corpus()[:600] + SCRIPTS * 8, trainers.WordPieceTrainer(vocab_size=500, special_tokens=BERT_SPECIALS, limit_alphabet=160, show_progress=False))
    cls, sep = t.token_to_id("[CLS]"), t.token_to_id("[SEP]")
    t.post_processor = processors.TemplateProcessing(single="[CLS]:0 $A:0 [SEP]:0", pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
                                                     special_tokens=[("[CLS]", cls), ("[SEP]", sep)])
    return t


# What a small SentencePiece model replaces: one character by another, by several, by none, and pairs of characters.
RULES = {"\u00a0": " ", "\u3000": " ", "\t": " ", "\n": " ", "\r": " ", "\u2003": " ", "\u200b": "", "\ufeff": "", "\u00ad": "", "\ufb01": "fi", "\ufb03": "ffi",
         "\u00bd": "1\u20442", "\u2026": "...", "e\u0301": "\u00e9", "a\u0308": "\u00e4", "n\u0303": "\u00f1", "\u212b": "\u00c5", "\u1100\u1161": "\uac00",
         "\u1100\u1161\u11a8": "\uac01", "1\ufe0f\u20e3": "1", **{chr(0xFF01 + i): chr(0x21 + i) for i in range(94)}}


def write_rules(path):
    with open(path, "w", encoding="utf-8") as f:
        for source, target in RULES.items():
            f.write(" ".join(f"{ord(c):X}" for c in source) + "\t" + " ".join(f"{ord(c):X}" for c in target) + "\n")


def t5_model():
    """A SentencePiece model with the ids of T5's and replacements."""
    with tempfile.TemporaryDirectory() as directory:
        rules = os.path.join(directory, "rules.tsv")
        write_rules(rules)
        return spm(model_type="unigram", vocab_size=450, byte_fallback=False, normalization_rule_tsv=rules, normalization_rule_name="user_defined",
                   pad_id=0, eos_id=1, unk_id=2, bos_id=-1)


def field(data, number):
    """All values of a field of a protobuf message."""
    at, values = 0, []

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            value = varint()
        else:
            size = {1: 8, 5: 4}.get(key & 7) or varint()
            value = data[at:at + size]
            at += size
        if key >> 3 == number:
            values.append(value)
    return values


def t5_tokenizer(model):
    """What transformers makes of a SentencePiece file of T5's: 100 sentinels behind its pieces."""
    p = sentencepiece.SentencePieceProcessor(model_proto=model)
    vocab = [(p.id_to_piece(i), p.get_score(i)) for i in range(p.get_piece_size())] + [(f"<extra_id_{i}>", 0.0) for i in range(99, -1, -1)]
    t = Tokenizer(models.Unigram(vocab, unk_id=2, byte_fallback=False))
    t.normalizer = normalizers.Precompiled(field(field(model, 3)[0], 2)[0])
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="always", split=True)])
    t.decoder = decoders.Metaspace(prepend_scheme="always", split=True)
    t.add_special_tokens([AddedToken(x, special=True, normalized=False) for x in ["<pad>", "</s>", "<unk>"] + [f"<extra_id_{i}>" for i in range(100)]])
    t.post_processor = processors.TemplateProcessing(single=["$A", "</s>"], pair=["$A", "</s>", "$B", "</s>"], special_tokens=[("</s>", 1)])
    return t


def unigram_bytes():
    """Bytes for what has no piece; the whole text is one word; spaces by a normalizer; white space at the ends goes."""
    model = spm(model_type="unigram", vocab_size=600)
    p = sentencepiece.SentencePieceProcessor(model_proto=model)
    t = Tokenizer(models.Unigram([(p.id_to_piece(i), p.get_score(i)) for i in range(p.get_piece_size())], unk_id=p.unk_id(), byte_fallback=True))
    t.normalizer = normalizers.Sequence([normalizers.Strip(left=False, right=True), normalizers.Lowercase(), normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    t.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    t.add_special_tokens(["<unk>", "<s>", "</s>"])
    return t


def string_merges(t):
    """The same tokenizer as older versions wrote it: merges as one text each, no type of model."""
    state = json.loads(t.to_str())
    state["model"]["merges"] = [" ".join(m) for m in state["model"]["merges"]]
    del state["model"]["type"]
    return json.dumps(state, ensure_ascii=False)


def wanted(name):
    return len(sys.argv) == 1 or name in sys.argv[1:]


def spm(byte_fallback=True, normalization_rule_name="identity", **options):
    out = io.BytesIO()
    lines = [line.strip() for line in corpus()[:700] + SCRIPTS * 8 if line.strip()]
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=out, byte_fallback=byte_fallback, minloglevel=2, num_threads=1, normalization_rule_name=normalization_rule_name,
                                             character_coverage=0.98, hard_vocab_limit=False, **options)
    return out.getvalue()


# ---- writing ---------------------------------------------------------------------------------------------------


def save(path, data):
    path = os.path.join(OUT, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data if isinstance(data, bytes) else data.encode("utf-8"))


def compact(value):
    return json.dumps(value, ensure_ascii=True, separators=(",", ":")) + "\n"


ALL_TEXTS = TEXTS + random_texts(20)
AROUND = ["", "Hello world", "<|endoftext|> x"]  # with what is put around a text


def save_texts():
    """What is encoded: texts, then hexadecimal bytes that are no UTF-8, then texts with what is put around them."""
    save("texts.jsonl", "".join([compact({"text": t}) for t in ALL_TEXTS] + [compact({"hex": raw.hex()}) for raw in BROKEN] +
                                [compact({"around": t}) for t in AROUND]))


def expect(name, encode, decode, around):
    """A line per line of texts.jsonl: [ids], or [ids, what they decode to] if that is not the text again. null there: not
    compared (the library reads letters of an added token as bytes, "\u00e9" as 0xe9)."""
    lines = []
    for text in ALL_TEXTS + [raw.decode("utf-8", "replace") for raw in BROKEN]:
        ids = encode(text)
        back = decode(ids) if decode else None
        if back and "\ufffd" in back and "\ufffd" not in text:
            back = None
        lines.append(compact([ids] if back == text else [ids, back]))
    lines += [compact([around(text)]) for text in AROUND]
    save(f"{name}/expected.jsonl", "".join(lines))


def expect_tokenizer(name, t):
    decode = None if name.startswith("split_") and name != "split_removed" else lambda ids: t.decode(ids, skip_special_tokens=False)
    expect(name, lambda text: t.encode(text, add_special_tokens=False).ids, decode, lambda text: t.encode(text).ids)


def write_tokenizers():
    kinds = {
        "gpt2": gpt2, "gpt2_prefix": gpt2_prefix, "llama3": llama3, "llama2_legacy": lambda: llama2(False), "llama2_metaspace": lambda: llama2(True),
        "unknown_fused": lambda: unknown(True), "unknown_apart": lambda: unknown(False),
        "split_previous": lambda: affixes("merged_with_previous", False), "split_next": lambda: affixes("merged_with_next", False),
        "split_removed": lambda: affixes("removed", False), "split_inverted": lambda: affixes("removed", True),
        "bert_uncased": lambda: bert(True), "bert_cased": lambda: bert(False), "unigram_bytes": unigram_bytes,
    }
    made = {name: make() for name, make in kinds.items() if wanted(name)}
    for name, t in made.items():
        save(f"{name}/tokenizer.json", string_merges(t) if name == "gpt2_prefix" else json.dumps(json.loads(t.to_str()), ensure_ascii=False))
        expect_tokenizer(name, t)
    write_files(made)


def write_files(made):
    """The same tokenizers as the files that came before tokenizer.json."""
    if "gpt2" in made:
        model = json.loads(made["gpt2"].to_str())["model"]
        save("gpt2_files/vocab.json", json.dumps(model["vocab"], ensure_ascii=True))
        save("gpt2_files/merges.txt", "#version: 0.2\n" + "".join(" ".join(m) + "\n" for m in model["merges"]))
    for name in made:
        if name.startswith("bert_"):
            vocab = made[name].get_vocab()
            save(f"{name}_files/vocab.txt", "".join(piece + "\n" for piece in sorted(vocab, key=vocab.get)))
            save(f"{name}_files/tokenizer_config.json", compact({"do_lower_case": name == "bert_uncased", "cls_token": "[CLS]"}))


def whole_specials(p):
    """T5's tokenizer keeps these whole in a text; SentencePiece itself would split them."""
    ids = {p.id_to_piece(i): i for i in (p.pad_id(), p.eos_id(), p.unk_id()) if i >= 0}
    parts = re.compile("(" + "|".join(map(re.escape, ids)) + ")")
    return lambda text: [i for part in parts.split(text) if part for i in ([ids[part]] if part in ids else p.encode(part))]


def write_spm():
    kinds = {"spm_bpe": lambda: spm(model_type="bpe", vocab_size=600), "spm_unigram": lambda: spm(model_type="unigram", vocab_size=600), "spm_t5": t5_model}
    for name, make in kinds.items():
        if not wanted(name):
            continue
        model = make()
        p = sentencepiece.SentencePieceProcessor(model_proto=model)
        t5 = name != "spm_bpe"
        save(f"{name}/{'spiece.model' if t5 else 'tokenizer.model'}", model)
        encode = whole_specials(p) if t5 else p.encode
        expect(name, encode, p.decode, lambda text: encode(text) + [p.eos_id()] if t5 else p.encode(text, add_bos=True))
        if name == "spm_t5":
            t = t5_tokenizer(model)
            save("unigram_t5/tokenizer.json", json.dumps(json.loads(t.to_str()), ensure_ascii=False))
            expect_tokenizer("unigram_t5", t)


save_texts()
write_tokenizers()
write_spm()
