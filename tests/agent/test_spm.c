/* SentencePiece models as sentencepiece 0.2.3 reads them (tests/data/tokenizers/spm_kinds, made by
 * tests/parity/make_spm_fixture.py), and files that are none. */
#include "agent/text/spm.h"

#include "agent/telemetry/protobuf.h"
#include "agent/text/bpe.h"
#include "agent/text/spm_proto.h"
#include "agent/text/unigram.h"
#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "tests/support.h"

#include <math.h>
#include <string.h>

#define DATA "tests/data/tokenizers/spm_kinds/"
enum { MAX_BYTES = 1 << 20, ENDS = 50 };

/* ---- what there is ---- */

struct run {
    const char *name;
    struct spm *model;
    struct spm_workspace work;
    struct str text;
};

static void run_open(struct run *run, const char *name)
{
    auto_free char *path = xasprintf(DATA "%s.model", name), *content = NULL;
    size_t bytes;
    struct error err;
    *run = (struct run){.name = name};
    str_init(&run->text, MAX_BYTES);
    run->work = (struct spm_workspace){unigram_workspace_open(), bpe_workspace_open(), &run->text};
    assert_ok(file_read(path, MAX_BYTES, &content, &bytes, &err), &err);
    assert_ok(spm_open(content, bytes, &run->model, &err), &err);
}

static void run_close(struct run *run)
{
    spm_close(run->model);
    unigram_workspace_close(run->work.unigram);
    bpe_workspace_close(run->work.bpe);
    str_free(&run->text);
}

static int differs(const struct run *run, const struct json *row, const char *what)
{
    auto_free char *text = json_print(row, JSON_COMPACT);
    print_message("# %s: other %s than %.300s\n", run->name, what, text);
    return 1;
}

/* Of a long text the row has the ends, and how many ids there are. */
static bool same_ids(const struct tokens *ids, const struct json *wanted, bool is_long)
{
    size_t count = json_array_count(wanted);
    if (is_long && (json_as_integer(json_at(wanted, count - 1)) != (int64_t)ids->count))
        return false;
    if (!is_long && ids->count != count)
        return false;
    for (size_t i = 0; i < count - is_long; i++) {
        size_t at = is_long && i >= ENDS ? ids->count - 2 * (size_t)ENDS + i : i;
        if (json_as_integer(json_at(wanted, i)) != ids->ids[at])
            return false;
    }
    return true;
}

/* The bytes of a string; a NUL may be among them. */
static void add_text(struct str *out, const struct json *string)
{
    struct json *copy = json_clone(string);
    size_t bytes = json_restore_nul(copy);
    str_add_bytes(out, json_as_text(copy), bytes);
    json_free(copy);
}

/* [text, ids, what they decode to]; text null: ids alone; [piece, times]: a long text. */
static int check_row(const struct run *run, const struct json *row)
{
    const struct json *text = json_at(row, 0), *wanted = json_at(row, 1);
    const struct json *decoded = json_at(row, 2);
    bool is_long = json_is_array(text);
    auto_tokens struct tokens ids = {0};
    auto_str struct str all, back, expected;
    struct error err;
    str_init(&all, MAX_BYTES);
    str_init(&back, MAX_BYTES);
    str_init(&expected, MAX_BYTES);
    if (json_is_null(text)) {
        for (size_t i = 0; i < json_array_count(wanted); i++)
            tokens_add(&ids, (int32_t)json_as_integer(json_at(wanted, i)));
    } else {
        const struct json *piece = is_long ? json_at(text, 0) : text;
        int64_t times = is_long ? json_as_integer(json_at(text, 1)) : 1;
        for (int64_t i = 0; i < times; i++)
            add_text(&all, piece);
        assert_ok(spm_encode(run->model, &run->work, str_text(&all), all.length, &ids, &err), &err);
        if (!same_ids(&ids, wanted, is_long))
            return differs(run, row, "ids");
    }
    if (json_is_null(decoded))
        return 0;
    spm_decode(run->model, ids.ids, ids.count, &back);
    add_text(&expected, decoded);
    bool same = back.length == expected.length &&
                memcmp(str_text(&back), str_text(&expected), back.length) == 0;
    return same ? 0 : differs(run, row, "text");
}

