/* Rows of files to samples of ids. The tokenizer's ids are bytes, so samples are shown as text: '<'
 * is bos, '>' eos, '|' stands between the parts, '#' before a label. */
#include "agent/dataset/examples.h"

#include "agent/trainer/encoder.h"
#include "base/mem.h"
#include "base/str.h"
#include "tests/agent/token_texts.h"
#include "tests/support.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

/* A row of the tables: what is not said is 0. */
struct asked {
    enum examples_kind kind;
    const char *file, *content;
    const char *split, *label_names, *pair, *prefix; /* NULL: train, none, none, none */
    const char *model_names;
    enum token_packing packing;
    int64_t max_tokens, max_source, max_target; /* 0: 12, 100, 100 */
    int64_t max_rows;
    bool may_cut;
    enum token_affix add_bos;
};

static struct examples_options options_of(const struct asked *a, const char *dir, int threads)
{
    struct token_options data = texts_options(dir, 0);
    data.split = a->split ? a->split : "train";
    data.max_rows = a->max_rows;
    data.packing = a->packing;
    data.threads = threads;
    data.add_bos = a->add_bos;
    data.encoder.adds_eos = true;
    return (struct examples_options){
        .kind = a->kind,
        .data = data,
        .target_column = "summary",
        .source_prefix = a->prefix ? a->prefix : "",
        .text_pair_column = a->pair ? a->pair : "",
        .label_column = "label",
        .label_names = a->label_names ? a->label_names : "",
        .model_names = a->model_names,
        .classes = 3,
        .max_source = a->max_source ? a->max_source : 100,
        .max_target = a->max_target ? a->max_target : 100,
        .max_tokens = a->max_tokens ? a->max_tokens : 12,
        .may_cut = a->may_cut,
    };
}

static void show_ids(const int32_t *ids, int64_t count, struct str *out)
{
    for (int64_t i = 0; i < count; i++) {
        char c = ids[i] == TEXTS_BOS ? '<' : ids[i] == TEXTS_EOS ? '>' : (char)(ids[i] - 3);
        str_add_bytes(out, &c, 1);
    }
}

static void show(const struct examples *x, enum examples_kind kind, struct str *out)
{
    bool labels = kind == EXAMPLES_CLASSES || kind == EXAMPLES_PRETRAINING;
    for (int64_t i = 0; i < x->item_count; i++) {
        const struct example *item = &x->items[i];
        if (i > 0)
            str_add(out, "\n");
        show_ids(x->ids + item->begin, item->counts[0], out);
        if (item->counts[1] > 0)
            str_add(out, "|");
        show_ids(x->ids + item->begin + item->counts[0], item->counts[1], out);
        if (labels)
            str_printf(out, "#%d", item->label);
    }
}

