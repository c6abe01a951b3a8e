#include "tests/agent/run_fixture.h"
#include "tests/support.h"

#include "agent/telemetry/wandb.h"
#include "base/file.h"
#include "base/mem.h"

#include <glob.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { BLOCK = 32768, FRAME = 7, FULL = 1, FIRST, MIDDLE, LAST };

/* Checks every frame, and gives the records without them: a length of four bytes, then its bytes.
 * Written from the format's description alone. Returns how many there are. */
static int read_records(const char *file, size_t bytes, struct str *out)
{
    int records = 0, before = LAST;
    size_t begin = 0;
    assert_true(bytes > FRAME);
    assert_memory_equal(file, ":W&B\xe1\xbe\0", FRAME);
    for (size_t at = FRAME; at < bytes;) {
        if (BLOCK - at % BLOCK < FRAME) {
            assert_int_equal(file[at++], 0);
            continue;
        }
        const unsigned char *f = (const unsigned char *)file + at;
        uLong crc = f[0] | (uLong)f[1] << 8 | (uLong)f[2] << 16 | (uLong)f[3] << 24;
        size_t length = f[4] | (size_t)f[5] << 8;
        int type = f[6];
        assert_true(at % BLOCK + FRAME + length <= BLOCK && at + FRAME + length <= bytes);
        assert_int_equal(crc, crc32(0, f + 6, (uInt)length + 1));
        bool begins = type == FULL || type == FIRST, ended = before == FULL || before == LAST;
        assert_true(begins == ended);
        if (begins) {
            begin = out->length;
            str_add_bytes(out, "\0\0\0\0", 4);
            records++;
        }
        str_add_bytes(out, (const char *)f + FRAME, length);
        uint32_t sum = (uint32_t)(out->length - begin - 4);
        memcpy(out->text + begin, &sum, sizeof sum);
        before = type;
        at += FRAME + length;
    }
    assert_true(before == FULL || before == LAST);
    return records;
}

/* Made with wandb's own messages and Python's zlib. */
static void records_are_the_known_bytes(void **state)
{
    (void)state;
    auto_str struct str file;
    str_init(&file, 4096);
    struct wandb_log log = {.offset = FRAME};
    wandb_row(&log, 300, &(struct wandb_item){"train/loss", "0.5"}, 1, &file);
    wandb_end(&log, 138, 12.9, &file);
    assert_hex(file.text, file.length,
               "7f7f9b2918000108011a140a120a0a747261696e2f6c6f7373820103302e35169c3a"
               "891d0001080212190a120a0a747261696e2f6c6f7373820103302e35120308ac0245"
               "126eeb0a00010803920105088a01100cafb54d1a0500010804b20100");
    assert_int_equal(log.records, 4);
    assert_int_equal(log.offset, FRAME + (int64_t)file.length);
}

static const struct wandb_run fixture_run = {.id = "abc",
                                             .entity = "us",
                                             .project = "p",
                                             .name = "",
                                             .group = "",
                                             .job_type = "",
                                             .notes = "",
                                             .host = "node-1",
                                             .tags = "one,,two",
                                             .start_wall_us = RUN_FIXTURE_WALL_US};

/* Records that end a few bytes before a block does, at its end, and far behind it. */
static void frames_keep_within_blocks(void **state)
{
    (void)state;
    static const size_t lengths[] = {1, 32600, 32608, 32612, 32613, 32614, 32700, 70000, 200000};
    for (size_t i = 0; i < array_length(lengths); i++) {
        auto_free char *notes = xcalloc(1, lengths[i] + 1);
        auto_str struct str file, records;
        str_init(&file, 1 << 20);
        str_init(&records, 1 << 20);
        memset(notes, 'x', lengths[i]);
        struct wandb_run run = fixture_run;
        run.notes = notes;
        struct wandb_log log;
        wandb_begin(&log, &run, &file);
        for (int step = 1; step <= 300; step++)
            wandb_row(&log, step, &(struct wandb_item){"train/loss", "0.5"}, 1, &file);
        wandb_end(&log, 0, 1, &file);
        assert_false(file.truncated);
        assert_int_equal(log.offset, file.length);
        assert_int_equal(read_records(file.text, file.length, &records), log.records);
        assert_int_equal(log.records, 2 + 2 * 300 + 2);
        assert_non_null(memmem(records.text, records.length, "node-1", 6));
    }
}