static void ids_and_texts_are_sentencepieces(void **state)
{
    (void)state;
    static const char *const names[] = {
        "unigram", "unigram_user", "unigram_bytes", "unigram_suffix", "unigram_bare",
        "bpe",     "bpe_user",     "bpe_bytes",     "bpe_bare",
    };
    int differ = 0;
    for (size_t i = 0; i < array_length(names); i++) {
        struct run run;
        run_open(&run, names[i]);
        auto_free char *path = xasprintf(DATA "%s.jsonl", names[i]), *text = NULL;
        size_t bytes;
        int rows = 0;
        struct error err;
        assert_ok(file_read(path, MAX_BYTES, &text, &bytes, &err), &err);
        for (char *rest = text, *line; (line = strsep(&rest, "\n")) && *line; rows++) {
            struct json *row = json_parse_text(line, JSON_ALLOW_NUL, NULL);
            assert_non_null(row);
            differ += check_row(&run, row);
            json_free(row);
        }
        assert_true(rows > 150);
        run_close(&run);
    }
    assert_int_equal(differ, 0);
}

/* ---- what is wrong ---- */

enum { TRAINER_TYPE = 3, TRAINER_BYTES = 35 };

static void add_piece(struct str *model, const char *text, size_t bytes, float score, int type)
{
    auto_str struct str piece;
    str_init(&piece, MAX_BYTES);
    protobuf_bytes(&piece, 1, text, bytes);
    protobuf_float(&piece, 2, score);
    protobuf_int(&piece, 3, type);
    protobuf_message(model, 1, &piece);
}

static void add_number(struct str *model, int part, int field, int64_t value)
{
    auto_str struct str message;
    str_init(&message, 64);
    protobuf_int(&message, field, value);
    protobuf_message(model, part, &message);
}

static void begin_model(struct str *model)
{
    str_clear(model);
    add_piece(model, "<unk>", 5, 0, SPM_UNKNOWN);
    add_piece(model, "a", 1, -1, SPM_NORMAL);
}

static void assert_refused(const struct str *model, enum error_code code, const char *says)
{
    struct spm *opened = NULL;
    struct error err;
    assert_fails(spm_open(model->text, model->length, &opened, &err), &err, code, says);
    assert_null(opened);
}

static void models_that_do_not_work_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t bytes;
        float score;
        int type;
        const char *says;
    } pieces[] = {
        {"", 0, 0, SPM_NORMAL, "piece 2 has 0 bytes"},
        {"\xc3", 1, 0, SPM_NORMAL, "piece 2 is no UTF-8"},
        {"b\0c", 3, 0, SPM_NORMAL, "piece 2 has a zero byte"},
        {"a", 1, 0, SPM_NORMAL, "piece \"a\" has two ids, 1 and 2"},
        {"b", 1, NAN, SPM_NORMAL, "piece 2, \"b\": its score is no number"},
        {"b", 1, INFINITY, SPM_NORMAL, "piece 2, \"b\": its score is no number"},
        {"b", 1, 0, 9, "piece 2, \"b\": unknown type 0"},
        {"b", 1, 0, SPM_UNKNOWN, "pieces 0 and 2 are both the unknown one"},
        {"<0x41>", 6, 0, SPM_BYTE, "a byte, but the model falls back on none"},
    };
    auto_str struct str model;
    str_init(&model, 4 * MAX_BYTES);
    for (size_t i = 0; i < array_length(pieces); i++) {
        begin_model(&model);
        add_piece(&model, pieces[i].text, pieces[i].bytes, pieces[i].score, pieces[i].type);
        assert_refused(&model, ERR_INPUT, pieces[i].says);
    }
    auto_free char *million = xcalloc(1, MAX_BYTES);
    memset(million, 'a', MAX_BYTES - 1);
    begin_model(&model);
    add_piece(&model, million, MAX_BYTES - 1000, 0, SPM_NORMAL);
    assert_refused(&model, ERR_INPUT, "piece 2 has 1047576 bytes; 1 to 7999 work");
    begin_model(&model);
    add_piece(&model, million, 600, 0, SPM_NORMAL);
    add_number(&model, 2, TRAINER_TYPE, SPM_BPE);
    assert_refused(&model, ERR_LIMIT, "piece 2 has 600 bytes; of BPE at most 512 work");
    begin_model(&model);
    add_number(&model, 2, TRAINER_TYPE, 3);
    assert_refused(&model, ERR_UNSUPPORTED, "of words or characters (type 3)");
    begin_model(&model);
    add_number(&model, 2, TRAINER_BYTES, 1);
    assert_refused(&model, ERR_INPUT, "it falls back on bytes, but has 0 of the 256");
    add_piece(&model, "<0xg1>", 6, 0, SPM_BYTE);
    assert_refused(&model, ERR_INPUT, "a byte is <0x00> .. <0xFF>");
    str_clear(&model);
    add_piece(&model, "a", 1, 0, SPM_NORMAL);
    assert_refused(&model, ERR_INPUT, "no piece is the unknown one");
    model.length--;
    assert_refused(&model, ERR_INPUT, "not a SentencePiece model");
    begin_model(&model);
    str_add(&model, "\x0b"); /* a group begins */
    assert_refused(&model, ERR_INPUT, "not a SentencePiece model");
}

