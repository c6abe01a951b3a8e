#include "tests/agent/hang_simulation.h"

#include "agent/health/hang_detector.h"
#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS_MAX = 16, BEAT_MS = 1000, LATE_S = 4 };

static const double hours_between_hangs = 10;

struct job {
    uint64_t random;
    struct hang_tally *tally;
    struct hang_detector *detector;
    /* its shape */
    int ranks, per_node;
    double segment_s;               /* compute between two collectives */
    int per_step;                   /* segments of a step */
    int64_t eval_every, save_every; /* steps */
    double eval_s, save_s;
    /* its state */
    double t, begin_s; /* now; when the segment began */
    int64_t clock_ms;  /* what the observer's clock is ahead of t */
    int64_t segment, step, steps_here;
    enum rank_phase phase;
    unsigned passed;
    double busy_until[RANKS_MAX];   /* then the rank enters the segment's collective */
    double silent_until[RANKS_MAX]; /* it sends no heartbeats until then */
    double slow_data_s;             /* of the next data; 0: as ever */
    /* the hang */
    bool is_due;
    double next_hang_s, hang_s, bound_s;
    enum hang_kind kind;
    int victim; /* -1: none hangs */
};

static double uniform(struct job *j)
{
    j->random = j->random * 6364136223846793005u + 1442695040888963407u;
    return (double)(j->random >> 11) / 9007199254740992.0;
}

static double between(struct job *j, double least, double most)
{
    return least + (most - least) * uniform(j);
}

static double log_between(struct job *j, double least, double most)
{
    return exp(between(j, log(least), log(most)));
}

static int one_of(struct job *j, int count)
{
    return (int)(uniform(j) * count);
}

/* Whether what comes so often an hour comes in this second. */
static bool comes(struct job *j, double per_hour)
{
    return uniform(j) < per_hour / 3600;
}

/* ---- segments ---- */

static double end_of(const struct job *j)
{
    double end = 0;
    for (int i = 0; i < j->ranks; i++)
        end = fmax(end, fmax(j->busy_until[i], j->silent_until[i]));
    return end;
}

static void begin(struct job *j, enum rank_phase phase, double most_s)
{
    if (phase != j->phase)
        j->passed |= 1u << j->phase;
    j->phase = phase;
    j->segment++;
    j->tally->segments++;
    for (int i = 0; i < j->ranks; i++)
        j->busy_until[i] = j->begin_s + most_s * between(j, 0.7, 1);
}

static bool hangs_in(const struct job *j)
{
    static const enum rank_phase phases[HANG_KINDS] = {RANK_STEP, RANK_DATA, RANK_EVALUATION,
                                                       RANK_SAVE, RANK_STEP};
    return j->is_due && j->victim < 0 && j->phase == phases[j->kind] && j->begin_s > j->next_hang_s;
}

static void inject(struct job *j)
{
    j->is_due = false;
    j->victim = one_of(j, j->ranks);
    j->hang_s = j->t;
    j->busy_until[j->victim] = 1e300;
    if (j->kind == HANG_SILENT)
        j->silent_until[j->victim] = 1e300;
    j->bound_s = j->kind == HANG_SILENT
                     ? HANG_SILENT_BEATS * BEAT_MS / 1e3
                     : (double)hang_detector_bound_ms(j->detector, j->victim, j->phase) / 1e3;
    j->tally->hangs[j->kind]++;
}

static void next_segment(struct job *j)
{
    bool ends_step = j->segment % j->per_step == 0;
    j->begin_s = end_of(j);
    j->steps_here += ends_step && j->phase != RANK_START;
    j->step += ends_step && j->phase != RANK_START;
    if (j->phase == RANK_START || j->steps_here == 0) {
        begin(j, RANK_FIRST_STEP, between(j, 1, 40));
    } else if (ends_step && j->step % j->save_every == 0 && j->phase != RANK_SAVE) {
        bool is_slow = uniform(j) < 0.05;
        j->tally->slow_saves += is_slow;
        begin(j, RANK_SAVE, j->save_s * between(j, 0.8, is_slow ? 3 : 1.2));
        j->busy_until[0] = j->begin_s + j->save_s; /* rank 0 has the manifest to write */
    } else if (ends_step && j->step % j->eval_every == 0 && j->phase != RANK_EVALUATION) {
        begin(j, RANK_EVALUATION, j->eval_s);
    } else if (j->slow_data_s > 0 || (j->is_due && j->kind == HANG_IN_DATA)) {
        begin(j, RANK_DATA, j->segment_s / 10);
        j->busy_until[one_of(j, j->ranks)] += j->slow_data_s;
        j->slow_data_s = 0;
    } else {
        begin(j, RANK_STEP, j->segment_s);
    }
    if (hangs_in(j))
        inject(j);
}

