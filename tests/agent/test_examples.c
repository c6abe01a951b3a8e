/* Rows of files to samples of ids. */
#include "tests/agent/example_rows.h"
#include "tests/agent/token_texts.h"
#include "tests/support.h"

#include "base/mem.h"

#include <malloc.h>
#include <string.h>

static const struct {
    struct example_row asked;
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
    {{.kind = EXAMPLES_TRANSLATION,
      .file = "train.tsv",
      .content = "text\tsummary\na\tb\n\n  \nc\td\n"},
     "a>|b>\nc>|d>"},
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

static void check_row(const struct example_row *asked, const char *samples, int threads)
{
    auto_free char *dir = support_temp_dir();
    auto_free char *path = texts_write(dir, asked->file, asked->content, strlen(asked->content));
    struct examples_options options = example_row_options(asked, dir, threads);
    struct examples *x;
    struct error err;
    auto_str struct str shown;
    str_init(&shown, 4096);
    assert_ok(examples_open(&options, &x, &err), &err);
    example_row_show(x, asked->kind, &shown);
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

/* Whatever was in the memory before. */
static void test_fingerprints(void **state)
{
    (void)state;
    static const char *const contents[] = {"text\tsummary\na\tbc\n", "text\tsummary\na\tbc\n",
                                           "text\tsummary\nab\tc\n", "text\tsummary\na\tbd\n"};
    uint64_t fingerprints[array_length(contents)];
    for (size_t i = 0; i < array_length(contents); i++) {
        const struct example_row asked = {
            .kind = EXAMPLES_TRANSLATION, .file = "train.tsv", .content = contents[i]};
        auto_free char *dir = support_temp_dir();
        auto_free char *path = texts_write(dir, asked.file, contents[i], strlen(contents[i]));
        struct examples_options options = example_row_options(&asked, dir, 0);
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
        cmocka_unit_test(test_pairs_are_cut_as_the_library_does),
        cmocka_unit_test(test_fingerprints),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
