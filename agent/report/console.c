#include "agent/report/console.h"

#include <math.h>

/* "nan" without the sign that it may have, which means nothing. */
static double plain(double loss)
{
    return isnan(loss) ? (double)NAN : loss;
}

void throughput_add(struct throughput *t, int64_t samples, int64_t now_us)
{
    t->seen++;
    t->samples += samples;
    t->last_us = now_us;
    t->last_samples = t->samples;
    /* The first steps compile, allocate and connect: they would lower the mean of a short run. */
    if (t->seen <= CONSOLE_WARM_UP_STEPS) {
        t->first_us = now_us;
        t->first_samples = t->samples;
    } else {
        t->steps++;
    }
}

void throughput_skip(struct throughput *t, int64_t us)
{
    t->first_us += us;
    t->last_us += us;
}

double throughput_per_s(const struct throughput *t)
{
    if (t->steps == 0 || t->last_us <= t->first_us)
        return 0;
    return (double)(t->last_samples - t->first_samples) * 1e6 / (double)(t->last_us - t->first_us);
}

void console_epoch_line(const struct trainer_score *score, struct str *out)
{
    str_printf(out, "Train Epoch: %lld \tLoss: %.6f\n", (long long)score->epoch,
               plain(score->loss_sum / score->samples));
}

void console_test_line(const struct trainer_score *score, struct str *out)
{
    str_printf(out, "Test set: Average loss: %.4f, Accuracy: %.0f/%.0f (%.2f%%)\n\n",
               plain(score->loss_sum / score->samples), score->correct, score->samples,
               100 * score->correct / score->samples);
}

void console_step_line(const struct run_numbers *step, double samples_per_s, struct str *out)
{
    str_printf(out, "Epoch %lld | Step %lld/%lld | Loss: %.4f | lr: %.6g | %.0f samples/s\n",
               (long long)step->epochs_done + 1, (long long)step->step, (long long)step->steps,
               plain(step->loss), step->lr, samples_per_s);
}

void console_memory_line(const struct memory_use *use, struct str *out)
{
    const double mib = 1024 * 1024;
    str_printf(out,
               "Peak memory per rank: %.2f MiB, per-category peaks, not simultaneous (%lld bytes:",
               (double)use->peak_total_bytes / mib, (long long)use->peak_total_bytes);
    for (int kind = 0; kind < MEMORY_KINDS; kind++)
        str_printf(out, " %s %lld", memory_kind_name((enum memory_kind)kind),
                   (long long)use->peak_bytes[kind]);
    str_add(out, ")\n");
}

void console_epoch_memory_lines(const struct trainer_score *score, struct str *out)
{
    const int64_t mib = 1024 * 1024;
    str_printf(out,
               "Memory before entering the train : %lld\n"
               "Memory consumed at the end of the train (end-begin): %lld\n"
               "Peak Memory consumed during the train (max-begin): %lld\n"
               "Total Peak Memory consumed during the train (max): %lld\n",
               (long long)(score->memory_begin_bytes / mib),
               (long long)((score->memory_end_bytes - score->memory_begin_bytes) / mib),
               (long long)((score->memory_peak_bytes - score->memory_begin_bytes) / mib),
               (long long)(score->memory_peak_bytes / mib));
}

void console_throughput_line(const struct throughput *t, int world_size, struct str *out)
{
    if (t->steps > 0)
        str_printf(out, "Throughput: %.1f samples/s (%d ranks, %lld steps)\n", throughput_per_s(t),
                   world_size, (long long)t->steps);
    else
        str_printf(out, "Throughput: not known, the first %d steps do not count\n",
                   CONSOLE_WARM_UP_STEPS);
}

void console_time_line(const struct time_account *a, struct str *out)
{
    bool told[TIME_KINDS] = {false};
    double all_us = (double)(a->until_us - a->begin_us);
    const char *before = ": ";
    str_printf(out, "Time: %.1f s", all_us / 1e6);
    for (int n = 0; n < TIME_KINDS; n++) {
        int most = -1;
        for (int k = 0; k < TIME_KINDS; k++)
            if (!told[k] && (most < 0 || a->us[k] > a->us[most]))
                most = k;
        told[most] = true;
        if ((double)a->us[most] * 2000 <= all_us) /* 0.0 % */
            break;
        str_printf(out, "%s%s %.1f %%", before, time_kind_name((enum time_kind)most),
                   100 * (double)a->us[most] / all_us);
        before = ", ";
    }
    str_add(out, "\n");
}
