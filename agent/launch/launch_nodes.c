#include "agent/launch/launch_internal.h"
#include "base/clock.h"
#include "base/contract.h"
#include "base/listen.h"
#include "base/log.h"
#include "base/str.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void choose_name(char *out, size_t out_bytes)
{
    const char *pod = getenv("POD_NAME"), *host = getenv("HOSTNAME");
    snprintf(out, out_bytes, "%s", pod && pod[0] ? pod : host ? host : "");
    if (!out[0])
        gethostname(out, out_bytes - 1);
}

static void warn_of_no_slots(const struct round *round)
{
    static const char what[] = "an elastic run without parallel.reduction_slots: a step has as "
                               "many samples as there are ranks";
    const struct topology *t = &round->place;
    if (round->options->slots_are_refused)
        log_warning("%s, and the weights depend on it; memory.cpu_offload has no slots", what);
    else
        log_warning("%s; %d slots keep its samples, and the bits of the weights", what,
                    t->nodes * t->local_size);
}

/* A rank without a slot would have nothing to do. */
static int check_slots(const struct round *round, struct error *err)
{
    const struct topology *t = &round->place;
    int64_t slots = round->options->reduction_slots;
    if (slots == 0 && t->node_rank == 0)
        warn_of_no_slots(round);
    if (slots == 0 || slots / t->local_size >= t->min_nodes)
        return 0;
    error_set(err, ERR_CONFIG,
              "parallel.reduction_slots: %lld slots for at least %d nodes of %d ranks: give at "
              "least %d",
              (long long)slots, t->min_nodes, t->local_size, t->min_nodes * t->local_size);
    return round->options->slots_are == SLOTS_SAVED ? error_wrap(err, "the checkpoint") : -1;
}

int launch_nodes_open(struct round *round, struct error *err)
{
    const struct topology *t = &round->place;
    struct launch_nodes *nodes = &round->nodes;
    if (!topology_is_elastic(t))
        return 0;
    if (check_slots(round, err))
        return -1;
    choose_name(nodes->name, sizeof nodes->name);
    const struct meeting_options options = {
        .host = t->host,
        .port = t->port,
        .node = t->node_rank,
        .local_size = t->local_size,
        .roster = {.min = t->min_nodes,
                   .max = t->max_nodes,
                   .expected = t->nodes,
                   .patience_ms = (int64_t)(round->options->shrink_after_s * 1000)},
        .slots = (int)round->options->reduction_slots,
        .slots_are_default = round->options->slots_are == SLOTS_DEFAULT,
        .name = nodes->name,
        .job_id = t->job_id,
        .secret = t->secret,
        .patience_ms = (int64_t)(round->options->join_timeout_s * 1000),
        .free_port = listen_free_port,
    };
    return meeting_open(&options, &nodes->meeting, err);
}

void launch_nodes_close(struct round *round)
{
    enum meeting_end why = round->stop_signal      ? MEETING_ASKED_TO_END
                           : round->exit_code == 0 ? MEETING_ALL_DONE
                                                   : MEETING_MAY_RETURN;
    meeting_close(round->nodes.meeting, why);
    round->nodes.meeting = NULL;
}

/* ---- what the meeting says ---- */

/* At a step's end the ranks save and end by themselves; of a broken round they may not be able
 * to. */
static void end_ranks(struct round *round, bool is_broken)
{
    fprintf(stderr, "shoal-agent: %s: all local ranks end%s, to start again\n",
            round->nodes.event.news, is_broken ? "" : " with a step");
    launch_signal_all(round, SIGTERM);
    if (is_broken && round->deadline_ms == 0)
        round->deadline_ms = clock_monotonic_ms() + LAUNCH_GRACE_S * 1000;
}

void launch_nodes_handle(struct round *round)
{
    struct launch_nodes *nodes = &round->nodes;
    if (!nodes->meeting)
        return;
    meeting_handle(nodes->meeting, &nodes->event);
    enum meeting_what what = nodes->event.what;
    if ((what == MEETING_ROUND_ENDS || what == MEETING_ROUND_BROKEN) && round->alive > 0)
        end_ranks(round, what == MEETING_ROUND_BROKEN);
}

/* ---- before a round ---- */

static void take_place(struct round *round)
{
    const struct meeting_event *event = &round->nodes.event;
    struct topology *t = &round->place;
    t->node_rank = event->rank;
    t->nodes = event->nodes;
    t->rank = t->node_rank * t->local_size;
    t->world_size = t->nodes * t->local_size;
    t->port = event->port;
    round->nodes.slots = event->slots;
}