static const struct {
    struct asked asked;
    const char *samples;
} rows[] = {
    /* sequence to sequence */
    {{.kind = EXAMPLES_TRANSLATION,
      .file = "train.jsonl",
      .content =
          "{\"text\":\"long\",\"summary\":\"s\"}\n\n{\"summary\":\"t\",\"text\":\"a\",\"x\":1}\n",
      .prefix = "p: "},
     "p: long>|s>\np: a>|t>"},
    {{.kind = EXAMPLES_TRANSLATION,
      .file = "train.jsonl",
      .content = "{\"text\":\"abcdef\",\"summary\":\"uvwxyz\"}\n",
      .prefix = "p",
      .max_source = 5,
      .max_target = 3},
     "pabc>|uv>"},
    {{.kind = EXAMPLES_TRANSLATION,
      .file = "train.jsonl",
      .content = "{\"text\":\"a\",\"summary\":\"b\"}\n",
      .add_bos = TOKENS_AFFIX_TRUE},
     "<a>|<b>"},
    {{.kind = EXAMPLES_TRANSLATION,
      .file = "train.csv",
      .content = "summary,title,text\r\n\"one\nline\",x,\"a \"\"b\"\"\"\r\n\r\ntwo,,c\r\n"},
     "a \"b\">|one\nline>\nc>|two>"},
    {{.kind = EXAMPLES_TRANSLATION,
      .file = "train.tsv",
      .content = "text\tsummary\na\tb\nc \"d\te\n"},
     "a>|b>\nc \"d>|e>"},
    /* parts of a split */
    {{.kind = EXAMPLES_TRANSLATION,
      .file = "train.tsv",
      .content = "text\tsummary\na\t1\nb\t2\nc\t3\nd\t4\n",
      .split = "train[:2]"},
     "a>|1>\nb>|2>"},
    {{.kind = EXAMPLES_TRANSLATION,
      .file = "train.tsv",
      .content = "text\tsummary\na\t1\nb\t2\nc\t3\nd\t4\n",
      .split = "train[50%:]",
      .max_rows = 1},
     "c>|3>"},
    {{.kind = EXAMPLES_TRANSLATION,
      .file = "train.tsv",
      .content = "text\tsummary\na\t1\nb\t2\nc\n",
      .max_rows = 2},
     "a>|1>\nb>|2>"}, /* what is not used is not looked at */
    {{.kind = EXAMPLES_TRANSLATION,
      .file = "x.test.tsv",
      .content = "text\tsummary\na\t1\n",
      .split = "validation"},
     "a>|1>"},
    /* classes */
    {{.kind = EXAMPLES_CLASSES,
      .file = "train.jsonl",
      .content = "{\"text\":\"ab\",\"label\":2}\n{\"text\":\"\",\"label\":\"0\"}\n"},
     "<ab>#2\n<>#0"},
    {{.kind = EXAMPLES_CLASSES,
      .file = "train.tsv",
      .content = "label\ttext\nno\ta\nyes\tb\n",
      .label_names = "yes,no,perhaps"},
     "<a>#1\n<b>#0"},
    {{.kind = EXAMPLES_CLASSES,
      .file = "train.tsv",
      .content = "label\ttext\nno\ta\n2\tb\n",
      .model_names = "yes,no,perhaps"},
     "<a>#1\n<b>#2"},
    {{.kind = EXAMPLES_CLASSES,
      .file = "train.tsv",
      .content = "label\ttext\n1\ta\n2\tb\n",
      .model_names = "1,2,3"},
     "<a>#1\n<b>#2"},
    {{.kind = EXAMPLES_CLASSES,
      .file = "train.tsv",
      .content = "label\ttext\tother\n1\ta\tbc\n",
      .pair = "other"},
     "<a>|bc>#1"},
    {{.kind = EXAMPLES_CLASSES,
      .file = "train.tsv",
      .content = "label\ttext\tother\n1\tabcdefgh\tuvwxyz\n1\ta\tuvwxyzuvwxyz\n",
      .pair = "other",
      .may_cut = true},
     "<abcde>|uvwx>#1\n<a>|uvwxyzuv>#1"},
    {{.kind = EXAMPLES_CLASSES,
      .file = "train.tsv",
      .content = "label\ttext\n1\tabcdefghijklmn\n",
      .may_cut = true},
     "<abcdefghij>#1"},
    /* masked words */
    {{.kind = EXAMPLES_MASKED,
      .file = "train.txt",
      .content = "abc\n\n  \ndefghi\njk\n",
      .packing = TOKENS_NONE},
     "<abc>\n<defghi>\n<jk>"},
    {{.kind = EXAMPLES_MASKED,
      .file = "train.txt",
      .content = "abc\ndefghi\njk\nlmnopq\n",
      .packing = TOKENS_CONCAT,
      .max_tokens = 8},
     "<abc><de\nfghi><jk\n><lmnopq"},
    {{.kind = EXAMPLES_MASKED,
      .file = "train.jsonl",
      .content = "{\"text\":\"abcdefgh\"}\n{\"text\":\"ij\"}\n{\"text\":\"\"}\n",
      .packing = TOKENS_PER_DOCUMENT,
      .max_tokens = 5},
     "<abc>\n<def>\n<gh>\n<ij>"},
    {{.kind = EXAMPLES_MASKED,
      .file = "train.txt",
      .content = "abcdefgh\n",
      .packing = TOKENS_NONE,
      .max_tokens = 6,
      .may_cut = true},
     "<abcd>"},
    /* sentences */
    {{.kind = EXAMPLES_PRETRAINING,
      .file = "train.txt",
      .content = "ab\ncd\n\n\nef\n\ngh\nij\nkl\n"},
     "ab#0\ncd#0\nef#1\ngh#2\nij#2\nkl#2"},
    {{.kind = EXAMPLES_PRETRAINING,
      .file = "train.jsonl",
      .content = "{\"text\":\"a\\nb\\n\\n\"}\n{\"text\":\"c\"}\n"},
     "a#0\nb#0\nc#1"},
    {{.kind = EXAMPLES_PRETRAINING, .file = "train.txt", .content = "abcdefghijklmn\nop\n"},
     "abcdefgh#0\nop#0"},
};

