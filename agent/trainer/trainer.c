/* Opening and closing: the parts in their order. The loop is in trainer_run.c. */
#include "agent/trainer/trainer.h"

#include "agent/batches/encoder.h"
#include "agent/comm/agree.h"
#include "agent/comm/comm_device.h"
#include "agent/plan/run_plan.h"
#include "agent/shard/window_plan.h"
#include "agent/shard/wrap.h"
#include "agent/trainer/build.h"
#include "agent/trainer/trainer_internal.h"
#include "base/gigabytes.h"

#include <stdlib.h>
#include <string.h>

static int open_tokenizer(struct trainer *t, struct token_encoder *ret_encoder, struct error *err)
{
    *ret_encoder = (struct token_encoder){.bos = -1, .eos = -1};
    if (build_tokenizer(t->config, t->model, &t->tokenizer, err))
        return -1;
    return t->tokenizer ? token_encoder_init(t->tokenizer, ret_encoder, err) : 0;
}

/* Concatenated documents are parted by the eos alone. */
static void notify_no_eos(struct trainer *t, const struct token_encoder *encoder)
{
    const struct agent_config *c = t->config;
    bool packs = t->model->task == MODEL_NEXT_TOKEN || t->model->task == MODEL_MASKED;
    if (packs && c->data.source.packing == TOKENS_CONCAT && encoder->encode && encoder->eos < 0)
        t->listener->notice(t->listener->ctx,
                            "the tokenizer has no eos (eos_token in tokenizer_config.json or "
                            "special_tokens_map.json): data.packing=concat joins documents with "
                            "nothing between them");
}

static int open_data(struct trainer *t, struct batch_source_env *ret_env, struct error *err)
{
    const struct agent_config *c = t->config;
    *ret_env = (struct batch_source_env){
        .stream = t->compute,
        .dtype = trainer_dtype(c),
        .rank = t->world->rank,
        .size = t->world->size,
        .max_batches = c->optimizer.gradient_accumulation_steps,
    };
    t->cursor.shares = t->slots.count;
    if (open_tokenizer(t, &ret_env->encoder, err))
        return -1;
    notify_no_eos(t, &ret_env->encoder);
    return trainer_open_shares(t, SPLIT_TRAIN, *ret_env, &t->cursor.train, err) ||
                   data_cursor_check_epoch(&t->cursor, t->cursor.train->batches, err)
               ? -1
               : 0;
}

/* Whether a stream has anything is known once something of it was read. */
static int try_evaluation(struct trainer *t, struct error *err)
{
    struct step_batches fetched;
    if (t->cursor.test->samples >= 0)
        return 0;
    if (batch_source_seek(t->cursor.test, 0, 0, "", err) ||
        batch_source_next(t->cursor.test, 1, &fetched, err))
        return -1;
    if (fetched.notice)
        t->listener->notice(t->listener->ctx, fetched.notice);
    return 0;
}

/* A data set without a split to evaluate on, or with one that has no sample, trains all the same,
 * on all ranks or on none, unless a data set was named for it. Collective. */
static int open_evaluation(struct trainer *t, struct batch_source_env env, struct error *err)
{
    if (t->config->eval.strategy == EVAL_NO)
        return 0;
    env.max_batches = 1;
    int result = trainer_open_shares(t, SPLIT_EVAL, env, &t->cursor.test, err);
    if (result == 0)
        result = try_evaluation(t, err);
    result = agree_all(t->world, t->compute, result, err);
    bool is_asked_for = !trainer_is_language(t) || t->config->data.eval_dataset[0];
    if (result == 0 || err->code != ERR_NOT_FOUND || is_asked_for)
        return result;
    batch_source_close(take(t->cursor.test));
    error_wrap(err, "there will be no evaluation");
    t->listener->notice(t->listener->ctx, err->msg);
    return 0;
}

static int try_checkpoint_dir(struct trainer *t, struct error *err)
{
    const char *dir = t->config->checkpoint.dir;
    if (!dir[0])
        return 0;
    if (durable_try_dir(&file_ops_system, dir, err))
        return error_wrap(err, "no checkpoint could be saved: checkpoint.dir (--output_dir, "
                               "--checkpoint_dir, --save_path)");
    return checkpointer_lock(&t->checkpointer, t->config, t->listener, t->env.run, t->env.restarted,
                             err);
}

static int try_model_path(struct trainer *t, struct error *err)
{
    if (!t->config->checkpoint.save_model[0] || trainer_try_save_model(t, err) == 0)
        return 0;
    return error_wrap(err, "the model could not be saved: checkpoint.save_model");
}

