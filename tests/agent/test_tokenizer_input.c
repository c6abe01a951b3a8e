/* What is wrong in a tokenizer.json is said with its field; pieces, and ids that are none. */
#include "agent/text/tokenizer.h"

#include "base/mem.h"
#include "tests/agent/tokenized.h"
#include "tests/support.h"

#include <string.h>

#define DATA "tests/data/tokenizers/"

/* A tokenizer.json around the middle of it: pieces a, b, ab, <s>. */
#define VOCAB            "\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"<s>\":3}"
#define MERGES           "\"merges\":[\"a b\"]"
#define MODEL            "\"model\":{\"type\":\"BPE\"," VOCAB "," MERGES "}"
#define WITH(part)       "{" part "," MODEL "}"
#define MODEL_WITH(part) "{\"model\":{\"type\":\"BPE\"," part "}}"
#define SPLIT(fields)    WITH("\"pre_tokenizer\":{\"type\":\"Split\"," fields "}")
#define REGEX(expression)                                                                          \
    SPLIT("\"behavior\":\"Isolated\",\"pattern\":{\"Regex\":\"" expression "\"}")
#define ADDED(fields)     WITH("\"added_tokens\":[{" fields "}]")
#define UNIGRAM(vocab)    "{\"model\":{\"type\":\"Unigram\",\"vocab\":" vocab "}}"
#define WORDPIECE(fields) "{\"model\":{\"type\":\"WordPiece\"," fields "}}"
#define CHARSMAP(base64)                                                                           \
    WITH("\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"" base64 "\"}")
#define BERT_SPLIT            "{\"type\":\"BertPreTokenizer\"}"
#define SEQUENCE(list, inner) "{\"type\":\"Sequence\",\"" list "\":[" inner "]}"