/* Many short ones at once, until the next that is something else. */
static void skip_short(struct job *j)
{
    if (j->phase != RANK_STEP || j->slow_data_s > 0 || j->is_due || end_of(j) > j->t)
        return;
    int64_t every = j->eval_every < j->save_every ? j->eval_every : j->save_every;
    int64_t steps = every - j->step % every - 2, fit = (int64_t)((j->t - end_of(j)) / j->segment_s);
    int64_t most = (steps - 2) * j->per_step;
    int64_t count = fit - 1 < most ? fit - 1 : most;
    if (count < j->per_step)
        return;
    count -= count % j->per_step;
    j->segment += count;
    j->step += count / j->per_step;
    j->steps_here += count / j->per_step;
    for (int i = 0; i < j->ranks; i++)
        j->busy_until[i] += (double)count * j->segment_s;
}

/* ---- what disturbs ---- */

static int node_of(const struct job *j, int rank)
{
    return rank / j->per_node;
}

static void pause_node(struct job *j, int node, double seconds)
{
    for (int i = 0; i < j->ranks; i++) {
        if (node_of(j, i) != node)
            continue;
        if (j->busy_until[i] > j->t)
            j->busy_until[i] += seconds;
        j->silent_until[i] = fmax(j->silent_until[i], j->t + seconds + uniform(j));
    }
}

static void disturb(struct job *j)
{
    if (comes(j, 5)) { /* memory is paged in: the rank stands still, its heartbeats too, perhaps */
        int rank = one_of(j, j->ranks);
        double seconds = between(j, 0.1, 2);
        if (j->busy_until[rank] > j->t)
            j->busy_until[rank] += seconds;
        if (uniform(j) < 0.5)
            j->silent_until[rank] = fmax(j->silent_until[rank], j->t + seconds);
        j->tally->page_ins++;
    }
    if (comes(j, 2)) {
        j->slow_data_s = log_between(j, 0.1, 25);
        j->tally->slow_data++;
    }
    if (comes(j, 0.5)) { /* the rendezvous loses what is silent for 15 s */
        pause_node(j, one_of(j, j->ranks / j->per_node), between(j, 0.5, 14));
        j->tally->paused_machines++;
    }
    if (comes(j, 0.5)) { /* rank 0's, with who watches */
        double seconds = between(j, 0.5, 14);
        pause_node(j, 0, seconds);
        j->t += floor(seconds);
        j->tally->paused_observers++;
    }
    if (comes(j, 0.2)) {
        j->clock_ms += (int64_t)between(j, -3.6e6, 3.6e6);
        j->tally->clock_jumps++;
    }
}

/* ---- what is heard ---- */

static void hear(struct job *j)
{
    for (int i = 0; i < j->ranks; i++) {
        bool is_late = uniform(j) < 0.01;
        j->tally->late_beats += is_late;
        if (is_late && uniform(j) < 0.02) /* a lost packet is sent again */
            j->silent_until[i] = fmax(j->silent_until[i], j->t + between(j, 1, 3));
        if (is_late || j->silent_until[i] > j->t)
            continue;
        bool waits = j->busy_until[i] <= j->t;
        const struct rank_report report = {
            .step = j->step,
            .phase = j->phase,
            .passed = j->passed,
            .entered = (uint64_t)(j->segment + waits),
            .ended = (uint64_t)j->segment,
            .steps = j->steps_here,
            .node = node_of(j, i),
            .pid = 100 + i,
        };
        hang_detector_hear(j->detector, i, &report);
    }
}

/* All ranks are new processes; what was learned is forgotten. */
static void start(struct job *j)
{
    hang_detector_close(j->detector);
    j->detector = hang_detector_open(j->ranks, BEAT_MS);
    j->victim = -1;
    j->is_due = false;
    j->segment = j->steps_here = 0;
    j->phase = RANK_START;
    j->passed = 0;
    j->begin_s = j->t;
    memset(j->silent_until, 0, sizeof j->silent_until);
    begin(j, RANK_START, between(j, 1, 300));
    do
        j->kind = (enum hang_kind)one_of(j, HANG_KINDS);
    while (j->kind == HANG_SILENT && j->per_node == 1); /* the rendezvous loses that one */
    j->next_hang_s = j->t + 1000 - hours_between_hangs * 3600 * log(1 - uniform(j));
}

