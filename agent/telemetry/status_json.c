#include "agent/telemetry/status_json.h"

#include "agent/telemetry/json_row.h"
#include "base/clock.h"
#include "base/contract.h"
#include "base/json_text.h"
#include "base/run_digest.h"

#include <inttypes.h>
#include <math.h>

static void add_key(const char *name, struct str *out)
{
    if (out->text[out->length - 1] != '{')
        str_add(out, ",");
    str_printf(out, "\"%s\":", name);
}

static void add_text(const char *name, const char *text, struct str *out)
{
    add_key(name, out);
    json_text(text, out);
}

static void add_whole(const char *name, int64_t value, struct str *out)
{
    add_key(name, out);
    str_printf(out, "%" PRId64, value);
}

static void add_real(const char *name, double value, struct str *out)
{
    add_key(name, out);
    json_number(value, out);
}

static void add_time(const char *name, int64_t wall_us, struct str *out)
{
    char text[40];
    clock_format_rfc3339(wall_us / 1000, text, sizeof text);
    add_text(name, text, out);
}

static void begin(const char *name, struct str *out)
{
    add_key(name, out);
    str_add(out, "{");
}

static void end(struct str *out)
{
    str_add(out, "}");
}

static void add_facts(const struct run_facts *f, struct str *out)
{
    add_text("version", SHOAL_VERSION, out);
    add_text("job", f->job, out);
    add_text("run", f->run, out);
    add_text("node", f->node, out);
    add_whole("rank", f->rank, out);
    add_whole("world_size", f->world_size, out);
    add_whole("restarts", f->restarts, out);
    add_text("model", f->model, out);
    add_whole("parameters", f->parameters, out);
    add_text("strategy", f->strategy, out);
    add_text("precision", f->precision, out);
    add_text("preset", f->preset, out);
    add_text("device", f->device, out);
    add_whole("steps", f->steps, out);
    add_whole("epochs", f->epochs, out);
}

static void add_memory(const struct memory_use *use, struct str *out)
{
    begin("memory_bytes", out);
    for (int k = 0; k < MEMORY_KINDS; k++) {
        begin(memory_kind_name((enum memory_kind)k), out);
        add_whole("current", use->current_bytes[k], out);
        add_whole("peak", use->peak_bytes[k], out);
        end(out);
    }
    begin("all", out);
    add_whole("current", use->current_total_bytes, out);
    add_whole("peak", use->peak_total_bytes, out);
    end(out);
    end(out);
}

static void add_checkpoint(const struct run_state *s, struct str *out)
{
    begin("checkpoint", out);
    add_whole("saves", s->saves, out);
    add_whole("failed_saves", s->failed_saves, out);
    if (s->saved_wall_us > 0) {
        add_whole("last_step", s->saved_step, out);
        add_time("last_success", s->saved_wall_us, out);
        add_real("age_seconds", s->checkpoint_age_s, out);
    }
    end(out);
}

void status_json(const struct run_state *s, struct str *out)
{
    str_add(out, "{");
    add_facts(&s->facts, out);
    add_time("started", s->start_wall_us, out);
    add_time("last_progress", s->progress_wall_us, out);
    if (s->steps > 0) {
        add_key("last_step", out);
        json_row(FIELD_STEP, WORDS_HF, s, out);
    }
    if (s->eval.step > 0) {
        add_key("last_eval", out);
        json_row(FIELD_EVAL, WORDS_HF, s, out);
    }
    add_checkpoint(s, out);
    begin("phase_seconds", out);
    for (int p = 0; p < RUN_PHASES; p++)
        add_real(run_phase_name((enum run_phase)p), s->phase_s[p], out);
    end(out);
    begin("collectives", out);
    for (int c = 0; c < COMM_COLLECTIVE_KINDS; c++)
        add_whole(comm_collective_name((enum comm_collective)c), s->last.traffic.calls[c], out);
    add_whole("bytes_sent", s->last.traffic.bytes_sent, out);
    end(out);
    add_memory(&s->last.memory, out);
    str_add(out, "}\n");
}

static void add_known(const char *name, double value, bool is_known, struct str *out)
{
    if (is_known && isfinite(value))
        add_real(name, value, out);
}

/* Before the first step of this process there is nothing to say of steps: those of the processes
 * before it were told by them. */
static void add_steps(const struct run_state *s, struct str *out)
{
    int64_t steps = s->facts.steps, left = steps - s->last.step;
    if (steps > 0)
        add_whole(TRAINING_STEPS, steps, out);
    if (s->steps == 0)
        return;
    add_whole(TRAINING_STEP, s->last.step, out);
    add_known(TRAINING_EPOCH, s->last.epoch, true, out);
    add_known(TRAINING_LOSS, s->last.loss, true, out);
    add_known(TRAINING_TOKENS_PER_S, s->tokens_per_s, s->tokens_per_s > 0, out);
    add_known(TRAINING_SAMPLES_PER_S, s->samples_per_s, s->samples_per_s > 0, out);
    add_known(TRAINING_MFU, s->utilization[FLOPS_FULL], true, out);
    if (left >= 0 && s->steps_per_s > 0)
        add_whole(TRAINING_SECONDS_LEFT, (int64_t)((double)left / s->steps_per_s), out);
}

/* To the millisecond: what is rounded is not lost from the sum. */
static void add_account(const struct run_state *s, struct str *out)
{
    char started[40];
    clock_format_micro(s->process_wall_us / 1000, started, sizeof started);
    add_text(TRAINING_PROCESS_START, started, out);
    add_whole(TRAINING_RESUMED_STEP, s->account->resumed_step, out);
    begin(TRAINING_SECONDS, out);
    for (int k = 0; k < TIME_KINDS; k++)
        if (s->account->us[k] > 0) {
            add_key(time_kind_name((enum time_kind)k), out);
            str_printf(out, "%.3f", time_account_s(s->account, (enum time_kind)k));
        }
    end(out);
}

void status_json_training(const struct run_state *s, struct str *out)
{
    str_add(out, "{");
    if (s->facts.run_id && s->facts.run_id[0]) {
        char digest[RUN_DIGEST_BYTES];
        run_digest(s->facts.run_id, digest);
        add_text(TRAINING_RUN, digest, out);
    }
    add_steps(s, out);
    add_known(TRAINING_EVAL_LOSS, s->eval.loss, s->eval.step > 0, out);
    add_whole(TRAINING_WORLD_SIZE, s->facts.world_size, out);
    add_whole(TRAINING_RESTARTS, s->facts.restarts, out);
    if (s->saved_wall_us > 0) {
        add_whole(TRAINING_CHECKPOINT_STEP, s->saved_step, out);
        add_time(TRAINING_CHECKPOINT_TIME, s->saved_wall_us, out);
    }
    add_time(TRAINING_LAST_PROGRESS, s->progress_wall_us, out);
    if (s->account)
        add_account(s, out);
    str_add(out, "}\n");
}