/* Of two, in the order of their times. */
static char *first_file(const char *dir, size_t *ret_bytes)
{
    auto_free char *pattern = xasprintf("%s/wandb/offline-run-*-abc/run-abc.wandb", dir);
    glob_t found;
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, 2);
    char *bytes;
    struct error err;
    assert_ok(file_read(found.gl_pathv[0], 1 << 20, &bytes, ret_bytes, &err), &err);
    globfree(&found);
    return bytes;
}

static int count(const struct str *text, const char *word)
{
    int times = 0;
    const char *at = text->text, *end = text->text + text->length;
    while ((at = memmem(at, (size_t)(end - at), word, strlen(word))) != NULL)
        times++, at++;
    return times;
}

static void what_is_told_at_one_step_is_one_row(void **state)
{
    const struct wandb_setting setting = {
        .dir = *state, .run = fixture_run, .logs_models = true, .words = WORDS_FABRIC};
    struct wandb *w = NULL;
    struct run_state run;
    struct error err;
    const struct run_facts facts = run_fixture_facts();
    run_state_init(&run, &facts, RUN_FIXTURE_WALL_US);
    assert_ok(wandb_open(&w, &setting, RUN_FIXTURE_WALL_US, &err), &err);
    for (int step = 1; step <= 2; step++) {
        const struct run_numbers numbers = run_fixture_numbers(step);
        const struct run_eval eval = {.step = step, .loss = 2.25, .perplexity = 9.5};
        const struct run_save save = {.step = step, .path = "c/4"};
        run_state_step(&run, &numbers, RUN_FIXTURE_WALL_US + step * 1000000);
        assert_ok(wandb_add_event(w, FIELD_STEP, NULL, &run, &err), &err);
        run_state_eval(&run, &eval, RUN_FIXTURE_WALL_US + step * 1000000 + 1);
        assert_ok(wandb_add_event(w, FIELD_EVAL, NULL, &run, &err), &err);
        run_state_save(&run, &save, RUN_FIXTURE_WALL_US + step * 1000000 + 2);
        assert_ok(wandb_add_event(w, FIELD_SAVE, "c/\"4\"", &run, &err), &err);
    }
    const struct run_save late = {.step = 1, .path = "c/4"}; /* was saved beside the training */
    run_state_save(&run, &late, RUN_FIXTURE_WALL_US + 3000000);
    assert_ok(wandb_add_event(w, FIELD_SAVE, "c/late", &run, &err), &err);
    /* a run that was started again within the second has a file of its own */
    struct wandb *other = NULL;
    assert_ok(wandb_open(&other, &setting, RUN_FIXTURE_WALL_US, &err), &err);
    wandb_close(other, 1, &run);
    wandb_close(w, 0, &run);
    size_t bytes;
    auto_free char *file = first_file(*state, &bytes);
    auto_str struct str records;
    str_init(&records, 1 << 20);
    assert_int_equal(read_records(file, bytes, &records), 2 + 2 * 2 + 2);
    assert_int_equal(count(&records, "metric/train_loss"), 4); /* each row and its summary */
    assert_int_equal(count(&records, "metric/val_loss"), 4);
    assert_int_equal(count(&records, "\"c/\\\"4\\\"\""), 4);
    assert_int_equal(count(&records, "c/late"), 0); /* the row has a newer one */
    assert_int_equal(count(&records, "_timestamp"), 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_are_the_known_bytes),
        cmocka_unit_test(frames_keep_within_blocks),
        cmocka_unit_test_setup_teardown(what_is_told_at_one_step_is_one_row, support_enter_dir,
                                        support_leave_dir),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