/* Node 0's launcher that was started anew knows nothing of who came and went before. */
static void describe_nodes(const struct meeting_event *event, int nodes_before, struct str *out)
{
    if (event->news[0])
        str_add(out, event->news);
    else if (event->nodes == nodes_before)
        str_add(out, "the same nodes");
    else
        str_printf(out, "%d node%s instead of %d", event->nodes, event->nodes == 1 ? "" : "s",
                   nodes_before);
}

/* For a round after the first. Who has none left was dismissed before. */
static void spend_restart(struct round *round, int nodes_before)
{
    const struct meeting_event *event = &round->nodes.event;
    const struct launch_options *options = round->options;
    auto_str struct str loss, nodes;
    str_init(&loss, 4096);
    str_init(&nodes, sizeof event->news);
    if (event->has_changed) {
        describe_nodes(event, nodes_before, &nodes);
        fprintf(stderr, "shoal-agent: goes on with %s; %d ranks\n", str_text(&nodes),
                round->place.world_size);
        return;
    }
    restart_budget_spend(&round->budget, false);
    if (rank_exit_severity(&round->cause) == CONSEQUENCE)
        rank_exit_describe_loss(&round->cause, &loss);
    fprintf(stderr, "shoal-agent: %s%sall local ranks start again, %d of %d times\n",
            str_text(&loss), loss.length ? ": " : "", round->budget.spent, options->max_restarts);
}

/* Says so once, as soon as that is not for a moment only. */
static void tell_wait(struct round *round, int64_t since_ms)
{
    enum { MOMENT_MS = 2000 };
    const char *text = meeting_waits_for(round->nodes.meeting);
    if (round->nodes.has_told || !text[0] || clock_monotonic_ms() - since_ms < MOMENT_MS)
        return;
    round->nodes.has_told = true;
    fprintf(stderr, "shoal-agent: waits for the other nodes: %s\n", text);
}

static bool is_over(const struct round *round)
{
    enum meeting_what what = round->nodes.event.what;
    return round->stop_signal || what == MEETING_ROUND_BEGINS || what == MEETING_RUN_DONE ||
           what == MEETING_DISMISSED || what == MEETING_FAILED;
}

/* Whether the last round ended by a failure of this node's own, whose exit code is to be the
 * launcher's. What only followed another's is told by that one. */
static bool has_own_failure(const struct round *round)
{
    return round->exit_code != 0 && rank_exit_severity(&round->cause) != CONSEQUENCE;
}

/* No round follows for this node. */
static void end_with_meeting(struct round *round)
{
    const struct meeting_event *event = &round->nodes.event;
    bool is_own = has_own_failure(round);
    if (event->what == MEETING_FAILED) {
        fprintf(stderr, "shoal-agent: %s\n", event->err.msg);
        if (!is_own)
            round->exit_code = event->err.code == ERR_CONFIG ? EXIT_CONFIG : EXIT_RETRYABLE;
    } else if (event->what == MEETING_RUN_DONE && !is_own) {
        fprintf(stderr, "shoal-agent: the run has come to its end without this node\n");
        round->exit_code = EXIT_DONE;
    } else if (event->what == MEETING_DISMISSED && strcmp(event->news, ROSTER_NO_RESTART) == 0) {
        launch_print_no_restart(round);
    } else {
        const char *why = event->what == MEETING_RUN_DONE
                              ? "the run has come to its end, but a rank of this node failed"
                              : event->news;
        fprintf(stderr, "shoal-agent: %s (restarts: %d of %d): ends with exit code %d\n", why,
                round->budget.spent, round->options->max_restarts, round->exit_code);
    }
}

bool launch_nodes_gather(struct round *round, int signals)
{
    struct launch_nodes *nodes = &round->nodes;
    int64_t since_ms = clock_monotonic_ms();
    if (!nodes->meeting)
        return true;
    nodes->event.what = MEETING_NOTHING;
    nodes->has_told = false;
    const struct meeting_report last = {.restarts_left =
                                            round->options->max_restarts - round->budget.spent,
                                        .have_met = round->have_met};
    meeting_ready(nodes->meeting, round->attempt > 0 ? &last : NULL);
    while (!is_over(round)) {
        launch_wait_event(round, signals, INT64_MAX);
        tell_wait(round, since_ms);
    }
    if (round->stop_signal)
        launch_end_as_asked(round);
    else if (nodes->event.what != MEETING_ROUND_BEGINS)
        end_with_meeting(round);
    if (round->stop_signal || nodes->event.what != MEETING_ROUND_BEGINS)
        return false;
    int nodes_before = round->place.nodes;
    take_place(round);
    if (round->attempt > 0)
        spend_restart(round, nodes_before);
    return true;
}
