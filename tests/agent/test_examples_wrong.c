/* Files, settings and tokenizers that give no samples: one error each, which says where. */
#include "tests/agent/example_rows.h"
#include "tests/agent/token_texts.h"
#include "tests/support.h"

#include "base/mem.h"

#include <string.h>

static const struct {
    struct example_row asked;
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
    {{.kind = EXAMPLES_TRANSLATION, .file = "train.tsv", .content = "text\tsummary\na\tb\n\t\n"},
     ERR_INPUT,
     "train.tsv:3: its \"text\" is empty: nothing is to be read; take such rows out"},
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
        const struct example_row *asked = &mistakes[i].asked;
        auto_free char *path =
            texts_write(dir, asked->file, asked->content, strlen(asked->content));
        struct examples_options options = example_row_options(asked, dir, (int)(i % 3));
        struct examples *x = NULL;
        struct error err;
        assert_fails(examples_open(&options, &x, &err), &err, mistakes[i].code, mistakes[i].says);
        assert_null(x);
        support_remove_tree(dir);
    }
}

static void test_tokenizers_that_do_not_fit(void **state)
{
    (void)state;
    static const struct example_row asked = {
        .kind = EXAMPLES_CLASSES, .file = "train.tsv", .content = "text\tlabel\nab\t1\n"};
    auto_free char *dir = support_temp_dir();
    auto_free char *path = texts_write(dir, asked.file, asked.content, strlen(asked.content));
    struct examples_options options = example_row_options(&asked, dir, 0);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_wrong),
        cmocka_unit_test(test_tokenizers_that_do_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