/* Rank 0 tries the places it will write to, before hours of work are lost for want of one. */
static int try_outputs(struct trainer *t, struct error *err)
{
    int result = 0;
    if (t->world->rank == 0 && (try_checkpoint_dir(t, err) || try_model_path(t, err)))
        result = -1;
    return agree_all(t->world, t->compute, result, err);
}

/* What compute waits for is communication, or an update, that nothing hides. */
static void mark_wait(void *ctx, enum shard_wait what)
{
    struct trainer *t = ctx;
    if (what == SHARD_WAIT_NOTHING)
        phases_mark(t->phases, t->phase_before_wait);
    else
        t->phase_before_wait = phases_mark(
            t->phases, what == SHARD_WAIT_UPDATE ? PHASE_OPTIMIZER : PHASE_COMMUNICATION);
}

static int open_shard(struct trainer *t, struct error *err)
{
    const struct agent_config *c = t->config;
    struct shard_config config = trainer_shard_config(c, t->strategy, t->group_size);
    config.slots = t->fixed_slots ? t->slots.count : 0;
    t->phases = phases_open(t->compute);
    /* Events would part the graphs of a pass at each unit. */
    config.update_beside = c->runtime.overlap_optimizer && !c->runtime.cuda_graphs &&
                           !device_is_host(t->device) && t->shard_device == t->device;
    config.windows = t->world->has_windows;
    config.waits = mark_wait;
    config.waits_ctx = t;
    if (shard_open(&config, t->compute, t->shard_device, t->world, t->model->root, &t->shard, err))
        return -1;
    shard_clear_values(t->shard); /* trainer_resume() knows whether a checkpoint has values */
    struct tape_hooks hooks = shard_hooks(t->shard);
    if (tape_open(t->compute, config.param_dtype, &hooks, &t->tape, err))
        return -1;
    if (c->memory.offload_activations && device_open_host(t->device, 1, &t->host, err))
        return -1;
    return tape_save_memory(t->tape, trainer_checkpointing(c), t->host,
                            (int)c->memory.activation_loading_horizon, err);
}

static int open_optimizer(struct trainer *t, struct error *err)
{
    if (trainer_schedule(t->config, data_cursor_steps(&t->cursor), &t->schedule, err) ||
        trainer_decay_rule(t->config, t->arena, &t->decay_rule, err))
        return -1;
    struct optim_config config = trainer_optim_config(t->config, t->decay_rule);
    return optim_open(&config, t->shard, &t->optim, err);
}

/* The Fabric scripts' rule: max_step * accumulation is the micro-batches of all epochs, or slightly
 * more; the rate falls over it there, here over what is trained. */
static void notify_max_steps(struct trainer *t)
{
    const struct agent_config *c = t->config;
    int64_t most = c->schedule.max_steps, steps = data_cursor_epoch_steps(&t->cursor);
    char text[192];
    if (c->logging.style != STYLE_FABRIC || most == 0 || steps == 0 || most == steps)
        return;
    snprintf(text, sizeof text,
             most < steps ? "schedule.max_steps=%lld ends the run before "
                            "schedule.num_train_epochs=%.6g does, at step %lld; leave max_steps "
                            "out, and it is computed"
                          : "schedule.max_steps=%lld is beyond the run's end: "
                            "schedule.num_train_epochs=%.6g ends it, and the schedule, at step "
                            "%lld",
             (long long)most, c->schedule.epochs, (long long)steps);
    t->listener->notice(t->listener->ctx, text);
}

/* Whether the run ends before this step although max_steps does not say so: of max_steps the
 * configuration has warned. */
static bool ends_before(const struct trainer *t, int64_t step)
{
    int64_t most = t->config->schedule.max_steps, steps = data_cursor_steps(&t->cursor);
    return steps > 0 && step > steps && (most == 0 || step <= most);
}

static void warn_of_early_end(struct trainer *t)
{
    const struct agent_config *c = t->config;
    long long steps = data_cursor_steps(&t->cursor);
    if (t->cursor.test && c->eval.strategy == EVAL_STEPS && ends_before(t, c->eval.steps))
        t->listener->notice(t->listener->ctx,
                            arena_printf(t->arena,
                                         "eval.eval_steps=%lld is beyond the run's last step, "
                                         "%lld: it is never evaluated",
                                         (long long)c->eval.steps, steps));
    if (c->schedule.type != SCHEDULE_STEP_LR && c->schedule.type != SCHEDULE_HF_CONSTANT &&
        c->schedule.warmup_steps > 0 && ends_before(t, c->schedule.warmup_steps + 1))
        t->listener->notice(t->listener->ctx,
                            arena_printf(t->arena,
                                         "schedule.warmup_steps=%lld is not below the run's last "
                                         "step, %lld: the rate never reaches optimizer.lr",
                                         (long long)c->schedule.warmup_steps, steps));
}

