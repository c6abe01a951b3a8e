#include "agent/health/rank_health.h"

#include "agent/health/hang_detector.h"
#include "agent/health/nccl_ras.h"
#include "agent/health/rank_inspection.h"
#include "agent/health/rank_table.h"
#include "agent/health/stopped_hang.h"
#include "agent/health/straggler.h"
#include "agent/launch/rank_note.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    LINE_BYTES = 4096,
};

struct rank_health {
    struct rank_health_setting setting;
    struct activity activity;
    struct collective_progress progress;
    /* Rank 0's, of the rendezvous's server thread; else NULL: */
    struct hang_detector *detector;
    struct stragglers *stragglers;
    struct nccl_ras *ras;               /* NULL: it is not asked */
    struct rank_row *rows;              /* [ranks] */
    const struct rank_report **reports; /* [ranks] */
    struct str json;
    struct str last_hang;              /* TRAINING_LAST_HANG's object; "": none so far */
    struct rendezvous_inspection hang; /* of the rank that hangs; rank -1: none, or it is ended */
    pthread_mutex_t show_mutex;        /* guards those below */
    struct stopped_hang stopped;       /* heard, and not told yet; time "": none */
    void (*show)(void *ctx, const struct rank_health_view *view);
    void *show_ctx;
};

/* ---- in every rank ---- */

static void read_report(struct rank_health *h, struct rank_report *ret)
{
    struct collective_state at = collective_progress_read(&h->progress);
    activity_read(&h->activity, ret);
    ret->entered = at.entered;
    ret->ended = at.ended;
    ret->node = h->setting.node;
    ret->pid = (int)getpid();
    snprintf(ret->op, sizeof ret->op, "%s", at.op);
    snprintf(ret->unit, sizeof ret->unit, "%s", at.unit);
}

static void tell(void *ctx, char location[STORE_KEY_MAX], char text[STORE_VALUE_MAX])
{
    struct rank_health *h = ctx;
    struct rank_report report;
    read_report(h, &report);
    rank_report_write(&report, text, STORE_VALUE_MAX);
    rank_note_write(h->setting.note_fd, RANK_NOTE_REPORT, text);
    rank_location_write(h->setting.host, h->setting.pod, location, STORE_KEY_MAX);
}

static void inspect(void *ctx, const struct rendezvous_inspection *inspection)
{
    const struct rank_health *h = ctx;
    rank_inspection_carry_out(inspection, h->setting.rank);
}

/* ---- on rank 0 ---- */

static void hear(void *ctx, int rank, const char *location, const char *text)
{
    struct rank_health *h = ctx;
    struct rank_report report;
    struct error ignored; /* a rank that has nothing to tell yet */
    if (rank_report_read(text, &report, &ignored))
        return;
    rank_location_read(location, &h->rows[rank].location);
    hang_detector_hear(h->detector, rank, &report);
}

static void leave(void *ctx, int rank)
{
    struct rank_health *h = ctx;
    hang_detector_drop(h->detector, rank);
}

static void add_rank(const struct rank_health *h, int rank, struct str *out)
{
    const struct rank_report *r = hang_detector_report(h->detector, rank);
    rank_location_describe(&h->rows[rank].location, rank, r->pid, out);
}

/* "hangs in phase data at step 12: no progress for 34 s, where 32 s are allowed; ..." */
static void describe_hang(const struct rank_health *h, const struct hang_verdict *v,
                          struct str *out)
{
    const struct rank_report *r = hang_detector_report(h->detector, v->rank);
    str_printf(out,
               "hangs in phase %s at step %" PRId64 ": %s for %.0f s, where %.0f s are allowed",
               rank_phase_name(r->phase), r->step, v->is_silent ? "no sign of life" : "no progress",
               (double)v->still_ms / 1000, (double)v->bound_ms / 1000);
    str_add(out, "; its last collective: ");
    rank_report_add_collective(r, out);
    if (v->waiting == 0)
        return;
    str_printf(out, "; %d rank%s in collective ", v->waiting,
               v->waiting == 1 ? " waits" : "s wait");
    rank_report_add_collective(hang_detector_report(h->detector, v->waiting_first), out);
}

/* A rank of the same pod that is well. */
static int find_witness(const struct rank_health *h, const struct hang_verdict *v)
{
    int node = hang_detector_report(h->detector, v->rank)->node;
    for (int i = 0; v->is_silent && i < h->setting.ranks; i++) {
        const struct rank_report *r = hang_detector_report(h->detector, i);
        if (i != v->rank && r && r->node == node && hang_detector_still_ms(h->detector, i) == 0)
            return i;
    }
    for (int i = 0; v->is_silent && i < h->setting.ranks; i++) {
        const struct rank_report *r = hang_detector_report(h->detector, i);
        if (i != v->rank && r && r->node == node)
            return i;
    }
    return -1;
}

