#include "tests/operator/board/board_fixture.h"

#include "base/httpd.h"
#include "base/json.h"
#include "base/mem.h"
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int64_t board_now_ms;

static int64_t clock_of_test(void)
{
    return board_now_ms;
}

const struct clocks board_clocks = {clock_of_test, clock_of_test};

/* ---- a job, and what is told of it ---- */

void board_make_job(struct board_world *w, const char *name)
{
    memset(w, 0, sizeof *w);
    snprintf(w->name, sizeof w->name, "%s", name);
    snprintf(w->uid, sizeof w->uid, "uid-%s", name);
    w->gpus = (struct quantity){"nvidia.com/gpu", 8000};
    static struct env_var env[] = {{.name = "TOKEN", .value = "a-secret-of-a-template"}};
    w->container = (struct container){
        .name = "pytorch", .env = env, .env_count = 1, .requests = {&w->gpus, 1}};
    w->job = (struct job){
        .name = w->name, .namespace_ = "ns", .uid = w->uid, .created_ms = BOARD_NOW_MS};
    for (int type = 0; type < REPLICA_TYPES; type++)
        w->job.replicas[type] =
            (struct replica_spec){.present = true,
                                  .replicas = {true, type == REPLICA_MASTER ? 1 : 3},
                                  .template_ = {.containers = &w->container, .container_count = 1}};
    w->status = (struct job_status){
        .conditions = {{.type = CONDITION_RUNNING,
                        .status = true,
                        .reason = "PyTorchJobRunning",
                        .message = "PyTorchJob is running",
                        .update_ms = BOARD_NOW_MS,
                        .transition_ms = BOARD_NOW_MS}},
        .condition_count = 1,
        .start_ms = BOARD_NOW_MS,
        .replicas = {{.present = true, .active = 1}, {.present = true, .active = 2, .failed = 1}},
        .history = {.known = true, .restarts = 1, .rank_restarts = 1}};
    w->snapshot = (struct snapshot){.job = &w->job, .status = &w->status, .pods = w->pods};
}

void board_train(struct board_world *w, int64_t step, double loss)
{
    w->status.training = training_open();
    w->status.training.step = step;
    w->status.training.steps = 100;
    w->status.training.loss = loss;
    w->status.training.tokens_per_s = 1000;
    w->status.training.progress_ms = BOARD_NOW_MS + step * 1000;
    w->status.goodput.known = true;
    w->status.goodput.ms[TRAINING_SPENT_STEP] = step * 1000;
}

void board_tell_with(struct board *b, struct board_world *w, const struct action *actions,
                     size_t count)
{
    struct plan plan = {.actions = (struct action *)actions, .count = count};
    auto_free char *key = xasprintf("ns/%s", w->name);
    board_told(b, key, &w->snapshot, &plan);
}

void board_tell(struct board *b, struct board_world *w)
{
    board_tell_with(b, w, NULL, 0);
}

/* ---- what is read ---- */

struct json *board_read(struct board *b, const char *path)
{
    struct error err;
    auto_str struct str body;
    str_init(&body, HTTPD_BODY_BYTES_MAX);
    if (!board_answer(b, path, &body))
        return NULL;
    struct json *value = json_parse(str_text(&body), body.length, JSON_STRICT, &err);
    if (!value)
        fail_msg("%s: %s: %s", path, err.msg, str_text(&body));
    return value;
}

/* "a.b.0" */
const struct json *board_at(const struct json *value, const char *path)
{
    auto_free char *copy = xstrdup(path);
    for (char *rest = copy, *part; (part = strsep(&rest, "."));)
        value = json_is_array(value) ? json_at(value, (size_t)atoi(part)) : json_get(value, part);
    return value;
}

void board_expect(const struct json *value, const char *path, const char *text)
{
    auto_free char *printed =
        board_at(value, path) ? json_print(board_at(value, path), JSON_COMPACT) : NULL;
    if (!printed || strcmp(printed, text) != 0)
        fail_msg("%s is %s, not %s", path, printed ? printed : "missing", text);
}

void board_keep(void *context, const char *text, size_t bytes)
{
    struct board_heard *m = context;
    struct error err;
    assert_in_range(bytes, 1, HTTPD_MESSAGE_BYTES_MAX);
    struct json *value = json_parse(text, bytes, JSON_STRICT, &err);
    assert_non_null(value);
    m->list[m->count++] = value;
}

void board_heard_forget(struct board_heard *m)
{
    while (m->count > 0)
        json_free(m->list[--m->count]);
}