/* What was asked for and cannot be, now that data and device are known. */
static void notify_limits(struct trainer *t)
{
    const struct agent_config *c = t->config;
    notify_max_steps(t);
    warn_of_early_end(t);
    trainer_tell_order(t);
    trainer_begin_tuning(t);
    if (trainer_is_fp8(c) && device_is_host(t->device))
        t->listener->notice(t->listener->ctx,
                            "precision.fp8: this CPU multiplies no numbers of 8 bits; it decodes "
                            "them, and is slower than without");
    if (c->runtime.debug != DEBUG_OFF && t->world == t->env.world)
        t->listener->notice(t->listener->ctx,
                            "runtime.debug is ignored: only collectives of NCCL are noted");
    if (c->eval.strategy == EVAL_HALF_EPOCH && t->cursor.train->samples < 0)
        t->listener->notice(t->listener->ctx,
                            "where the middle of an epoch of this data is, is not known before its "
                            "end: it is evaluated there only");
}

static void notify_small_units(struct trainer *t)
{
    int64_t parameters = module_param_count(t->model->root);
    int units = shard_unit_count(t->shard);
    char text[192];
    if (!trainer_is_language(t) || shard_group_size(t->shard) == 1 ||
        !run_plan_units_are_small(parameters, units))
        return;
    snprintf(text, sizeof text,
             "%d units of %.3gM parameters are small (below %dM): one unit "
             "(parallel.auto_wrap_policy=NO_WRAP) or NO_SHARD is faster where memory allows it",
             units, (double)parameters / units / 1e6, WRAP_SMALL_UNIT / 1000000);
    t->listener->notice(t->listener->ctx, text);
}

/* Why nothing lies in symmetric windows; "": something does, or comm_device_open() has said why. */
static const char *without_windows(const struct trainer *t, const struct shard_windows *w)
{
    if (t->world->has_windows)
        return shard_group_size(t->shard) == 1 ? "nothing is sharded" : w->why;
    return t->world->size == 1                                  ? "there is one rank"
           : t->config->runtime.collectives == COMM_DEVICE_HOST ? "collectives go through the hosts"
                                                                : "";
}

/* Whoever asked for symmetric windows hears what lies in them. */
static void notify_windows(struct trainer *t)
{
    const struct shard_windows w = shard_get_windows(t->shard);
    const char *why = without_windows(t, &w);
    char text[480];
    if (t->config->runtime.register_buffers != REGISTER_SYMMETRIC || device_is_host(t->device) ||
        (!t->world->has_windows && !why[0]))
        return;
    if (why[0] && w.gathered == 0)
        snprintf(text, sizeof text, "runtime.register_buffers: no symmetric windows: %s", why);
    else
        snprintf(
            text, sizeof text,
            "runtime.register_buffers: of %d units %d are gathered and %d reduced in symmetric "
            "windows of %.3f GB; the others take %d MiB or more%s%s%s%s",
            w.units, w.gathered, w.reduced, gigabytes(w.bytes), WINDOW_UNIT_BYTES >> 20,
            w.fp8 > 0 ? ", or are gathered in fp8" : "",
            shard_has_slots(t->shard) ? ", and slots' gradients use none" : "",
            why[0] ? "; reductions have no window: " : "", why);
    t->listener->notice(t->listener->ctx, text);
}

/* Of BERT's pre-training, the loss is that of tokens and that of sentences. */
static bool predicts_tokens(enum model_task task)
{
    return task == MODEL_NEXT_TOKEN || task == MODEL_TRANSLATION || task == MODEL_MASKED;
}

static int report_facts(struct trainer *t, struct error *err)
{
    const struct trainer_facts facts = {
        .model = t->model->type,
        .strategy = shard_strategy_name(t->strategy),
        .device = device_name(t->device),
        .device_model = device_model(t->device),
        .parameters = module_param_count(t->model->root),
        .steps = data_cursor_steps(&t->cursor),
        .T = t->cursor.train->T,
        .files = t->cursor.train->files,
        .format = t->cursor.train->format,
        .predicts_tokens = predicts_tokens(t->model->task),
        .language = t->model->language,
    };
    if (t->listener->began(t->listener->ctx, &facts, err))
        return -1;
    trainer_event(t, RUN_MODEL_BEGIN, NULL);
    trainer_event(t, RUN_MODEL_DONE, NULL);
    notify_limits(t);
    return 0;
}