static const struct {
    const char *text;
    enum error_code code;
    const char *says; /* NULL: it opens */
} rows[] = {
    {"{" MODEL "}", 0, NULL},
    {"{\"model\":{" VOCAB "," MERGES "}}", 0, NULL},
    {WITH("\"normalizer\":null,\"pre_tokenizer\":null,\"truncation\":{\"x\":1}"), 0, NULL},
    /* JSON */
    {"", ERR_INPUT, "line 1, column 0: "},
    {"{\"model\":", ERR_INPUT, "line 1, column 9: "},
    {"{\"a\":1,\"a\":2}", ERR_INPUT, "duplicate object key"},
    {"[]", ERR_INPUT, "must be a mapping, not a list"},
    {"{}", ERR_INPUT, "model: must be there"},
    {"{\"model\":7}", ERR_INPUT, "model: must be a mapping, not the number 7"},
    /* the model */
    {"{\"model\":{\"type\":\"WordLevel\"}}", ERR_UNSUPPORTED,
     "model.type is WordLevel: only BPE, Unigram and WordPiece are supported"},
    {UNIGRAM("[[\"a\",-1.5],[\"b\",2]],\"unk_id\":1"), 0, NULL},
    {UNIGRAM("[[\"a\",-1.5]]"), ERR_INPUT, "model.unk_id: must be there, and within 0 and 0"},
    {UNIGRAM("[[\"a\",-1.5]],\"unk_id\":1"), ERR_INPUT, "model.unk_id: must be there, and within"},
    {UNIGRAM("[],\"unk_id\":0"), ERR_INPUT, "there are no pieces in it"},
    {UNIGRAM("{\"a\":0},\"unk_id\":0"), ERR_INPUT, "model.vocab: must be a list"},
    {UNIGRAM("[[\"a\",-1.5],[\"b\"]],\"unk_id\":0"), ERR_INPUT,
     "model.vocab[1]: must be [PIECE, SCORE]"},
    {UNIGRAM("[[\"a\",-1.5],[\"a\",1]],\"unk_id\":0"), ERR_INPUT,
     "model.vocab: piece \"a\" has two ids, 0 and 1"},
    {WORDPIECE("\"vocab\":{\"[UNK]\":0,\"a\":1}"), 0, NULL},
    {WORDPIECE("\"vocab\":{\"a\":1}"), ERR_INPUT, "model.unk_token: [UNK] is not in model.vocab"},
    {WORDPIECE("\"unk_token\":\"?\",\"vocab\":{\"a\":1}"), ERR_INPUT,
     "model.unk_token: ? is not in model.vocab"},
    {WORDPIECE("\"vocab\":{\"[UNK]\":0},\"max_input_chars_per_word\":-1"), ERR_INPUT,
     "model.max_input_chars_per_word: must be within 0 and 65536, not -1"},
    {WORDPIECE("\"unk_token\":\"a\""), ERR_INPUT, "model.vocab: must be there"},
    {MODEL_WITH(MERGES), ERR_INPUT, "model.vocab: must be there"},
    {MODEL_WITH(VOCAB), ERR_INPUT, "model.merges: must be there"},
    {MODEL_WITH("\"vocab\":{},\"merges\":[]"), ERR_INPUT, "there are no pieces in it"},
    {MODEL_WITH("\"vocab\":[]," MERGES), ERR_INPUT, "model.vocab: must be a mapping"},
    {MODEL_WITH("\"vocab\":{\"a\":0,\"a\":1}," MERGES), ERR_INPUT, "duplicate"},
    {MODEL_WITH("\"vocab\":{\"a\":0,\"b\":0},\"merges\":[]"), ERR_INPUT,
     "model.vocab: id 0 has two pieces, \"a\" and \"b\""},
    {MODEL_WITH("\"vocab\":{\"a\":-1},\"merges\":[]"), ERR_INPUT,
     "model.vocab[\"a\"]: must be within 0 and 2097151, not -1"},
    {MODEL_WITH("\"vocab\":{\"a\":2097152},\"merges\":[]"), ERR_INPUT, "not 2097152"},
    {MODEL_WITH("\"vocab\":{\"a\":99999999999999999999},\"merges\":[]"), ERR_INPUT,
     "within 0 and 2097151, not 99999999999999999999"},
    {MODEL_WITH("\"vocab\":{\"a\":\"0\"},\"merges\":[]"), ERR_INPUT,
     "model.vocab[\"a\"]: must be a whole number, not the text \"0\""},
    {MODEL_WITH(VOCAB ",\"merges\":[\"ab\"]"), ERR_INPUT,
     "model.merges[0]: must be \"LEFT RIGHT\""},
    {MODEL_WITH(VOCAB ",\"merges\":[\"a b\",\"a b c\"]"), ERR_INPUT, "model.merges[1]: must be"},
    {MODEL_WITH(VOCAB ",\"merges\":[[\"a\"]]"), ERR_INPUT, "model.merges[0]: must be"},
    {MODEL_WITH(VOCAB ",\"merges\":[[\"a\",7]]"), ERR_INPUT, "model.merges[0]: must be"},
    {MODEL_WITH(VOCAB ",\"merges\":[\"a b\",\"x b\"]"), ERR_INPUT,
     "model.merges[1]: piece x is not in model.vocab"},
    {MODEL_WITH(VOCAB ",\"merges\":[\"b a\"]"), ERR_INPUT,
     "model.merges[0]: piece ba is not in model.vocab"},
    {MODEL_WITH(VOCAB "," MERGES ",\"unk_token\":\"?\""), ERR_INPUT,
     "model.unk_token: ? is not in model.vocab"},
    {MODEL_WITH(VOCAB "," MERGES ",\"dropout\":0.1"), ERR_INPUT, "model.dropout: is not supported"},
    {MODEL_WITH(VOCAB "," MERGES ",\"dropout\":0"), 0, NULL},
    {MODEL_WITH(VOCAB "," MERGES ",\"byte_fallback\":1"), ERR_INPUT,
     "model.byte_fallback: must be true or false"},
    {MODEL_WITH(VOCAB "," MERGES ",\"continuing_subword_prefix\":\"##\""), ERR_INPUT,
     "model.merges[0]: b is shorter than the prefix ##"},
    /* added tokens */
    {ADDED("\"id\":4,\"content\":\"</s>\""), 0, NULL},
    {ADDED("\"id\":3,\"content\":\"<s>\""), 0, NULL},
    {ADDED("\"id\":4,\"content\":\"\""), 0, NULL},
    {ADDED("\"content\":\"x\""), ERR_INPUT, "added_tokens[0].id: must be there"},
    {ADDED("\"id\":4"), ERR_INPUT, "added_tokens[0].content: must be there"},
    {ADDED("\"id\":-4,\"content\":\"x\""), ERR_INPUT, "added_tokens[0].id: must be within 0"},
    {"{\"added_tokens\":[{\"id\":-4,\"content\":\"x\"}]}", ERR_INPUT,
     "added_tokens[0].id: must be within 0 and 2097151, not -4; model: must be there"},
    {ADDED("\"id\":4,\"content\":\"<s>\""), ERR_INPUT,
     "added_tokens[0]: \"<s>\" has id 4 here, but 3 before"},
    {ADDED("\"id\":3,\"content\":\"x\""), ERR_INPUT,
     "added_tokens[0]: id 3 has two pieces, \"<s>\" and \"x\""},
    {ADDED("\"id\":4,\"content\":\"x\",\"lstrip\":\"no\""), ERR_INPUT,
     "added_tokens[0].lstrip: must be true or false"},
    {WITH("\"added_tokens\":{}"), ERR_INPUT, "added_tokens: must be a list"},
    /* the parts */
    {WITH("\"normalizer\":{}"), ERR_INPUT, "normalizer.type: must be there"},
    {WITH("\"normalizer\":{\"type\":\"Nmt\"}"), ERR_UNSUPPORTED,
     "normalizer.type: Nmt is not supported; there are NFC"},
    {WITH("\"normalizer\":" SEQUENCE("normalizers",
                                     "{\"type\":\"NFC\"},{\"type\":\"Precompiled\"}")),
     ERR_INPUT, "normalizer.normalizers[1].precompiled_charsmap: must be there"},
    {CHARSMAP("????"), ERR_INPUT, "normalizer.precompiled_charsmap: must be base64"},
    {CHARSMAP("AAA"), ERR_INPUT, "normalizer.precompiled_charsmap: must be base64"},
    {CHARSMAP("CAAAAAAA"), ERR_INPUT, "6 bytes with a table of 8: it is cut off"},
    {CHARSMAP("AwAAAAAAAAAA"), ERR_INPUT, "9 bytes with a table of 3: it is cut off, or no table"},
    {CHARSMAP("BAAAAAAAAAD/"), ERR_INPUT, "replacements are no UTF-8 at byte 0"},
    {CHARSMAP("BAAAAAAAAABh"), 0, NULL},
    {WITH("\"normalizer\":{\"type\":\"BertNormalizer\",\"strip_accents\":1}"), ERR_INPUT,
     "normalizer.strip_accents: must be true or false"},
    {WITH("\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"String\":\"x\"}}"), ERR_INPUT,
     "normalizer.content: must be there"},
    {WITH("\"normalizer\":{\"type\":\"Replace\",\"pattern\":{},\"content\":\"\"}"), ERR_INPUT,
     "normalizer.pattern: must have a String or a Regex"},
    {WITH("\"normalizer\":{\"type\":\"Prepend\"}"), ERR_INPUT, "normalizer.prepend: must be there"},
    {WITH("\"pre_tokenizer\":{\"type\":\"UnicodeScripts\"}"), ERR_UNSUPPORTED,
     "pre_tokenizer.type: UnicodeScripts is not supported; there are Split"},
    {WITH("\"pre_tokenizer\":" SEQUENCE("pretokenizers", BERT_SPLIT "," BERT_SPLIT "," BERT_SPLIT
                                                                    "," BERT_SPLIT "," BERT_SPLIT)),
     ERR_INPUT, "pre_tokenizer.pretokenizers[4]: more than 8 pre-tokenizers"},
    {WITH("\"pre_tokenizer\":" SEQUENCE("pretokenizers",
                                        "{\"type\":\"WhitespaceSplit\"}," BERT_SPLIT "," BERT_SPLIT
                                        "," BERT_SPLIT "," BERT_SPLIT)),
     ERR_INPUT, "pre_tokenizer.pretokenizers[4]: more than 8 pre-tokenizers"},
    {WITH("\"pre_tokenizer\":{\"type\":\"Metaspace\"}"), ERR_INPUT,
     "pre_tokenizer.replacement: must be there"},
    {WITH(
         "\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"_\",\"prepend_scheme\":\"x\"}"),
     ERR_INPUT, "pre_tokenizer.prepend_scheme: must be always, first or never, not x"},
    {WITH("\"pre_tokenizer\":" SEQUENCE("pretokenizers",
                                        "{\"type\":\"ByteLevel\"},{\"type\":\"Digits\"}")),
     ERR_UNSUPPORTED, "pre_tokenizer.pretokenizers[1]: nothing may come after ByteLevel"},
    {SPLIT("\"pattern\":{\"String\":\" \"}"), ERR_INPUT,
     "pre_tokenizer.behavior: must be Isolated, Removed"},
    {SPLIT("\"behavior\":\"Isolated\""), ERR_INPUT, "pre_tokenizer.pattern: must have"},
    {WITH("\"decoder\":{\"type\":\"CTC\"}"), ERR_UNSUPPORTED, "decoder.type: CTC is not supported"},
    {WITH("\"decoder\":{\"type\":\"Strip\",\"content\":\"\"}"), ERR_INPUT,
     "decoder.content: must not be empty"},
    {WITH("\"post_processor\":{\"type\":\"Other\"}"), ERR_UNSUPPORTED,
     "post_processor.type: Other is not supported"},
    {WITH("\"post_processor\":{\"type\":\"BertProcessing\",\"cls\":[\"a\",0],\"sep\":[\"b\"]}"),
     ERR_INPUT, "post_processor.sep: must be [TOKEN, ID]"},
    {WITH("\"post_processor\":{\"type\":\"BertProcessing\",\"cls\":[\"a\",0],\"sep\":[\"x\",9]}"),
     ERR_INPUT, "post_processor: no piece has id 9"},
    {WITH("\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":"
          "{\"id\":\"<s>\"}},{\"Sequence\":{\"id\":\"A\"}}],\"special_tokens\":{}}"),
     ERR_INPUT, "post_processor: <s> is not among its special_tokens"},
    {WITH("\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[]}"), ERR_INPUT,
     "post_processor: single: the text must be in it once, not 0 times"},
    {WITH("\"normalizer\":" SEQUENCE(
         "normalizers",
         SEQUENCE(
             "normalizers",
             SEQUENCE("normalizers",
                      SEQUENCE("normalizers", SEQUENCE("normalizers", "{\"type\":\"NFC\"}")))))),
     ERR_INPUT, "nested deeper than 4 levels"},
    /* expressions */
    {REGEX("(?i:'s|'t)|\\\\p{L}+|[^\\\\s\\\\w]+|[]a-c]++|(?<=x)y{1,3}|(?!\\\\S)$"), 0, NULL},
    {REGEX("("), ERR_INPUT, "pre_tokenizer.pattern: expression (: ( without )"},
    {REGEX("\\\\p{Nonsense}"), ERR_INPUT, "unknown property"},
    {REGEX("a\\\\"), ERR_INPUT, "pre_tokenizer.pattern: expression, byte 1: \\ at its end"},
    {REGEX("[a"), ERR_INPUT, "expression, byte 0: [ without ]"},
    {REGEX("x\\\\h+"), ERR_UNSUPPORTED, "pre_tokenizer.pattern: expression, byte 1: \\h is not"},
    {REGEX("\\\\bx"), ERR_UNSUPPORTED, "expression, byte 0: \\b is not supported"},
    {REGEX("[a&&b]"), ERR_UNSUPPORTED, "expression, byte 2: && within [] is not supported"},
    {REGEX("[[:alpha:]]"), ERR_UNSUPPORTED, "expression, byte 1: [ within [] is not supported"},
    {REGEX("[\\\\W]"), ERR_UNSUPPORTED, "expression, byte 1: \\W within [] is not supported"},
    {REGEX("(?m:.)"), ERR_UNSUPPORTED, "expression, byte 0: (?m is not supported: only the flag i"},
    {REGEX("a)"), ERR_INPUT, "expression, byte 1: ) without ("},
    {REGEX("a{3,1}"), ERR_INPUT, "numbers out of order"},
    {REGEX("(?:ab){1}*"), ERR_UNSUPPORTED, "expression, byte 9: * is not supported behind {1}"},
    {REGEX("(?:a|b){,0}"), ERR_UNSUPPORTED, "expression, byte 7: {,0} is not supported"},
    {REGEX("(?i)first"), ERR_UNSUPPORTED,
     "expression, byte 5: i is not supported under the flag i"},
    {REGEX("(?i:x|[\xc3\x9f])"), ERR_UNSUPPORTED, "a letter beyond ASCII"},
    {REGEX("(?i)[\\\\p{Lu}]"), ERR_UNSUPPORTED,
     "\\p{Lu} within [] is not supported under the flag"},
    {REGEX("\\\\pL"), ERR_UNSUPPORTED, "expression, byte 0: \\p is not supported without {...}"},
    {REGEX("\\\\xe9"), ERR_UNSUPPORTED, "expression, byte 0: \\xe9 is a byte, not a character"},
    {REGEX("(a)\\\\12"), ERR_UNSUPPORTED, "expression, byte 3: \\1 is not supported"},
    {REGEX("(?P<n>a)"), ERR_UNSUPPORTED, "expression, byte 0: (?P is not supported"},
    {REGEX("(*UTF)a"), ERR_UNSUPPORTED, "expression, byte 0: (* is not supported"},
};