/* For whoever asks when it is over, and when rank 0 has started again. */
static void keep_hang(struct rank_health *h, const struct rank_location *at,
                      const struct rank_report *report, int rank, const char *time)
{
    str_clear(&h->last_hang);
    rank_table_hang_json(at, report, rank, time, &h->last_hang);
    rank_note_write(h->setting.note_fd, RANK_NOTE_HANG, str_text(&h->last_hang));
}

static void tell_hang(struct rank_health *h, const struct hang_verdict *v)
{
    const struct rank_report *r = hang_detector_report(h->detector, v->rank);
    char time[STOPPED_NOTE_TIME_BYTES];
    auto_str struct str who, how;
    str_init(&who, LINE_BYTES);
    str_init(&how, LINE_BYTES);
    add_rank(h, v->rank, &who);
    describe_hang(h, v, &how);
    log_warning("%s %s", str_text(&who), str_text(&how));
    h->hang = (struct rendezvous_inspection){
        .rank = v->rank,
        .witness = find_witness(h, v),
        .pid = r->pid,
    };
    snprintf(h->hang.why, sizeof h->hang.why, "%.*s", STORE_VALUE_MAX - 1, str_text(&how));
    clock_format_rfc3339(h->setting.wall_ms(), time, sizeof time);
    keep_hang(h, &h->rows[v->rank].location, r, v->rank, time);
    if (h->ras && h->setting.uses_nccl())
        nccl_ras_begin(h->ras);
}

/* What the main thread has heard by now. */
static void tell_stopped(struct rank_health *h)
{
    auto_str struct str how;
    str_init(&how, LINE_BYTES);
    pthread_mutex_lock(&h->show_mutex);
    struct stopped_hang hang = h->stopped;
    h->stopped.time[0] = '\0';
    pthread_mutex_unlock(&h->show_mutex);
    if (!hang.time[0])
        return;
    stopped_hang_describe(&hang, &how);
    log_warning("%s", str_text(&how));
    keep_hang(h, &hang.location, &hang.report, hang.rank, hang.time);
}

static void tell_end(const struct rank_health *h, const struct hang_verdict *v)
{
    auto_str struct str who;
    str_init(&who, LINE_BYTES);
    if (!hang_detector_report(h->detector, v->rank))
        return;
    add_rank(h, v->rank, &who);
    log_info("%s goes on", str_text(&who));
}

static void tell_stragglers(struct rank_health *h, int64_t now_ms)
{
    for (int i = 0; i < h->setting.ranks; i++)
        h->reports[i] = hang_detector_report(h->detector, i);
    if (!stragglers_tick(h->stragglers, h->reports, now_ms))
        return;
    for (int i = 0; i < h->setting.ranks; i++) {
        auto_str struct str who;
        str_init(&who, LINE_BYTES);
        if (!straggler_is_news(h->stragglers, i))
            continue;
        add_rank(h, i, &who);
        log_warning("%s is a straggler: its own forward and backward take %.2f times the median "
                    "rank's, in %d windows of %d s running; all ranks wait for it",
                    str_text(&who), straggler_ratio(h->stragglers, i), STRAGGLER_WINDOWS,
                    STRAGGLER_WINDOW_MS / 1000);
    }
}

static void show(struct rank_health *h)
{
    int hung = hang_detector_hung(h->detector);
    struct rank_health_view view = {.hung = hung >= 0, .hung_rank = hung, .hung_node = -1};
    if (hung >= 0)
        view.hung_node = hang_detector_report(h->detector, hung)->node;
    for (int i = 0; i < h->setting.ranks; i++) {
        struct rank_row *row = &h->rows[i];
        bool is_slow = straggler_is_slow(h->stragglers, i);
        row->report = hang_detector_report(h->detector, i);
        row->still_s = (double)hang_detector_still_ms(h->detector, i) / 1000;
        row->compute_ratio = straggler_ratio(h->stragglers, i);
        row->state = i == hung ? RANK_IS_HUNG : is_slow ? RANK_IS_STRAGGLING : RANK_IS_WELL;
        view.straggling += is_slow;
    }
    pthread_mutex_lock(&h->show_mutex);
    if (h->show) {
        str_clear(&h->json);
        rank_table_json(h->rows, h->setting.ranks, &h->json);
        view.ranks_json = str_text(&h->json);
        view.last_hang = str_text(&h->last_hang);
        h->show(h->show_ctx, &view);
    }
    pthread_mutex_unlock(&h->show_mutex);
}

