/* Texts that are longer than what is used of them. */
#include "tests/agent/example_rows.h"
#include "tests/agent/token_texts.h"
#include "tests/support.h"

#include "agent/batches/encoder.h"
#include "base/mem.h"

#include <string.h>

/* Only as much of a long text is tokenized as is needed, and the result is that of all of it. */
static void test_long_texts(void **state)
{
    (void)state;
    enum { WORDS = 20000 };
    static const struct example_row asked = {
        .kind = EXAMPLES_TRANSLATION, .file = "train.jsonl.gz", .content = "", .max_source = 40};
    auto_free char *dir = support_temp_dir();
    auto_str struct str lines;
    str_init(&lines, 1 << 20);
    str_add(&lines, "{\"summary\":\"s\",\"text\":\"");
    for (int i = 0; i < WORDS; i++)
        str_printf(&lines, "%d ", i);
    str_add(&lines, "\"}\n");
    auto_free char *path = texts_write_gzip(dir, asked.file, str_text(&lines), lines.length, 3);
    struct examples_options options = example_row_options(&asked, dir, 2);
    struct examples *x;
    struct error err;
    auto_str struct str shown;
    str_init(&shown, 4096);
    assert_ok(examples_open(&options, &x, &err), &err);
    example_row_show(x, asked.kind, &shown);
    assert_string_equal(str_text(&shown), "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 1>|s>");
    assert_int_equal(x->id_count, 42);
    examples_close(x);
    support_remove_tree(dir);
}

/* The same with tokenizers of each kind, at lengths where the texts are cut anywhere. */
static void check_beginnings(const char *name, const char *dir, const char *text)
{
    enum { LONGEST = 60 };
    static const struct example_row asked = {.kind = EXAMPLES_TRANSLATION};
    auto_free char *path = xasprintf("tests/data/tokenizers/%s", name);
    auto_tokens struct tokens all = {0};
    struct tokenizer *tokenizer;
    struct error err;
    assert_ok(tokenizer_open(path, &tokenizer, &err), &err);
    assert_ok(tokenizer_encode(tokenizer, text, strlen(text), false, &all, &err), &err);
    assert_true(all.count > 10 * LONGEST);
    for (int64_t most = 1; most <= LONGEST; most += 7) {
        struct examples_options options = example_row_options(&asked, dir, 0);
        struct examples *x;
        options.max_source = most;
        options.data.vocab_size = tokenizer_vocabulary(tokenizer);
        assert_ok(token_encoder_init(tokenizer, &options.data.encoder, &err), &err);
        options.data.source.add_bos = options.data.source.add_eos = TOKENS_AFFIX_FALSE;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_long_texts),
        cmocka_unit_test(test_long_texts_of_real_tokenizers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
