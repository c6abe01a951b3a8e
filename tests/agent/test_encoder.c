/* Text through a real tokenizer: the ids of tests/data/tokenizers as samples. */
#include "agent/batches/encoder.h"

#include "base/mem.h"
#include "tests/agent/token_texts.h"
#include "tests/support.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define DATA "tests/data/tokenizers/"

/* bos and eos as each family has them. */
static void test_ends(void **state)
{
    (void)state;
    static const struct {
        const char *directory;
        bool adds_bos, adds_eos;
    } rows[] = {{"gpt2", false, false},
                {"llama3", true, false},
                {"llama2_legacy", true, true},
                {"gpt2_prefix", true, true}};
    for (size_t i = 0; i < array_length(rows); i++) {
        auto_free char *path = xasprintf(DATA "%s", rows[i].directory);
        struct tokenizer *tokenizer;
        struct token_encoder encoder;
        struct error err;
        assert_ok(tokenizer_open(path, &tokenizer, &err), &err);
        assert_ok(token_encoder_init(tokenizer, &encoder, &err), &err);
        struct tokenizer_special special = tokenizer_special(tokenizer);
        assert_int_equal(encoder.bos, special.bos);
        assert_int_equal(encoder.eos, special.eos);
        assert_int_equal(encoder.adds_bos, rows[i].adds_bos);
        assert_int_equal(encoder.adds_eos, rows[i].adds_eos);
        tokenizer_close(tokenizer);
    }
}

/* The stream's ids are those of each text with bos, and eos behind it, whoever tokenizes. */
static void test_stream(void **state)
{
    enum { T = 16 };
    auto_free char *lines = texts_lines(0, 60);
    auto_free char *path = texts_write(*state, "a.jsonl", lines, strlen(lines));
    struct tokenizer *tokenizer;
    struct error err;
    assert_ok(tokenizer_open(DATA "llama3", &tokenizer, &err), &err);
    struct token_options options = texts_options(path, T);
    assert_ok(token_encoder_init(tokenizer, &options.encoder, &err), &err);
    options.vocab_size = tokenizer_vocabulary(tokenizer);
    auto_tokens struct tokens flat = {0};
    for (int64_t i = 0; i < 60; i++) {
        auto_free char *text = texts_document(i);
        assert_ok(tokenizer_encode(tokenizer, text, strlen(text), true, &flat, &err), &err);
        tokens_add(&flat, options.encoder.eos);
    }
    for (options.threads = 0; options.threads < 4; options.threads++) {
        struct token_source *source = texts_open(&options);
        int32_t ids[T], targets[T];
        bool end = false;
        size_t at = 0;
        for (;; at += T) {
            assert_ok(token_source_next(source, ids, targets, &end, &err), &err);
            if (end)
                break;
            assert_true(at + T <= flat.count);
            assert_memory_equal(ids, flat.ids + at, sizeof ids);
        }
        assert_true(flat.count - at < T);
        token_source_close(source);
    }
    tokenizer_close(tokenizer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ends),
        cmocka_unit_test_setup_teardown(test_stream, support_enter_dir, support_leave_dir),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
