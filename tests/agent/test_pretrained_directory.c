/* Which files of a directory are a model's weights, and what is wrong with others. */
#include "agent/checkpoint/pretrained.h"

#include "agent/checkpoint/pretrained_index.h"
#include "base/durable.h"
#include "base/mem.h"
#include "tests/support.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DATA "tests/data/pretrained/"

static void put(const char *dir, const char *name, const char *text)
{
    auto_free char *path = xasprintf("%s/%s", dir, name);
    struct durable_result written;
    struct error err;
    unlink(path);
    assert_ok(durable_write_file(&file_ops_system, path, text, strlen(text), &written, &err), &err);
}

static void assert_broken(const char *dir, const char *message)
{
    struct pretrained *pretrained;
    struct error err;
    assert_true(pretrained_open(dir, &pretrained, &err) < 0);
    if (!strstr(err.msg, message))
        fail_msg("\"%s\" is not in \"%s\"", message, err.msg);
}

static void broken_directories_are_refused(void **state)
{
    const char *dir = *state;
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"{\"weight_map\": {\"a\": \"../a.safetensors\"}}",
         "model.safetensors.index.json: weight_map.a: must name a file beside it, not "
         "\"../a.safetensors\""},
        {"{\"weight_map\": {\"a\": \"..\"}}", "must name a file beside it, not \"..\""},
        {"{\"weight_map\": {\"a\": 1}}", "must name a file beside it, not another kind of value"},
        {"{\"weight_map\": {}}", "weight_map: missing or empty"},
        {"{}", "weight_map: missing or empty"},
        {"{\"weight_map\": {\"a\": \"none.safetensors\"}}",
         "none.safetensors is missing: model.safetensors.index.json says that tensor "},
        {"{\"weight_map\": {\"a\": \"text\"}}", "text: "},
        {"{\"weight_map\"", "line 1, column "},
    };
    static const char *const unread[] = {"pytorch_model.bin", "pytorch_model-00001-of-00002.bin",
                                         "model.pt", "consolidated.00.pth",
                                         "model-00001-of-00002.safetensors"};
    assert_broken(dir, "neither model.safetensors nor model.safetensors.index.json is there");
    put(dir, "optimizer.pt", "not of the model");
    assert_false(pretrained_exists(dir));
    for (size_t i = 0; i < array_length(unread); i++) {
        auto_free char *path = xasprintf("%s/%s", dir, unread[i]);
        auto_free char *message = xasprintf("/%s is not read, only model.safetensors", unread[i]);
        put(dir, unread[i], "weights");
        assert_true(pretrained_exists(dir));
        assert_broken(dir, message);
        unlink(path);
    }
    put(dir, "text", "no tensors");
    for (size_t i = 0; i < array_length(rows); i++) {
        put(dir, PRETRAINED_INDEX, rows[i].text);
        assert_broken(dir, rows[i].message);
    }
    auto_free char *link = xasprintf("%s/whole", dir);
    auto_free char *target = realpath(DATA "gpt2_f16/model.safetensors", NULL);
    assert_int_equal(symlink(target, link), 0);
    put(dir, PRETRAINED_INDEX, "{\"weight_map\": {\"a\": \"whole\"}}");
    assert_broken(dir,
                  "/whole: tensor a is not in it, though model.safetensors.index.json says so");
}

/* An index of an earlier save, whose files are gone, beside a whole file, as save_pretrained leaves
 * it: transformers reads the file. */
static void a_whole_file_goes_before_an_index(void **state)
{
    const char *dir = *state;
    struct pretrained *pretrained;
    struct error err;
    auto_free char *link = xasprintf("%s/" PRETRAINED_FILE, dir);
    auto_free char *target = realpath(DATA "gpt2_f16/model.safetensors", NULL);
    assert_int_equal(symlink(target, link), 0);
    put(dir, PRETRAINED_INDEX, "{\"weight_map\": {\"a\": \"none.safetensors\"}}");
    assert_ok(pretrained_open(dir, &pretrained, &err), &err);
    pretrained_close(pretrained);
}

int main(void)
{
#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, support_enter_dir, support_leave_dir)
    const struct CMUnitTest tests[] = {
        IN_DIR(broken_directories_are_refused),
        IN_DIR(a_whole_file_goes_before_an_index),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