/* A part of an epoch is so many of its steps. */
static int check_epochs(const struct trainer *t, struct error *err)
{
    double epochs = t->config->schedule.epochs;
    if (t->cursor.train->batches >= 0 || epochs == (double)trainer_epochs(t->config))
        return 0;
    return error_set(err, ERR_CONFIG,
                     "schedule.num_train_epochs: %.6g: how long an epoch of this data is, is not "
                     "known before its end: give whole epochs, or schedule.max_steps",
                     epochs);
}

static int save_model(void *ctx, const char *path, struct error *err)
{
    return trainer_save_model(ctx, path, err);
}

static int open_checkpointer(struct trainer *t, struct error *err)
{
    struct checkpointer_run run = {
        .config = t->config,
        .listener = t->listener,
        .world = t->world,
        .shard = t->shard,
        .optim = t->optim,
        .totals = &t->totals,
        .cursor = &t->cursor,
        .schedule = &t->schedule,
        .lr = &t->lr,
        .strategy = shard_strategy_name(t->strategy),
        .reduction_slots = t->fixed_slots ? t->slots.count : 0,
        .may_differ = trainer_may_differ(t),
        .agent_config = t->env.agent_config,
        .save_model = save_model,
        .ctx = t,
    };
    if (trainer_is_language(t) && trainer_model_config(t, t->arena, &run.model_config, err))
        return -1;
    return checkpointer_open(&t->checkpointer, &run, t->env.world, err);
}

/* What comes after the data, in the order that people know from the logs of others. */
static int open_engine(struct trainer *t, struct error *err)
{
    if (check_epochs(t, err) || report_facts(t, err) || trainer_reserve_memory(t, err) ||
        open_shard(t, err))
        return -1;
    trainer_event(t, RUN_WRAPPED, NULL);
    notify_small_units(t);
    notify_windows(t);
    if (open_optimizer(t, err) || step_totals_open(&t->totals, t->device, t->compute, t->world,
                                                   t->shard, t->fixed_slots, err))
        return -1;
    trainer_event(t, RUN_OPTIMIZER_DONE, NULL);
    if (open_checkpointer(t, err) || trainer_check_shared_dir(t, err))
        return -1;
    return trainer_resume(t, err) || trainer_open_profiler(t, err) ? -1 : 0;
}

int trainer_open(const struct agent_config *config, const struct rank_env *env,
                 const struct trainer_listener *listener, struct trainer **ret_trainer,
                 struct error *err)
{
    struct trainer *t = xcalloc(1, sizeof *t);
    t->config = config;
    t->env = *env;
    t->listener = listener;
    t->arena = arena_open();
    checkpointer_init(&t->checkpointer);
    t->evaluated_step = -1;
    t->cursor = (struct data_cursor){.config = config};
    struct batch_source_env data;
    if (trainer_open_device(t, err) || trainer_open_graphs(t, err) || trainer_open_model(t, err) ||
        trainer_open_slots(t, err) ||
        agree_all(t->world, t->compute, open_data(t, &data, err), err) || /* one for all */
        open_evaluation(t, data, err) || try_outputs(t, err) || open_engine(t, err)) {
        trainer_explain_memory(t, err);
        trainer_close(t);
        return -1;
    }
    *ret_trainer = t;
    return 0;
}

void trainer_close(struct trainer *t)
{
    if (!t)
        return;
    if (t->compute) {
        /* What is queued reads memory that is freed below. */
        struct error ignored;
        stream_sync(t->compute, &ignored);
    }
    trainer_close_profiler(t);
    memory_saver_close(&t->memory_saver);
    checkpointer_close(&t->checkpointer);
    tape_close(t->tape);
    optim_close(t->optim);
    shard_close(t->shard);
    trainer_decay_rule_free(t->decay_rule);
    data_cursor_close(&t->cursor);
    tokenizer_close(t->tokenizer);
    step_totals_close(&t->totals);
    trainer_close_graphs(t);
    stream_close(t->compute);
    if (t->world != t->env.world)
        comm_close(t->world);
    phases_close(t->phases);
    if (t->shard_device != t->device)
        device_close(t->shard_device);
    device_close(t->host);
    device_close(t->device);
    arena_close(t->arena);
    free(t);
}

const struct module *trainer_module(const struct trainer *t)
{
    return t->model->root;
}

void trainer_memory_use(const struct trainer *t, struct memory_use *ret_use)
{
    device_memory_use(t->device, ret_use);
}