/* Scores of the two zeros are one: of equal pairs the leftmost merges, as in SentencePiece. */
static void zeros_of_both_signs_are_one_score(void **state)
{
    (void)state;
    auto_str struct str model, normalizer, text;
    auto_tokens struct tokens ids = {0};
    struct spm *spm = NULL;
    struct error err;
    str_init(&model, MAX_BYTES);
    str_init(&normalizer, 64);
    str_init(&text, MAX_BYTES);
    begin_model(&model);
    add_piece(&model, "b", 1, -1, SPM_NORMAL);
    add_piece(&model, "c", 1, -1, SPM_NORMAL);
    add_piece(&model, "ab", 2, -0.0F, SPM_NORMAL);
    add_piece(&model, "bc", 2, 0.0F, SPM_NORMAL);
    add_number(&model, 2, TRAINER_TYPE, SPM_BPE);
    protobuf_int(&normalizer, 3, 0); /* no dummy prefix */
    protobuf_message(&model, 3, &normalizer);
    assert_ok(spm_open(model.text, model.length, &spm, &err), &err);
    struct spm_workspace work = {unigram_workspace_open(), bpe_workspace_open(), &text};
    assert_ok(spm_encode(spm, &work, "abc", 3, &ids, &err), &err);
    unigram_workspace_close(work.unigram);
    bpe_workspace_close(work.bpe);
    spm_close(spm);
    assert_int_equal(ids.count, 2);
    assert_int_equal(ids.ids[0], 4);
    assert_int_equal(ids.ids[1], 3);
}

/* A table of replacements whose numbers lead anywhere: within its memory, and a text comes out. */
static void any_table_of_replacements_is_survived(void **state)
{
    (void)state;
    enum { UNITS = 256, TABLE = 4 + 4 * UNITS, TEXTS = 8 };
    uint64_t random = 7;
    auto_str struct str model, normalizer;
    str_init(&model, MAX_BYTES);
    str_init(&normalizer, MAX_BYTES);
    for (int round = 0; round < 300; round++) {
        uint8_t table[TABLE + TEXTS] = {0, 4}; /* 1024 bytes of units */
        for (size_t i = 4; i < TABLE; i++) {
            random = random * 6364136223846793005 + 1442695040888963407;
            table[i] = (uint8_t)(random >> 56);
        }
        for (size_t letter = 'a'; letter <= 'z'; letter++) /* some of the ways begin */
            table[4 + 4 * letter] = (uint8_t)letter, table[4 + 4 * letter + 3] &= 0x7f;
        table[5] = table[6] = table[7] = table[4] = 0;
        memcpy(table + TABLE, "x \0\xc3\xa4\0y", TEXTS);
        begin_model(&model);
        str_clear(&normalizer);
        protobuf_bytes(&normalizer, 2, table, sizeof table);
        protobuf_message(&model, 3, &normalizer);
        struct spm *spm = NULL;
        struct error err;
        assert_ok(spm_open(model.text, model.length, &spm, &err), &err);
        auto_str struct str text;
        auto_tokens struct tokens ids = {0};
        str_init(&text, MAX_BYTES);
        struct spm_workspace work = {unigram_workspace_open(), bpe_workspace_open(), &text};
        assert_ok(spm_encode(spm, &work, "abcdefghij klm\xc3\xa4nop", 20, &ids, &err), &err);
        unigram_workspace_close(work.unigram);
        bpe_workspace_close(work.bpe);
        spm_close(spm);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_and_texts_are_sentencepieces),
        cmocka_unit_test(models_that_do_not_work_are_refused),
        cmocka_unit_test(zeros_of_both_signs_are_one_score),
        cmocka_unit_test(any_table_of_replacements_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