/* Whether the rank that hangs has had its time. */
static bool must_end(const struct rank_health *h)
{
    int rank = hang_detector_hung(h->detector);
    return h->setting.hang_action == HANG_RESTART && rank >= 0 && rank == h->hang.rank &&
           hang_detector_must_end(h->detector, h->setting.hang_patience_ms);
}

static bool tick(void *ctx, struct rendezvous_inspection *ret_inspection)
{
    struct rank_health *h = ctx;
    int64_t now_ms = h->setting.steady_ms();
    struct hang_verdict verdict;
    enum hang_news news = hang_detector_tick(h->detector, now_ms, &verdict);
    if (news == HANG_FOUND)
        tell_hang(h, &verdict);
    if (news == HANG_OVER)
        tell_end(h, &verdict);
    bool ends = must_end(h);
    *ret_inspection = h->hang;
    ret_inspection->ends = ends;
    if (ends)
        h->hang.rank = -1;
    tell_stopped(h);
    tell_stragglers(h, now_ms);
    show(h);
    return news == HANG_FOUND || ends;
}

/* ---- life cycle ---- */

struct rank_health *rank_health_open(const struct rank_health_setting *setting)
{
    struct rank_health *h = xcalloc(1, sizeof *h);
    h->setting = *setting;
    activity_init(&h->activity);
    collective_progress_init(&h->progress);
    pthread_mutex_init(&h->show_mutex, NULL);
    if (setting->rank != 0 || setting->hang_action == HANG_IGNORE)
        return h;
    h->hang.rank = -1;
    h->detector = hang_detector_open(setting->ranks, setting->beat_ms);
    h->stragglers = stragglers_open(setting->ranks);
    h->ras = setting->ras_address ? nccl_ras_open(setting->ras_address) : NULL;
    h->rows = xcalloc((size_t)setting->ranks, sizeof *h->rows);
    h->reports = xcalloc((size_t)setting->ranks, sizeof *h->reports);
    str_init(&h->json, RANK_TABLE_BYTES);
    str_init(&h->last_hang, RANK_HANG_BYTES);
    rank_note_read(setting->note_fd, RANK_NOTE_HANG, &h->last_hang);
    return h;
}

void rank_health_close(struct rank_health *h)
{
    if (!h)
        return;
    activity_destroy(&h->activity);
    collective_progress_destroy(&h->progress);
    pthread_mutex_destroy(&h->show_mutex);
    if (h->detector) {
        str_free(&h->json);
        str_free(&h->last_hang);
    }
    hang_detector_close(h->detector);
    stragglers_close(h->stragglers);
    nccl_ras_close(h->ras);
    free(h->rows);
    free(h->reports);
    free(h);
}

struct activity *rank_health_activity(struct rank_health *h)
{
    return &h->activity;
}

struct collective_progress *rank_health_progress(struct rank_health *h)
{
    return &h->progress;
}

struct rendezvous_health rank_health_rendezvous(struct rank_health *h)
{
    struct rendezvous_health functions = {.ctx = h, .tell = tell, .inspect = inspect};
    if (h->detector)
        functions.hear = hear, functions.leave = leave, functions.tick = tick;
    return functions;
}

void rank_health_tell_stopped(struct rank_health *h, struct store *store)
{
    stopped_hang_tell(store, h->setting.note_fd, h->setting.host, h->setting.pod);
}

void rank_health_hear_stopped(struct rank_health *h, struct store *store)
{
    struct stopped_hang hang;
    if (!h->detector || !stopped_hang_hear(store, &hang))
        return;
    pthread_mutex_lock(&h->show_mutex);
    h->stopped = hang;
    pthread_mutex_unlock(&h->show_mutex);
}

void rank_health_describe(struct rank_health *h, char *text, int bytes)
{
    struct rank_report report;
    auto_str struct str words;
    str_init(&words, LINE_BYTES);
    read_report(h, &report);
    rank_report_describe(&report, &words);
    snprintf(text, (size_t)bytes, "%s", str_text(&words));
}

void rank_health_show_to(struct rank_health *h,
                         void (*show_fn)(void *ctx, const struct rank_health_view *view), void *ctx)
{
    pthread_mutex_lock(&h->show_mutex);
    h->show = show_fn;
    h->show_ctx = ctx;
    pthread_mutex_unlock(&h->show_mutex);
}
