/* What it costs the operator that 1,000 running jobs tell how their trainings go: by who keeps it,
 * in bytes of the allocator, beside the same jobs that tell nothing. A bound, also where all charts
 * are full. */
#include "tests/support.h"

#include "base/json.h"
#include "base/mem.h"
#include "operator/apply/job_record.h"
#include "operator/board/board.h"
#include "operator/cache/cache.h"
#include "operator/decode/decode_training.h"
#include "operator/manifest/manifest.h"
#include "operator/metrics.h"
#include "operator/progress/asker.h"
#include "tests/fake_server.h"
#include "tests/operator/board/board_fixture.h"
#include "tests/operator/cache/objects.h"
#include "tests/operator/counted_malloc.h"

#include <stdio.h>
#include <string.h>

enum {
    JOBS = 1000,
    TELLING = 100, /* of them, the others only run */
    EVERY_MS = 15000,
    FEW = 5,   /* answers of each */
    MANY = 43, /* fill the charts of one of 1,000 jobs */
    MOST_BYTES = (3 << 20) / JOBS,
};

/* ---- jobs, and what their agents tell ---- */

struct world {
    struct board_world w;
    struct pod pod;
    char key[64], pod_name[64];
};

static struct world worlds[JOBS];

/* Of a real agent, all but a hang. */
static char *told_text(int answer)
{
    int gone_s = answer * EVERY_MS / 1000, step = 123456 + 150 * answer;
    return xasprintf(
        "{\"steps\":1000000,\"step\":%d,\"epoch\":12.34,\"loss\":2.%04d,\"tokensPerSecond\":123400,"
        "\"mfu\":0.412,\"secondsLeft\":%d,\"evalLoss\":2.5123,\"worldSize\":8,\"restarts\":0,"
        "\"lastCheckpointStep\":%d,\"lastCheckpointTime\":\"2026-01-01T00:00:00Z\","
        "\"lastProgressTime\":\"2026-01-01T00:%02d:%02dZ\",\"resumedStep\":0,"
        "\"processStartTime\":\"2026-01-01T00:00:00.123456Z\",\"seconds\":{\"initialization\":1.512,"
        "\"peerWait\":0.512,\"checkpointRestore\":0.212,\"lostWork\":0.012,\"dataLoading\":%d.123,"
        "\"step\":%d.123,\"evaluation\":%d.123,\"checkpointSave\":%d.123}}",
        step, 1000 + answer, 1000000 - step, step - step % 100, gone_s / 60, gone_s % 60,
        answer * 3, answer * 7, answer * 2, answer * 2);
}

/* A job "ns/training-job-N" that runs, and has told nothing yet. */
static void make(struct world *world, int n)
{
    auto_free char *name = xasprintf("training-job-%d", n);
    board_make_job(&world->w, name);
    snprintf(world->w.uid, sizeof world->w.uid, "7c9e6679-7425-40de-944b-%06d", n);
    snprintf(world->key, sizeof world->key, "ns/%s", name);
    snprintf(world->pod_name, sizeof world->pod_name, "%s-master-0", name);
    world->pod = (struct pod){.name = world->pod_name,
                              .uid = world->w.uid,
                              .owner_uid = world->w.uid,
                              .phase = POD_RUNNING,
                              .address = "127.0.0.1"};
    world->w.snapshot.pods = &world->pod;
    world->w.snapshot.pod_count = 1;
    goodput_turn(&world->w.status.goodput, GOODPUT_PENDING, 0, BOARD_NOW_MS, BOARD_NOW_MS,
                 BOARD_NOW_MS);
    goodput_turn(&world->w.status.goodput, GOODPUT_INSIDE, 0, BOARD_NOW_MS, BOARD_NOW_MS,
                 BOARD_NOW_MS);
}

/* What a pass makes of the answer. */
static void take_over(struct world *world, int answer)
{
    auto_free char *text = told_text(answer);
    struct job_status *status = &world->w.status;
    const struct training before = status->training;
    const struct goodput_start start = {.scheduled_ms = BOARD_NOW_MS};
    struct training told;
    struct error err;
    assert_ok(decode_training_told(text, strlen(text), &told, &err), &err);
    goodput_told(&status->goodput, &before, &told, &start, BOARD_NOW_MS, board_now_ms);
    training_merge(&status->training, &told);
}

/* ---- who keeps something ---- */

static void *open_board(void)
{
    return board_open(&board_clocks);
}

static void close_board(void *of)
{
    board_close(of);
}

static void tell_board(void *of, struct world *world, int answer)
{
    static const struct action events[] = {
        {.kind = ACTION_EVENT,
         .reason = REASON_TRAINING_STARTED,
         .message = "PyTorchJob training-job-123 trains on 8 ranks: step 123606/1000000."},
        {.kind = ACTION_EVENT,
         .reason = REASON_CHECKPOINT_SAVED,
         .message = "A checkpoint is kept of step 123600 (told once an hour at most)."}};
    board_tell_with(of, &world->w, events, answer == 1 ? array_length(events) : 0);
}

static void ignore_news(void *context, const char *key, bool finished)
{
    (void)context, (void)key, (void)finished;
}

static void ignore(void *context, const char *text)
{
    (void)context, (void)text;
}

static void *open_cache(void)
{
    return cache_open(&(struct cache_options){
        .default_backoff_limit = 6, .changed = ignore_news, .warn = ignore});
}

static void close_cache(void *of)
{
    cache_close(of);
}

static void tell_cache(void *of, struct world *world, int answer)
{
    struct json *object = object_job(world->w.name, world->w.uid, answer, 3);
    json_set(object, "status", manifest_status(&world->w.job, &world->w.status));
    cache_put(of, CACHE_JOBS, object);
    json_free(object);
}

