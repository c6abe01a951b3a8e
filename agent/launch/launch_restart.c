#include "agent/launch/launch_internal.h"
#include "base/clock.h"

#include <stdio.h>

static bool should_restart(const struct round *round)
{
    const struct launch_options *options = round->options;
    bool is_free = launch_is_free(round) && options->max_restarts > 0;
    bool meets_anew = round->nodes.meeting != NULL;
    return round->exit_code != 0 && !round->fails_asked &&
           (meets_anew || is_free || round->budget.spent < options->max_restarts) &&
           !rank_exit_would_repeat(&round->cause, meets_anew);
}

/* Restarts that were for peers whose launchers were lost, as it shows now: no failures of ranks. */
static void take_back_restarts(struct round *round)
{
    int given_back = restart_budget_settle(&round->budget, round->have_met, round->new_launchers);
    if (given_back == 0 || round->exit_code == 0)
        return;
    if (given_back == 1)
        fprintf(stderr, "shoal-agent: a launcher was lost and is back: the restart for it is not "
                        "counted\n");
    else
        fprintf(stderr,
                "shoal-agent: %d launchers were lost and are back: the restarts for them are not "
                "counted\n",
                given_back);
}

bool launch_is_free(const struct round *round)
{
    return !round->nodes.meeting && stop_signs_name_peer(&round->stop_signs, &round->cause);
}

void launch_end_as_asked(struct round *round)
{
    bool would_go_on = !round->nodes.meeting || round->budget.spent < round->options->max_restarts;
    if (round->exit_code == 0 || would_go_on)
        round->exit_code = 128 + round->stop_signal;
}

/* Before ranks start again: waits restart_delay_s. Whether to go on then: a signal may ask for the
 * end meanwhile, or has done so since the failure. */
static bool pause_before_restart(struct round *round, int signals)
{
    int64_t until_ms = clock_monotonic_ms() + (int64_t)(round->options->restart_delay_s * 1000);
    while (!round->stop_signal && clock_monotonic_ms() < until_ms)
        launch_wait_event(round, signals, until_ms);
    if (round->stop_signal)
        launch_end_as_asked(round);
    return !round->stop_signal;
}

/* Whether it spends a restart is known when the others are there. */
static bool go_on_with_others(struct round *round, int signals)
{
    if (rank_exit_severity(&round->cause) != CONSEQUENCE)
        launch_print_failure(round);
    round->attempt++;
    return pause_before_restart(round, signals) && launch_nodes_gather(round, signals);
}

bool launch_begin_restart(struct round *round, int signals)
{
    take_back_restarts(round);
    bool restarts = should_restart(round), spends = restarts && !launch_is_free(round);
    if (round->nodes.meeting && restarts)
        return go_on_with_others(round, signals);
    launch_print_end(round, restarts && !round->stop_signal);
    round->attempt += restarts;
    if (spends)
        restart_budget_spend(&round->budget, rank_exit_severity(&round->cause) == CONSEQUENCE);
    return restarts && pause_before_restart(round, signals);
}