static void check_row(const struct asked *asked, const char *samples, int threads)
{
    auto_free char *dir = support_temp_dir();
    auto_free char *path = texts_write(dir, asked->file, asked->content, strlen(asked->content));
    struct examples_options options = options_of(asked, dir, threads);
    struct examples *x;
    struct error err;
    auto_str struct str shown;
    str_init(&shown, 4096);
    assert_ok(examples_open(&options, &x, &err), &err);
    show(x, asked->kind, &shown);
    assert_string_equal(str_text(&shown), samples);
    examples_close(x);
    support_remove_tree(dir);
}

static void test_samples(void **state)
{
    (void)state;
    for (size_t i = 0; i < array_length(rows); i++)
        for (int threads = 0; threads <= 2; threads += 2)
            check_row(&rows[i].asked, rows[i].samples, threads);
}

static const struct {
    struct asked asked;
    enum error_code code;
    const char *says;
} mistakes[] = {
    {{.kind = EXAMPLES_TRANSLATION,
      .file = "train.jsonl",
      .content = "{\"text\":\"a\",\"summary\":\"b\"}\n{\"text\":\"a\"}\n"},
     ERR_INPUT,
     "train.jsonl:2: no text \"summary\" in it; it has text: set data.target_column"},
    {{.kind = EXAMPLES_TRANSLATION, .file = "train.jsonl", .content = "\n\n{\"summary\":\"a\"}\n"},
     ERR_INPUT,
     "train.jsonl:3: no text \"text\" in it; it has summary: set data.text_column"},
    {{.kind = EXAMPLES_TRANSLATION,
      .file = "train.jsonl",
      .content = "{\"text\":\"a\",\"summary\":\"b\"}\n{\"text\n"},
     ERR_INPUT,
     "train.jsonl:2: no JSON object: "},
    {{.kind = EXAMPLES_TRANSLATION,
      .file = "train.jsonl",
      .content = "{\"text\":\"a\",\"summary\":\"\"}\n"},
     ERR_INPUT,
     "train.jsonl:1: its \"summary\" is empty: nothing is to be learned"},
    {{.kind = EXAMPLES_TRANSLATION,
      .file = "train.jsonl",
      .content = "{\"text\":\"\",\"summary\":\"a\"}\n",
      .prefix = "p: "},
     ERR_INPUT,
     "train.jsonl:1: its \"text\" is empty: nothing is to be read"},
    {{.kind = EXAMPLES_TRANSLATION, .file = "train.tsv", .content = "text\tresume\na\tb\n"},
     ERR_INPUT,
     "train.tsv:1: no column \"summary\"; it has text, resume: set data.target_column"},
    {{.kind = EXAMPLES_TRANSLATION, .file = "train.tsv", .content = "text\tsummary\na\n"},
     ERR_INPUT,
     "train.tsv:2: it has only 1 fields"},
    {{.kind = EXAMPLES_TRANSLATION, .file = "train.csv", .content = "text,summary\na,\"b\nc,d\n"},
     ERR_INPUT,
     "train.csv:2: a quote is left open"},
    {{.kind = EXAMPLES_TRANSLATION, .file = "train.tsv", .content = "text\tsummary\n"},
     ERR_INPUT,
     "train.tsv: no row in train"},
    {{.kind = EXAMPLES_TRANSLATION, .file = "train.txt", .content = "a\n"},
     ERR_UNSUPPORTED,
     "text has no columns of text: give JSON lines, TSV or CSV"},
    {{.kind = EXAMPLES_TRANSLATION,
      .file = "train.tsv",
      .content = "text\tsummary\na\tb\n",
      .split = "test"},
     ERR_NOT_FOUND,
     "has no split test"},
    {{.kind = EXAMPLES_TRANSLATION,
      .file = "train.tsv",
      .content = "text\tsummary\na\tb\n",
      .split = "train[:x]"},
     ERR_CONFIG,
     "train[:x]"},
    {{.kind = EXAMPLES_TRANSLATION,
      .file = "train.tsv",
      .content = "text\tsummary\na\tb\n",
      .max_target = 1},
     ERR_CONFIG,
     "data.max_target_length: 1 leaves no room for a text, whose eos counts, too: at least 2"},
    {{.kind = EXAMPLES_TRANSLATION,
      .file = "train.tsv",
      .content = "text\tsummary\na\tb\n",
      .max_source = 2,
      .add_bos = TOKENS_AFFIX_TRUE},
     ERR_CONFIG,
     "data.max_source_length: 2 leaves no room for a text, whose bos and eos count, too: at least 3"},
    {{.kind = EXAMPLES_CLASSES, .file = "train.tsv", .content = "text\tlabel\na\t3\n"},
     ERR_INPUT,
     "train.tsv:2: its \"label\" is \"3\", not a class from 0 to 2: give names in data.label_names"},
    {{.kind = EXAMPLES_CLASSES, .file = "train.tsv", .content = "text\tlabel\na\t-1\n"},
     ERR_INPUT,
     "is \"-1\", not a class"},
    {{.kind = EXAMPLES_CLASSES,
      .file = "train.tsv",
      .content = "text\tlabel\na\tx\n",
      .label_names = "y,n,m"},
     ERR_INPUT,
     "train.tsv:2: its \"label\" is \"x\", which data.label_names has not"},
    {{.kind = EXAMPLES_CLASSES,
      .file = "train.tsv",
      .content = "text\tlabel\na\tx\n",
      .label_names = "y,n"},
     ERR_CONFIG,
     "data.label_names: 2 names, but the model has 3 classes"},
    {{.kind = EXAMPLES_CLASSES,
      .file = "train.tsv",
      .content = "text\tlabel\na\t3\n",
      .model_names = "1,2,3"},
     ERR_INPUT,
     "train.tsv:2: its \"label\" is \"3\", not a class from 0 to 2"},
    {{.kind = EXAMPLES_CLASSES,
      .file = "train.tsv",
      .content = "text\tlabel\na\t1\nabcdefghijklmn\t1\n"},
     ERR_INPUT,
     "train.tsv:3: more than the 12 tokens that the model has positions for: "
     "data.max_seq_length=12 cuts longer rows off"},
    {{.kind = EXAMPLES_CLASSES, .file = "train.jsonl", .content = "{\"text\":\"a\"}\n"},
     ERR_INPUT,
     "train.jsonl:1: no text or whole number \"label\" in it"},
    {{.kind = EXAMPLES_MASKED,
      .file = "train.txt",
      .content = "abcdefgh\n",
      .packing = TOKENS_NONE,
      .max_tokens = 8},
     ERR_INPUT,
     "train.txt:1: more than the 8 tokens"},
    {{.kind = EXAMPLES_MASKED, .file = "train.txt", .content = "abc\n", .max_tokens = 8},
     ERR_INPUT,
     "train.txt: only 5 tokens in all, fewer than the 8 of one sample: set data.max_seq_length, "
     "or data.packing=none"},
    {{.kind = EXAMPLES_PRETRAINING, .file = "train.txt", .content = "abc\n\ndef\n"},
     ERR_INPUT,
     "train.txt: no sentence that has a next one in train"},
    {{.kind = EXAMPLES_TRANSLATION, .file = "train.bin", .content = "\x88\xd8\x34\x01----"},
     ERR_UNSUPPORTED,
     "llmc_bin has ids, but the model learns rows of text: give JSON lines, TSV or CSV"},
    {{.kind = EXAMPLES_TRANSLATION, .file = "train-00000-of-00001.parquet", .content = "PAR1"},
     ERR_NOT_FOUND,
     "; Parquet is not read: write JSON lines, in Python by datasets' to_json()"},
};

