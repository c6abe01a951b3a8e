#include "agent/shard/schedule.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static const char *const type_names[] = {
    [SCHEDULE_CONSTANT] = "constant",
    [SCHEDULE_STEP_LR] = "step",
    [SCHEDULE_LINEAR] = "linear",
    [SCHEDULE_COSINE] = "cosine",
    [SCHEDULE_EXPONENTIAL] = "exponential",
    [SCHEDULE_PLATEAU] = "plateau",
    [SCHEDULE_HF_CONSTANT] = "hf_constant",
    [SCHEDULE_HF_CONSTANT_WITH_WARMUP] = "hf_constant_with_warmup",
    [SCHEDULE_HF_LINEAR] = "hf_linear",
    [SCHEDULE_HF_COSINE] = "hf_cosine",
    [SCHEDULE_HF_COSINE_WITH_RESTARTS] = "hf_cosine_with_restarts",
    [SCHEDULE_HF_POLYNOMIAL] = "hf_polynomial",
    [SCHEDULE_HF_INVERSE_SQRT] = "hf_inverse_sqrt",
    [SCHEDULE_COSINE_TO_MIN] = "cosine_to_min",
    [SCHEDULE_WSD] = "wsd",
};
enum { TYPES = sizeof type_names / sizeof type_names[0] };

const char *schedule_type_name(enum schedule_type type)
{
    return type_names[type];
}

bool schedule_type_find(const char *name, enum schedule_type *ret_type)
{
    for (int i = 0; i < TYPES; i++)
        if (strcmp(type_names[i], name) == 0) {
            *ret_type = (enum schedule_type)i;
            return true;
        }
    return false;
}

bool schedule_has_end(enum schedule_type type)
{
    return type != SCHEDULE_CONSTANT && type != SCHEDULE_STEP_LR && type != SCHEDULE_HF_CONSTANT;
}

static double at_least_1(double x)
{
    return x > 1 ? x : 1;
}

/* ---- AnnealingLR: n steps done, a decay over E of them, W of these warm-up and no whole number
 * ---- */

static double annealed(const struct schedule *s, double n, double E, double W)
{
    double peak = s->lr, m = fmax(0, fmin(n, E - W) - W);
    switch (s->type) {
    case SCHEDULE_LINEAR:
        return peak * (E - m) / E;
    case SCHEDULE_COSINE:
        return peak / 2 * (cos(M_PI * m / E) + 1);
    /* 0.693 and not ln 2, as AnnealingLR has it: the same settings must give the same rates. */
    case SCHEDULE_EXPONENTIAL:
        return peak * exp(-0.693 * m / E);
    case SCHEDULE_PLATEAU: {
        double P = W + s->plateau_ratio * E;
        return n <= P ? peak : n < E ? peak * (E - n) / (E - P) : 0;
    }
    default:
        return peak;
    }
}

static double annealing(const struct schedule *s, double n)
{
    double E = at_least_1((double)s->decay_steps);
    double W = s->warmup_steps > 0 ? (double)s->warmup_steps : s->warmup_ratio * E;
    /* The sample's own warm-up ends at E - W, which is below 0 where it is longer
     * than the decay. */
    if (W > 0 && n <= W)
        return s->lr * (E > W ? fmin(n, E - W) : n) / W;
    return fmax(annealed(s, n, E, W), fmin(s->min_lr, s->lr));
}

/* ---- transformers.optimization: T steps in all, W of them warm-up ---- */

static double cosine_wave(double waves)
{
    return fmax(0, 0.5 * (1 + cos(2 * M_PI * waves)));
}

/* Half a wave, unless more are asked for. */
static double waves_of(const struct schedule *s)
{
    return s->num_cycles > 0 ? s->num_cycles : 0.5;
}

/* What is left of the highest rate after warm-up. */
static double hf_factor(const struct schedule *s, double n, double T, double W)
{
    double p = (n - W) / at_least_1(T - W), cooldown = (double)s->cooldown_steps;
    double left = fmax(0, (T - n) / at_least_1(T - W));
    /* transformers' get_inverse_sqrt_schedule: timescale = num_warmup_steps or 10_000. */
    double scale = W > 0 ? W : 10000;
    switch (s->type) {
    case SCHEDULE_HF_LINEAR:
        return left;
    case SCHEDULE_HF_POLYNOMIAL:
        return n > T ? 0 : pow(left, s->power);
    case SCHEDULE_HF_INVERSE_SQRT:
        return 1 / sqrt((n + scale - W) / scale);
    case SCHEDULE_HF_COSINE:
        return cosine_wave(fmin(p, 1) * waves_of(s));
    case SCHEDULE_COSINE_TO_MIN:
        return cosine_wave(fmin(p, 1) / 2);
    case SCHEDULE_HF_COSINE_WITH_RESTARTS:
        return p >= 1 ? 0 : cosine_wave(fmod(p * at_least_1(s->num_cycles), 1) / 2);
    case SCHEDULE_WSD:
        return n < T - cooldown ? 1
               : n < T ? cosine_wave((n - (T - cooldown)) / at_least_1(cooldown) * waves_of(s))
                       : 0;
    default:
        return 1;
    }
}

static double hugging_face(const struct schedule *s, double n)
{
    double T = (double)s->decay_steps;
    double W = s->warmup_steps > 0 ? (double)s->warmup_steps : ceil(s->warmup_ratio * T);
    double factor = n < W ? n / W : hf_factor(s, n, T, W);
    bool from_0 = n < W && s->type != SCHEDULE_WSD;
    double end = fmin(s->min_lr, s->lr);
    return from_0 ? s->lr * factor : end + (s->lr - end) * factor;
}

double schedule_lr(const struct schedule *schedule, struct schedule_position position)
{
    switch (schedule->type) {
    case SCHEDULE_HF_CONSTANT:
        return schedule->lr;
    case SCHEDULE_CONSTANT:
    case SCHEDULE_LINEAR:
    case SCHEDULE_COSINE:
    case SCHEDULE_EXPONENTIAL:
    case SCHEDULE_PLATEAU:
        return annealing(schedule, (double)position.step);
    case SCHEDULE_HF_CONSTANT_WITH_WARMUP:
    case SCHEDULE_HF_LINEAR:
    case SCHEDULE_HF_COSINE:
    case SCHEDULE_HF_COSINE_WITH_RESTARTS:
    case SCHEDULE_HF_POLYNOMIAL:
    case SCHEDULE_HF_INVERSE_SQRT:
    case SCHEDULE_COSINE_TO_MIN:
    case SCHEDULE_WSD:
        return hugging_face(schedule, (double)position.step);
    case SCHEDULE_STEP_LR: {
        assert(schedule->step_size >= 1);
        int64_t units = schedule->unit == SCHEDULE_PER_STEP ? position.step : position.epoch;
        return schedule->lr * pow(schedule->gamma, (double)(units / schedule->step_size));
    }
    }
    assert(!"an unknown schedule");
    return 0;
}