static void *open_records(void)
{
    return xcalloc(1, sizeof(struct table));
}

static void close_records(void *of)
{
    job_record_free_all(of);
    free(of);
}

/* A status is written of what was told. */
static void tell_records(void *of, struct world *world, int answer)
{
    if (answer > 0)
        job_record_take(of, world->key, world->w.uid);
}

static void *open_metrics(void)
{
    return metrics_open();
}

static void close_metrics(void *of)
{
    metrics_close(of);
}

static void tell_metrics(void *of, struct world *world, int answer)
{
    (void)answer;
    metrics_job_seen(of, world->key, &world->w.job, &world->w.status, board_now_ms);
    metrics_status_written(of, world->key, &world->w.status, &world->w.status);
}

static const struct keeper {
    const char *name;
    void *(*open)(void);
    void (*close)(void *of);
    void (*tell)(void *of, struct world *world, int answer); /* 0: nothing was told yet */
    bool grows;                                              /* with the answers of a job */
} keepers[] = {
    {"the job as it is cached", open_cache, close_cache, tell_cache, false},
    {"the page: row, charts, events", open_board, close_board, tell_board, true},
    {"what is kept of a status that was written", open_records, close_records, tell_records, false},
    {"/metrics", open_metrics, close_metrics, tell_metrics, false},
};

/* What the keeper keeps of all jobs, some of which have told so often. */
static size_t bytes_of(const struct keeper *keeper, int answers)
{
    size_t before = bytes_in_use;
    void *of = keeper->open();
    for (int answer = 0; answer <= answers; answer++) {
        board_now_ms = BOARD_NOW_MS + 1000 + answer * EVERY_MS;
        for (int i = 0; i < (answer == 0 ? JOBS : TELLING); i++) {
            if (answer == 0)
                make(&worlds[i], i);
            else
                take_over(&worlds[i], answer);
            keeper->tell(of, &worlds[i], answer);
        }
    }
    size_t bytes = bytes_in_use - before;
    keeper->close(of);
    return bytes;
}

/* ---- who asks ---- */

static size_t asker_news;

static void on_news(void *context, const char *key)
{
    (void)context, (void)key;
    asker_news++;
}

static const struct http_options http_options = {.max_body_bytes = 1 << 20,
                                                 .max_line_bytes = 1 << 20,
                                                 .max_in_flight = ASKER_IN_FLIGHT_MAX,
                                                 .connect_timeout_ms = SUPPORT_PATIENCE_MS};

/* All are followed, answer once, and have it in their status. */
static void ask_all(struct asker *asker, struct http *http)
{
    auto_free char *text = told_text(1);
    auto_free char *bytes = xasprintf("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n%s", text);
    const struct fake_answer answer = {.bytes = bytes, .then = FAKE_CLOSE};
    struct fake_server *server = fake_server_open(&answer, 1, NULL);
    struct error err;
    for (int i = 0; i < TELLING; i++) {
        make(&worlds[i], i);
        worlds[i].pod.training_port = fake_server_port(server);
        asker_follow(asker, worlds[i].key, &worlds[i].w.snapshot);
    }
    board_now_ms += EVERY_MS;
    while (asker_news < TELLING) {
        asker_tick(asker, 0);
        assert_ok(http_poll(http, NULL, 0, 20, &err), &err);
    }
    fake_server_close(server);
    for (int i = 0; i < TELLING; i++) {
        take_over(&worlds[i], 1);
        asker_follow(asker, worlds[i].key, &worlds[i].w.snapshot);
    }
}

static size_t bytes_of_asker(void)
{
    struct error err;
    struct http *http;
    board_now_ms = BOARD_NOW_MS;
    assert_ok(http_open(&http, &http_options, &err), &err);
    const struct asker_options options = {.http = http,
                                          .interval_ms = EVERY_MS,
                                          .timeout_ms = SUPPORT_PATIENCE_MS,
                                          .clocks = &board_clocks,
                                          .news = on_news};
    struct asker *asker = asker_open(&options);
    size_t before = bytes_in_use;
    ask_all(asker, http);
    size_t bytes = bytes_in_use - before;
    asker_close(asker);
    http_close(http);
    return bytes / TELLING;
}

/* ---- the bound ---- */

/* Of a job, beside what is kept of one that tells nothing. */
static int more_bytes(const struct keeper *keeper, int answers, size_t none)
{
    int64_t more = (int64_t)bytes_of(keeper, answers) - (int64_t)none;
    return (int)(more / TELLING);
}

static void progress_costs_little(void **state)
{
    (void)state;
    bytes_of(&keepers[0], 1); /* the C library keeps what it makes once, such as time zones */
    bytes_of_asker();
    asker_news = 0;
    int few = (int)bytes_of_asker(), many = few;
    print_message("# bytes of a job that has told 5 times; 43 times\n");
    print_message("# %-45s %5d; %5d\n", "whom to ask, and what was heard", few, many);
    for (size_t i = 0; i < array_length(keepers); i++) {
        const struct keeper *keeper = &keepers[i];
        size_t none = bytes_of(keeper, 0);
        int by_few = more_bytes(keeper, FEW, none);
        int by_many = keeper->grows ? more_bytes(keeper, MANY, none) : by_few;
        print_message("# %-45s %5d; %5d, beside %zu\n", keeper->name, by_few, by_many, none / JOBS);
        few += by_few;
        many += by_many;
    }
    print_message("# %-45s %5d; %5d\n", "all of them", few, many);
    if (!COUNTS)
        return;
    assert_true(few > (int)sizeof(struct training) && many > few); /* it does count */
    assert_true(many <= MOST_BYTES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(progress_costs_little),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
