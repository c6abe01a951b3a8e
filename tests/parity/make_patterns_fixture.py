"""Makes tests/data/tokenizers/patterns.jsonl: what the tokenizers library's Split makes of texts, by expressions that
Oniguruma reads otherwise than other libraries, or that published tokenizers have (README.md there).

    python3 tests/parity/make_patterns_fixture.py
"""

import json
import os
import random

from tokenizers import Regex
from tokenizers.pre_tokenizers import Split

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "tokenizers", "patterns.jsonl")

PUBLISHED = [  # cl100k as it was first converted, as tiktoken has it, Qwen 2, o200k, DeepSeek
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+",
    r"[一-龥぀-ゟ゠-ヿ]+",
    r"\p{N}{1,3}+|\p{L}+|\s+|.",
]
TEXTS = ["584194962e5", "I'll say: 1234567 DON'T\r\n\r\n  ok", "été ²³ 東京タワー_9/10\n", "x = {'a': [1, 2]};\t// 日本語\n\n\n"]

# expression, texts
CASES = [
    (r"a{1,3}+", ["aaaaaaab"]), (r"a{2}+", ["aaaaab"]), (r"(?:ab){2}?", ["ababab"]), (r"a{2}?", ["aaab"]), (r"a{2,2}?", ["aaaab"]),
    (r"a{2}??b", ["aab b"]), (r"a{2,3}?", ["aaaaa"]), (r"a{,2}", ["aaab"]), (r"a{,2}?b", ["aaab"]), (r"a{,2}+b", ["aaaaab"]),
    (r"a{,}", ["a{,}aa"]), (r"a{ 2}|b{x}|c{", ["a{ 2}b{x}c{aa"]), (r"a{2}{3}", ["aaaaaaab"]), (r"a+*b", ["aab b"]), (r"x(?:ab{1,2})+{2}", ["xabababb"]),
    (r"(?:a|bc){1,2}+d", ["abcabcd"]), (r"[ab]{2}+c", ["ababac"]), (r"\p{N}{2}+", ["12345"]), (r"\x61{2}+b", ["aaaaab"]),
    (r"\v", ["a\vb\n\fc\u2028"]), (r"[\v]+", ["a\vb\n"]), (r"\V\Q\E", ["VQE \v"]), (r"\i\m", ["im Im"]), (r"\x62|\u0061|\012", ["ab\n"]),
    (r"\é{2}+", ["ééééé"]), (r"x(?i)a|b", ["xaxBabBXA"]), (r"(?i)a|b", ["AbC"]), (r"x|(?i)y(?-i)z|w", ["XYzyWyZxYw"]), (r"(q(?i)a|b)c", ["qAcqbCqBc bc"]),
    (r"(?i:k)", ["kK\u212a"]), (r"(?i)[^s]", ["sS\u017fx"]), (r"(?i:['’](?:ll|t))", ["I'LL don’T"]), (r"x*", ["abxxc"]), (r"(?=b)", ["abab"]), (r"a??", ["aab"]),
    (r"", ["aé"]), (r"$|^", ["a\nb\n"]), (r"(?#c[)a(?#d)+", ["aab"]), (r"\w+", ["aé_\u0301²"]), (r"[\w-]+", ["a²-b"]), (r"[^\w]", ["a ²"]), (r"\W", ["a ²"]),
    (r"\s", ["a\u180e\u3000b\x85"]), (r"(?>a+)b|(?<=b)c|(?<!b)d", ["aabcdbd"]), (r"(?<n>a)b", ["abb"]), (r"[]a]+", ["]ab"]), (r"[^]a]+", ["]ab"]),
]
EMPTY = [r"x*", r"(?=[b-d])", r"x??"]
BEHAVIORS = ["isolated", "removed", "merged_with_previous", "merged_with_next", "contiguous"]


def row(expression, text, behavior="isolated", invert=False):
    pieces = [piece for piece, _ in Split(Regex(expression), behavior, invert).pre_tokenize_str(text)]
    name = "".join(word.capitalize() for word in behavior.split("_"))
    return json.dumps({"expression": expression, "text": text, "behavior": name, "invert": invert, "pieces": pieces})


def main():
    draw = random.Random(1)
    letters = list("aabcxx 12345'sLT\n\r") + ["é", "²", "東", "\u0301", "\u3000", "’"]
    random_texts = ["".join(draw.choice(letters) for _ in range(40)) for _ in range(3)]
    with open(OUT, "w") as file:
        for expression in PUBLISHED:
            for text in TEXTS + random_texts:
                print(row(expression, text), file=file)
        for expression, texts in CASES:
            for text in texts:
                print(row(expression, text), file=file)
        for expression in EMPTY:
            for behavior in BEHAVIORS:
                for invert in (False, True):
                    print(row(expression, "abxxcxd", behavior, invert), file=file)


if __name__ == "__main__":
    main()