static void test_what_is_wrong(void **state)
{
    (void)state;
    for (size_t i = 0; i < array_length(mistakes); i++) {
        auto_free char *dir = support_temp_dir();
        const struct asked *asked = &mistakes[i].asked;
        auto_free char *path =
            texts_write(dir, asked->file, asked->content, strlen(asked->content));
        struct examples_options options = options_of(asked, dir, (int)(i % 3));
        struct examples *x = NULL;
        struct error err;
        assert_fails(examples_open(&options, &x, &err), &err, mistakes[i].code, mistakes[i].says);
        assert_null(x);
        support_remove_tree(dir);
    }
}

static void test_pairs_are_cut_as_the_library_does(void **state)
{
    (void)state;
    static const int64_t pairs[][5] = {
        /* room, two texts, what is left of them */
        {9, 4, 5, 4, 5},  {9, 8, 6, 5, 4}, {9, 6, 8, 4, 5}, {9, 1, 20, 1, 8},
        {9, 20, 1, 8, 1}, {8, 9, 9, 4, 4}, {8, 4, 9, 4, 4}, {8, 0, 9, 0, 8},
    };
    for (size_t i = 0; i < array_length(pairs); i++) {
        int64_t first = pairs[i][1], second = pairs[i][2];
        examples_cut_pair(pairs[i][0], &first, &second);
        assert_int_equal(first, pairs[i][3]);
        assert_int_equal(second, pairs[i][4]);
    }
}

