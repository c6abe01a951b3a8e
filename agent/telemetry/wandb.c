#include "agent/telemetry/wandb.h"

#include "agent/telemetry/append_file.h"
#include "base/json_text.h"
#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { OWN_ITEMS = 4, ITEMS_MAX = FIELDS_MAX + OWN_ITEMS, JSON_BYTES = 4096, ID_BYTES = 80 };

/* A value of the row that is not written yet; its key lives as long as the program. */
struct pending {
    const char *key;
    struct str json;
};

struct wandb {
    struct append_file *file;
    struct wandb_log log;
    bool logs_models;
    enum field_words words;
    int64_t step; /* of the row that is not written yet; -1: none */
    struct pending items[ITEMS_MAX];
    int count;
    struct str bytes; /* that are being written */
};

/* ---- the row ---- */

static struct pending *find_item(struct wandb *w, const char *key)
{
    for (int i = 0; i < w->count; i++)
        if (strcmp(w->items[i].key, key) == 0)
            return &w->items[i];
    return NULL;
}

static struct str *add_item(struct wandb *w, const char *key)
{
    struct pending *item = find_item(w, key);
    if (!item)
        item = &w->items[w->count++];
    item->key = key;
    str_clear(&item->json);
    return &item->json;
}

static int write_bytes(struct wandb *w, struct error *err)
{
    return append_file_write(w->file, str_text(&w->bytes), w->bytes.length, err);
}

static int write_row(struct wandb *w, struct error *err)
{
    struct wandb_item items[ITEMS_MAX];
    if (w->step < 0)
        return 0;
    for (int i = 0; i < w->count; i++)
        items[i] = (struct wandb_item){w->items[i].key, str_text(&w->items[i].json)};
    str_clear(&w->bytes);
    wandb_row(&w->log, w->step, items, w->count, &w->bytes);
    w->step = -1;
    w->count = 0;
    return write_bytes(w, err);
}

static int64_t step_of(enum field_event event, const struct run_state *state)
{
    return event == FIELD_STEP   ? state->last.step
           : event == FIELD_EVAL ? state->eval.step
                                 : state->tried_step;
}

int wandb_add_event(struct wandb *w, enum field_event event, const char *path,
                    const struct run_state *state, struct error *err)
{
    int64_t step = step_of(event, state);
    /* W&B wants one row a step: an evaluation's and a save's numbers join the step's, so a row
     * waits for the next step. */
    if (step > w->step) {
        if (write_row(w, err) < 0)
            return -1;
        w->step = step;
    }
    /* What ends late, as a save beside the training, joins the row at hand: W&B's steps only grow.
     * Its path is not that of the row's own save. */
    bool is_late = step < w->step;
    if (!is_late) {
        json_number((double)step, add_item(w, "_step"));
        json_number(state->elapsed_s, add_item(w, "_runtime"));
        str_printf(add_item(w, "_timestamp"), "%.6f", (double)state->progress_wall_us / 1e6);
    }
    if (path && w->logs_models && !(is_late && find_item(w, "checkpoint/path")))
        json_text(path, add_item(w, "checkpoint/path"));
    for (int i = 0; i < field_count(); i++) {
        const char *name = field_name(i, w->words);
        double value = field_value(i, state);
        if (field_is_of(i, event) && name && !isnan(value))
            json_number(value, add_item(w, name));
    }
    return 0;
}

/* ---- life cycle ---- */

/* Eight letters and digits, as wandb makes them, of the time and the process's number. */
static void make_id(int64_t wall_us, char *out)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    uint64_t number = (uint64_t)wall_us * UINT64_C(1000003) + (uint64_t)getpid();
    for (int i = 0; i < 8; i++, number /= sizeof letters - 1)
        out[i] = letters[number % (sizeof letters - 1)];
    out[8] = '\0';
}

static char *file_path(const char *dir, const char *id, int64_t wall_us)
{
    char when[32];
    struct tm date;
    const time_t seconds = (time_t)(wall_us / 1000000);
    strftime(when, sizeof when, "%Y%m%d_%H%M%S", localtime_r(&seconds, &date));
    return xasprintf("%s/wandb/offline-run-%s-%s/run-%s.wandb", dir[0] ? dir : ".", when, id, id);
}

static int open_file(struct wandb *w, const char *dir, const struct wandb_run *run,
                     struct error *err)
{
    /* A log of two runs in one file would be read as one run that starts over. A restart may come
     * within the second that its name has. */
    auto_free char *path = file_path(dir, run->id, run->start_wall_us);
    for (int64_t later_s = 1; access(path, F_OK) == 0; later_s++) {
        free(path);
        path = file_path(dir, run->id, run->start_wall_us + later_s * 1000000);
    }
    if (append_file_open(path, "", &w->file, err) < 0)
        return -1;
    wandb_begin(&w->log, run, &w->bytes);
    return write_bytes(w, err);
}

static void free_all(struct wandb *w)
{
    append_file_close(w->file);
    for (int i = 0; i < ITEMS_MAX; i++)
        str_free(&w->items[i].json);
    str_free(&w->bytes);
    free(w);
}

int wandb_open(struct wandb **ret_wandb, const struct wandb_setting *setting, int64_t wall_us,
               struct error *err)
{
    struct wandb *w = xcalloc(1, sizeof *w);
    struct wandb_run run = setting->run;
    char id[ID_BYTES];
    w->logs_models = setting->logs_models;
    w->words = setting->words;
    w->step = -1;
    for (int i = 0; i < ITEMS_MAX; i++)
        str_init(&w->items[i].json, JSON_BYTES);
    str_init(&w->bytes, 4 * WANDB_RECORD_MAX_BYTES);
    make_id(wall_us, id);
    if (!run.id[0])
        run.id = id;
    run.start_wall_us = wall_us;
    if (open_file(w, setting->dir, &run, err) < 0) {
        free_all(w);
        return -1;
    }
    *ret_wandb = w;
    return 0;
}

void wandb_close(struct wandb *w, int exit_code, const struct run_state *state)
{
    struct error ignored;
    if (!w)
        return;
    if (write_row(w, &ignored) == 0) {
        str_clear(&w->bytes);
        wandb_end(&w->log, exit_code, state->elapsed_s, &w->bytes);
        (void)write_bytes(w, &ignored);
    }
    free_all(w);
}