static void test_what_is_wrong(void **state)
{
    (void)state;
    for (size_t i = 0; i < array_length(rows); i++) {
        struct tokenizer *t = NULL;
        struct error err = {0};
        int result =
            tokenizer_open_json("tokenizer.json", rows[i].text, strlen(rows[i].text), &t, &err);
        if (rows[i].says) {
            assert_fails(result, &err, rows[i].code, rows[i].says);
            assert_true(strncmp(err.msg, "tokenizer.json: ", 16) == 0);
            assert_null(t);
        } else {
            assert_ok(result, &err);
            tokenizer_close(t);
        }
    }
}

/* Several post-processors: the later one is farther out. */
static void test_what_is_put_around(void **state)
{
    (void)state;
    static const char text[] = WITH("\"post_processor\":" SEQUENCE(
        "processors",
        "{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"s\"}},"
        "{\"Sequence\":{\"id\":\"A\"}},{\"SpecialToken\":{\"id\":\"ab\"}}],"
        "\"special_tokens\":{\"s\":{\"ids\":[3,1]},\"ab\":{\"ids\":[2]}}},"
        "{\"type\":\"BertProcessing\",\"cls\":[\"a\",0],\"sep\":[\"b\",1]}"));
    static const int32_t wanted[] = {0, 3, 1, 2, 2, 1};
    struct tokenizer *t;
    struct error err;
    assert_ok(tokenizer_open_json("x", text, strlen(text), &t, &err), &err);
    tokenized_as(t, "ab", wanted, array_length(wanted));
    tokenizer_close(t);
}

