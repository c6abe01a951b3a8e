#include "agent/launch/launch_internal.h"
#include "agent/launch/thread_stacks.h"
#include "base/clock.h"
#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINES_BYTES = 4 * OUTPUT_TAIL_BYTES };

/* The host, which in a pod has the pod's name; and what the pod's variables say beyond that. */
static void name_place(struct str *out)
{
    char host[256] = "";
    const char *pod = getenv("POD_NAME"), *node = getenv("NODE_NAME");
    gethostname(host, sizeof host - 1);
    str_add(out, host);
    if (pod && pod[0] && strcmp(pod, host) != 0)
        str_printf(out, " (pod %s)", pod);
    if (node && node[0] && strcmp(node, host) != 0)
        str_printf(out, " (node %s)", node);
}

void launch_print_stuck(const struct round *round, int local_rank)
{
    const struct local_rank *rank = &round->ranks[local_rank];
    const struct heartbeat_listener *heartbeat = &rank->heartbeat;
    fprintf(stderr,
            "shoal-agent: rank %d (local rank %d, pid %d) is stuck: it gave no sign of life for %g "
            "s, and is killed%s%s\n",
            rank->exit.rank, local_rank, (int)rank->pid, (double)heartbeat->wait_ms / 1000,
            heartbeat->doing[0] ? "; it was in " : "", heartbeat->doing);
    thread_stacks_show(rank->exit.rank, (int)rank->pid);
}

void launch_print_stopped(const struct round *round, int local_rank)
{
    const struct local_rank *rank = &round->ranks[local_rank];
    fprintf(
        stderr,
        "shoal-agent: rank %d (local rank %d, pid %d) hangs: it has been stopped for %.0f s, and no "
        "other rank of this pod runs; it is killed, so that all ranks start again "
        "(runtime.hang_action=restart)\n",
        rank->exit.rank, local_rank, (int)rank->pid, (double)round->stopped.for_ms / 1000);
    thread_stacks_show(rank->exit.rank, (int)rank->pid);
}

/* Of a rank that could not tell its launcher why it ends: killed, crashed, ended by a library. */
static void describe_last_lines(const struct round *round, struct str *out)
{
    const struct rank_exit *cause = &round->cause;
    if (cause->words.code == ERR_NONE && rank_exit_severity(cause) != CONSEQUENCE)
        output_tail_print(&round->ranks[cause->local_rank].tail, out);
}

static void describe_failure(const struct round *round, struct str *out)
{
    char when[40];
    auto_str struct str place;
    str_init(&place, 1024);
    name_place(&place);
    clock_format_rfc3339(round->cause_ms, when, sizeof when);
    rank_exit_describe(&round->cause, str_text(&place), when, out);
}

void launch_print_failure(const struct round *round)
{
    auto_str struct str line, lines;
    str_init(&line, 4096);
    str_init(&lines, LINES_BYTES);
    describe_failure(round, &line);
    fprintf(stderr, "shoal-agent: %s\n", str_text(&line));
    describe_last_lines(round, &lines);
    if (lines.length > 0)
        fprintf(stderr, "shoal-agent: the last lines of rank %d:\n%s", round->cause.rank,
                str_text(&lines));
}

/* Where hardware is bad, the rank itself has put that there, which the operator reads. */
void launch_tell_kubelet(const struct round *round)
{
    const struct rank_exit *cause = &round->cause;
    bool is_here = round->exit_code != 0 && cause->pid != 0 && !round->stop_signal &&
                   rank_exit_severity(cause) != CONSEQUENCE &&
                   rank_exit_severity(cause) != BAD_HARDWARE;
    if (!round->options->explain_end || !is_here)
        return;
    auto_str struct str line, lines;
    str_init(&line, 4096);
    str_init(&lines, LINES_BYTES);
    describe_failure(round, &line);
    describe_last_lines(round, &lines);
    round->options->explain_end(str_text(&line), str_text(&lines));
}

void launch_print_no_restart(const struct round *round)
{
    auto_str struct str ends;
    str_init(&ends, 2 * RANK_NOTE_BYTES);
    if (rank_exit_severity(&round->cause) != CONSEQUENCE)
        repeated_end_describe(&round->ends, &ends);
    if (ends.length > 0)
        fprintf(stderr, "shoal-agent: %s\n", str_text(&ends));
    fprintf(stderr, "shoal-agent: no restart is left of %d: ends with exit code %d\n",
            round->options->max_restarts, round->exit_code);
}

void launch_print_end(const struct round *round, bool restarts)
{
    const struct launch_options *options = round->options;
    enum exit_severity severity = rank_exit_severity(&round->cause);
    if (round->exit_code == 0 || round->fails_asked)
        return;
    auto_str struct str loss;
    str_init(&loss, 4096);
    if (severity == CONSEQUENCE && restarts)
        rank_exit_describe_loss(&round->cause, &loss);
    else if (options->is_verbose || severity == UNREPORTED)
        launch_print_failure(round);
    if (restarts && launch_is_free(round))
        fprintf(stderr, "shoal-agent: %s: all local ranks start again, at no cost\n",
                str_text(&loss));
    else if (restarts)
        fprintf(stderr, "shoal-agent: %s%sall local ranks start again, %d of %d times\n",
                str_text(&loss), loss.length ? ": " : "", round->budget.spent + 1,
                options->max_restarts);
    else if (options->max_restarts > 0 && round->budget.spent == options->max_restarts &&
             !rank_exit_would_repeat(&round->cause, false))
        launch_print_no_restart(round);
}
