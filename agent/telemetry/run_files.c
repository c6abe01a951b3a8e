#include "agent/telemetry/run_files.h"

#include "agent/telemetry/append_file.h"
#include "agent/telemetry/csv.h"
#include "agent/telemetry/json_row.h"
#include "agent/telemetry/tensorboard.h"
#include "agent/telemetry/wandb.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

enum { TEXT_MAX_BYTES = 64 * 1024 };

enum sink { SINK_CSV, SINK_JSONL, SINK_TENSORBOARD, SINKS };

struct run_files {
    const struct telemetry_setting *setting;
    const struct run_state *state;
    struct append_file *files[SINKS]; /* NULL: not written */
    struct wandb *wandb;              /* likewise */
    struct str text;                  /* of the row that is being written */
};

static bool is_fabric(const struct run_files *f)
{
    return f->setting->lines.style == STYLE_FABRIC;
}

static void add_row(const struct run_files *f, enum sink sink, enum field_event event,
                    struct str *out)
{
    enum field_words words = is_fabric(f) ? WORDS_FABRIC : WORDS_HF;
    switch (sink) {
    case SINK_CSV:
        csv_row(event, words, f->state, out);
        break;
    case SINK_JSONL:
        json_row(event, words, f->state, out);
        str_add(out, "\n");
        break;
    case SINK_TENSORBOARD:
        tensorboard_row(event, is_fabric(f) ? WORDS_FABRIC : WORDS_TAGS, f->state, out);
        break;
    case SINKS:
        break;
    }
}

void run_files_write(struct run_files *f, enum field_event event, const char *path)
{
    struct error err;
    if (f->wandb && wandb_add_event(f->wandb, event, path, f->state, &err) < 0) {
        log_warning("%s; nothing more is written to it", err.msg);
        wandb_close(take(f->wandb), 0, f->state); /* the run goes on */
    }
    for (int i = 0; i < SINKS; i++) {
        if (!f->files[i])
            continue;
        str_clear(&f->text);
        add_row(f, (enum sink)i, event, &f->text);
        if (append_file_write(f->files[i], str_text(&f->text), f->text.length, &err) == 0)
            continue;
        log_warning("%s; nothing more is written to it", err.msg);
        append_file_close(take(f->files[i]));
    }
}

static int open_csv(struct run_files *f, struct error *err)
{
    str_clear(&f->text);
    csv_header(is_fabric(f) ? WORDS_FABRIC : WORDS_HF, &f->text);
    return append_file_open(f->setting->csv, str_text(&f->text), &f->files[SINK_CSV], err);
}

static int open_tensorboard(struct run_files *f, struct error *err)
{
    char host[HOST_NAME_MAX + 1] = "local";
    auto_str struct str path;
    str_init(&path, TEXT_MAX_BYTES);
    gethostname(host, sizeof host - 1);
    tensorboard_path(f->setting->tensorboard_dir, f->state->start_wall_us, host, getpid(), &path);
    if (append_file_open(str_text(&path), "", &f->files[SINK_TENSORBOARD], err) < 0)
        return -1;
    str_clear(&f->text);
    tensorboard_head(f->state->start_wall_us, &f->text);
    if (append_file_write(f->files[SINK_TENSORBOARD], f->text.text, f->text.length, err) == 0)
        return 0;
    append_file_close(take(f->files[SINK_TENSORBOARD]));
    return -1;
}

/* Nobody but a preset asked for the file: the trainer that it stands in for writes it where it is
 * started, and in a pod that may be a folder of root's. */
static int unless_needed(bool is_needed, int result, const char *key, struct error *err)
{
    if (result == 0)
        return 0;
    if (is_needed)
        return error_wrap(err, "%s", key);
    log_warning("%s: %s; the run goes on without what the preset would write there", key, err->msg);
    return 0;
}

static int open_all(struct run_files *f, struct error *err)
{
    const struct telemetry_setting *s = f->setting;
    if (s->facts.rank != 0)
        return 0;
    if (s->csv[0] && open_csv(f, err) < 0)
        return -1;
    if (s->jsonl[0] && append_file_open(s->jsonl, "", &f->files[SINK_JSONL], err) < 0)
        return -1;
    if (s->tensorboard_dir[0] && unless_needed(s->needs_tensorboard, open_tensorboard(f, err),
                                               "logging.tensorboard_dir", err) < 0)
        return -1;
    if (!s->wandb)
        return 0;
    return unless_needed(s->needs_wandb,
                         wandb_open(&f->wandb, s->wandb, f->state->start_wall_us, err),
                         "logging.wandb", err);
}

int run_files_open(struct run_files **ret_files, const struct telemetry_setting *setting,
                   const struct run_state *state, struct error *err)
{
    struct run_files *f = xcalloc(1, sizeof *f);
    f->setting = setting;
    f->state = state;
    str_init(&f->text, TEXT_MAX_BYTES);
    if (open_all(f, err) < 0) {
        run_files_close(f, 0);
        return -1;
    }
    *ret_files = f;
    return 0;
}

void run_files_close(struct run_files *f, int exit_code)
{
    if (!f)
        return;
    for (int i = 0; i < SINKS; i++)
        append_file_close(f->files[i]);
    wandb_close(f->wandb, exit_code, f->state);
    str_free(&f->text);
    free(f);
}