/* ---- a vocabulary that is too small, ids that are none ---- */

static void test_ids(void **state)
{
    (void)state;
    struct tokenizer *t;
    struct error err;
    assert_ok(tokenizer_open(DATA "llama3", &t, &err), &err);
    int32_t size = tokenizer_vocabulary(t);
    size_t bytes;
    assert_string_equal(tokenizer_piece(t, size - 1, &bytes), "<|eot_id|>");
    assert_int_equal(bytes, 10);
    assert_null(tokenizer_piece(t, size, &bytes));
    assert_null(tokenizer_piece(t, -1, &bytes));
    assert_int_equal(tokenizer_check_fits(t, size, &err), 0);
    auto_free char *says = xasprintf(DATA "llama3/tokenizer.json: its highest id is %d "
                                          "(\"<|eot_id|>\"), but the model has ids 0 .. %d only",
                                     size - 1, size - 2);
    assert_fails(tokenizer_check_fits(t, size - 1, &err), &err, ERR_INPUT, says);
    struct tokenizer_special special = tokenizer_special(t);
    assert_string_equal(tokenizer_piece(t, special.bos, &bytes), "<|begin_of_text|>");
    assert_string_equal(tokenizer_piece(t, special.eos, &bytes), "<|end_of_text|>");
    auto_str struct str text;
    str_init(&text, 100);
    assert_fails(tokenizer_decode(t, (int32_t[]){5, size}, 2, false, &text, &err), &err, ERR_INPUT,
                 "the one at place 1: no piece of");
    assert_fails(tokenizer_decode(t, (int32_t[]){-1}, 1, false, &text, &err), &err, ERR_INPUT,
                 "id -1, the one at place 0");
    auto_tokens struct tokens ids = {0};
    tokenized(t, "\xe2\x82\xac", false, &ids); /* no piece has all of the three bytes */
    assert_true(ids.count > 1);
    assert_ok(tokenizer_decode(t, ids.ids, ids.count - 1, true, &text, &err), &err);
    assert_true(text.length < 3 && str_text(&text)[0] == '\xe2');
    struct str small;
    str_init(&small, 2);
    assert_fails(tokenizer_decode(t, ids.ids, ids.count, true, &small, &err), &err, ERR_LIMIT,
                 "ids is longer than 2 bytes");
    str_free(&small);
    tokenizer_close(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_wrong),
        cmocka_unit_test(test_what_is_put_around),
        cmocka_unit_test(test_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