static void judge(struct job *j, enum hang_news news, const struct hang_verdict *verdict)
{
    double delay_s = j->t - j->hang_s;
    /* others that end the same phase later teach the detector meanwhile */
    if (j->victim >= 0 && j->kind != HANG_SILENT)
        j->bound_s = fmax(j->bound_s,
                          (double)hang_detector_bound_ms(j->detector, j->victim, j->phase) / 1e3);
    bool is_late = j->victim >= 0 && delay_s > j->bound_s + LATE_S + 15; /* a pause may come too */
    if (news == HANG_FOUND && (j->victim < 0 || verdict->rank != j->victim)) {
        printf("# false alarm at %.0f s: rank %d, phase %s, %s for %lld ms of %lld; hung: %d\n",
               j->t, verdict->rank, rank_phase_name(j->phase),
               verdict->is_silent ? "silent" : "still", (long long)verdict->still_ms,
               (long long)verdict->bound_ms, j->victim);
        j->tally->false_alarms++;
        start(j);
    } else if (news == HANG_FOUND) {
        j->tally->delay_s[j->kind] += delay_s;
        j->tally->longest_s[j->kind] = fmax(j->tally->longest_s[j->kind], delay_s - j->bound_s);
        start(j);
    } else if (is_late) {
        printf("# missed: kind %d at %.0f s, bound %.1f s\n", (int)j->kind, j->hang_s, j->bound_s);
        j->tally->missed++;
        start(j);
    }
}

void hang_simulation_run(uint64_t seed, int hours, struct hang_tally *tally)
{
    struct job *j = xcalloc(1, sizeof *j);
    j->random = seed * 0x9e3779b97f4a7c15u + 1;
    j->tally = tally;
    uniform(j);
    static const int shapes[][2] = {{2, 2}, {4, 4}, {4, 1}, {8, 4}, {8, 8}, {16, 8}};
    int shape = one_of(j, (int)array_length(shapes));
    j->ranks = shapes[shape][0];
    j->per_node = shapes[shape][1];
    j->segment_s = log_between(j, 0.002, 8);
    j->per_step = 1 + one_of(j, 6);
    double step_s = j->segment_s * j->per_step;
    j->eval_every = (int64_t)(log_between(j, 300, 7200) / step_s) + 8;
    j->save_every = (int64_t)(log_between(j, 300, 7200) / step_s) + 8;
    j->eval_s = log_between(j, 0.1, 300);
    j->save_s = log_between(j, 0.1, 120);
    start(j);
    for (double end = hours * 3600.0; j->t < end; j->t += 1) {
        struct hang_verdict verdict;
        while (end_of(j) <= j->t) {
            skip_short(j);
            next_segment(j);
        }
        j->is_due |= j->victim < 0 && j->t > j->next_hang_s;
        if (j->victim < 0)
            disturb(j);
        hear(j);
        tally->ticks++;
        judge(j, hang_detector_tick(j->detector, (int64_t)(j->t * 1000) + j->clock_ms, &verdict),
              &verdict);
    }
    tally->hours += hours;
    hang_detector_close(j->detector);
    free(j);
}

void hang_simulation_print(const struct hang_tally *t, FILE *out)
{
    static const char *const names[HANG_KINDS] = {"in a step", "in data", "in an evaluation",
                                                  "in a save", "silent (SIGSTOP)"};
    fprintf(out, "# simulated hours       %10lld\n", (long long)t->hours);
    fprintf(out, "# collectives           %10lld (short ones are skipped)\n",
            (long long)t->segments);
    fprintf(out, "# memory paged in       %10lld (0.1 to 2 s)\n", (long long)t->page_ins);
    fprintf(out, "# slow data             %10lld (0.1 to 25 s)\n", (long long)t->slow_data);
    fprintf(out, "# slow saves            %10lld (up to 3 times)\n", (long long)t->slow_saves);
    fprintf(out, "# paused machines       %10lld (0.5 to 14 s)\n", (long long)t->paused_machines);
    fprintf(out, "# paused observers      %10lld (0.5 to 14 s)\n", (long long)t->paused_observers);
    fprintf(out, "# clock jumps           %10lld (up to an hour)\n", (long long)t->clock_jumps);
    fprintf(out, "# late heartbeats       %10lld\n", (long long)t->late_beats);
    fprintf(out, "# false alarms          %10lld\n", (long long)t->false_alarms);
    fprintf(out, "# missed hangs          %10lld\n", (long long)t->missed);
    for (int k = 0; k < HANG_KINDS; k++)
        fprintf(
            out,
            "# hangs %-16s %9lld, named after %6.1f s on average, at most %.1f s behind the bound\n",
            names[k], (long long)t->hangs[k], t->hangs[k] ? t->delay_s[k] / (double)t->hangs[k] : 0,
            t->longest_s[k]);
}
