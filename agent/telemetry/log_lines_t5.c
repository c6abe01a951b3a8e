/* The lines of t5-fsdp.py, the script of the chapter on FSDP in gnosia93/training-on-eks: in
 * English, or in the words of its author. It counts micro-batches from 0 in each epoch, and epochs
 * from 0. */
#include "agent/telemetry/log_lines.h"

/* A line for each language; the order of the arguments is the same in all. */
static const char *const loaded[] = {
    [LANG_EN] = "--- Loaded a checkpoint. Training goes on from epoch %lld. ---\n",
    [LANG_KO] = "--- 체크포인트를 로드했습니다. %lld 에폭부터 재시작합니다. ---\n",
};
static const char *const not_loaded[] = {
    [LANG_EN] = "--- There is no checkpoint. Training starts from the beginning. ---\n",
    [LANG_KO] = "--- 기존 체크포인트가 없습니다. 처음부터 학습을 시작합니다. ---\n",
};
static const char *const saved[] = {
    [LANG_EN] = "--- Checkpoint saved: %s (Epoch: %lld) ---\n",
    [LANG_KO] = "--- 체크포인트 저장 완료: %s (Epoch: %lld) ---\n",
};
static const char *const elapsed[] = {
    [LANG_EN] = "Elapsed time of the code block: %.4f seconds\n",
    [LANG_KO] = "코드 블록 실행 시간: %.4f 초\n",
};

/* Of the step's micro-batches, those that are due; the loss is the mean of all. */
static void add_step(const struct run_state *s, int64_t every, struct str *out)
{
    const struct run_numbers *n = &s->last;
    int64_t due = (n->micro_batch + every - 1) / every * every;
    for (; due < n->micro_batch + n->micro_batches; due += every)
        str_printf(out, "Epoch %lld | Step %lld | Loss: %.4f | Strategy: %s\n",
                   (long long)n->epochs_done, (long long)due, n->loss, s->facts.strategy);
}

void log_lines_t5(const struct run_moment *m, const struct run_state *s,
                  const struct log_setting *setting, struct str *out)
{
    enum log_language lang = setting->lang;
    switch (m->event) {
    case RUN_NO_CHECKPOINT:
        str_add(out, not_loaded[lang]);
        break;
    case RUN_LOAD_DONE:
        str_printf(out, loaded[lang], (long long)m->epoch);
        break;
    case RUN_STEP:
        add_step(s, setting->every, out);
        break;
    case RUN_SAVE_DONE: /* at an epoch's end, of the epoch that ended */
        str_printf(out, saved[lang], m->path,
                   (long long)(m->at_epoch_end && m->epoch > 0 ? m->epoch - 1 : m->epoch));
        break;
    case RUN_END:
        str_printf(out, elapsed[lang], s->elapsed_s);
        break;
    default:
        break;
    }
}