static void test_tokenizers_that_do_not_fit(void **state)
{
    (void)state;
    static const struct asked asked = {
        .kind = EXAMPLES_CLASSES, .file = "train.tsv", .content = "text\tlabel\nab\t1\n"};
    auto_free char *dir = support_temp_dir();
    auto_free char *path = texts_write(dir, asked.file, asked.content, strlen(asked.content));
    struct examples_options options = options_of(&asked, dir, 0);
    struct examples *x;
    struct error err;
    options.data.vocab_size = 'b' + TEXTS_FIRST;
    assert_fails(
        examples_open(&options, &x, &err), &err, ERR_INPUT,
        "train.tsv:2: the tokenizer gives id 101, the model's vocabulary has 101: take the "
        "model's own tokenizer");
    options.data.encoder.bos = -1;
    assert_fails(examples_open(&options, &x, &err), &err, ERR_CONFIG,
                 "data.tokenizer: it has no bos ([CLS]), which the model needs");
    options.data.encoder = (struct token_encoder){.bos = -1};
    assert_fails(examples_open(&options, &x, &err), &err, ERR_CONFIG,
                 "train.tsv is tsv: set data.tokenizer");
    support_remove_tree(dir);
}

/* Only as much of a long text is tokenized as is needed, and the result is that of all of it. */
static void test_long_texts(void **state)
{
    (void)state;
    enum { WORDS = 20000 };
    static const struct asked asked = {
        .kind = EXAMPLES_TRANSLATION, .file = "train.jsonl.gz", .content = "", .max_source = 40};
    auto_free char *dir = support_temp_dir();
    auto_str struct str lines;
    str_init(&lines, 1 << 20);
    str_add(&lines, "{\"summary\":\"s\",\"text\":\"");
    for (int i = 0; i < WORDS; i++)
        str_printf(&lines, "%d ", i);
    str_add(&lines, "\"}\n");
    auto_free char *path = texts_write_gzip(dir, asked.file, str_text(&lines), lines.length, 3);
    struct examples_options options = options_of(&asked, dir, 2);
    struct examples *x;
    struct error err;
    auto_str struct str shown;
    str_init(&shown, 4096);
    assert_ok(examples_open(&options, &x, &err), &err);
    show(x, asked.kind, &shown);
    assert_string_equal(str_text(&shown), "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 1>|s>");
    assert_int_equal(x->id_count, 42);
    examples_close(x);
    support_remove_tree(dir);
}

/* The same with tokenizers of each kind, at lengths where the texts are cut anywhere. */
static void check_beginnings(const char *name, const char *dir, const char *text)
{
    enum { LONGEST = 60 };
    static const struct asked asked = {.kind = EXAMPLES_TRANSLATION};
    auto_free char *path = xasprintf("tests/data/tokenizers/%s", name);
    auto_tokens struct tokens all = {0};
    struct tokenizer *tokenizer;
    struct error err;
    assert_ok(tokenizer_open(path, &tokenizer, &err), &err);
    assert_ok(tokenizer_encode(tokenizer, text, strlen(text), false, &all, &err), &err);
    assert_true(all.count > 10 * LONGEST);
    for (int64_t most = 1; most <= LONGEST; most += 7) {
        struct examples_options options = options_of(&asked, dir, 0);
        struct examples *x;
        options.max_source = most;
        options.data.vocab_size = tokenizer_vocabulary(tokenizer);
        assert_ok(encoder_of(tokenizer, &options.data.encoder, &err), &err);
        options.data.add_bos = options.data.add_eos = TOKENS_AFFIX_FALSE;
        assert_ok(examples_open(&options, &x, &err), &err);
        assert_int_equal(x->items[0].counts[0], most);
        assert_memory_equal(x->ids, all.ids, (size_t)most * sizeof *all.ids);
        examples_close(x);
    }
    tokenizer_close(tokenizer);
}

static void test_long_texts_of_real_tokenizers(void **state)
{
    (void)state;
    static const char *const names[] = {"unigram_t5",  "spm_t5",       "spm_bpe",
                                        "bert_cased",  "llama3",       "llama2_legacy",
                                        "gpt2_prefix", "unknown_fused"};
    auto_free char *dir = support_temp_dir();
    auto_str struct str text, lines;
    str_init(&text, 1 << 20);
    str_init(&lines, 1 << 20);
    for (int i = 0; i < 400; i++)
        str_printf(&text, "%sIt's  the %dth: caf\xc3\xa9,   \xe4\xb8\xad\xe6\x96\x87 no.%d ",
                   i % 5 ? "" : "aaaaaaaaaaaaaaaaaaaaaaaa ", i, i * i);
    str_printf(&lines, "{\"summary\":\"s\",\"text\":\"%s\"}\n", str_text(&text));
    auto_free char *path = texts_write(dir, "train.jsonl", str_text(&lines), lines.length);
    for (size_t i = 0; i < array_length(names); i++)
        check_beginnings(names[i], dir, str_text(&text));
    support_remove_tree(dir);
}

/* Whatever was in the memory before. */
static void test_fingerprints(void **state)
{
    (void)state;
    static const char *const contents[] = {"text\tsummary\na\tbc\n", "text\tsummary\na\tbc\n",
                                           "text\tsummary\nab\tc\n", "text\tsummary\na\tbd\n"};
    uint64_t fingerprints[array_length(contents)];
    for (size_t i = 0; i < array_length(contents); i++) {
        const struct asked asked = {
            .kind = EXAMPLES_TRANSLATION, .file = "train.tsv", .content = contents[i]};
        auto_free char *dir = support_temp_dir();
        auto_free char *path = texts_write(dir, asked.file, contents[i], strlen(contents[i]));
        struct examples_options options = options_of(&asked, dir, 0);
        options.data.encoder.adds_eos = false;
        struct examples *x;
        struct error err;
        mallopt(M_PERTURB, (int)i + 1);
        assert_ok(examples_open(&options, &x, &err), &err);
        mallopt(M_PERTURB, 0);
        fingerprints[i] = x->fingerprint;
        examples_close(x);
        support_remove_tree(dir);
    }
    assert_true(fingerprints[0] == fingerprints[1]);
    assert_true(fingerprints[0] != fingerprints[2]);
    assert_true(fingerprints[0] != fingerprints[3]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples),
        cmocka_unit_test(test_what_is_wrong),
        cmocka_unit_test(test_pairs_are_cut_as_the_library_does),
        cmocka_unit_test(test_tokenizers_that_do_not_fit),
        cmocka_unit_test(test_long_texts),
        cmocka_unit_test(test_long_texts_of_real_tokenizers),
        cmocka_unit_test(test_fingerprints),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
