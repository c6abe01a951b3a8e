#include "agent/launch/root_cause.h"

#include "base/contract.h"
#include "base/exit_code.h"

#include <signal.h>
#include <sys/wait.h>

/* It told what trying again cannot help. That it was killed on its way out changes nothing. */
static bool would_fail_again(const struct rank_exit *rank)
{
    return rank->words.code != ERR_NONE && exit_code_of(rank->words.code) == EXIT_CONFIG;
}

int rank_exit_code(const struct rank_exit *rank)
{
    return would_fail_again(rank)      ? EXIT_CONFIG
           : rank->is_stuck            ? EXIT_RETRYABLE
           : WIFSIGNALED(rank->status) ? 128 + WTERMSIG(rank->status)
                                       : WEXITSTATUS(rank->status);
}

/* A rank that exits by itself has logged why. A rank that a signal killed could not. A GPU's fault
 * is the rank's own, although its exit code is that of a lost peer. */
enum exit_severity rank_exit_severity(const struct rank_exit *rank)
{
    int code = rank_exit_code(rank);
    if (rank->words.code == ERR_HARDWARE)
        return BAD_HARDWARE;
    bool is_own = rank->is_stuck || rank->words.code == ERR_DEVICE;
    if (code == EXIT_TERMINATED || (code == EXIT_RETRYABLE && !is_own) ||
        (code == 128 + SIGKILL && rank->is_too_slow))
        return CONSEQUENCE;
    bool has_told = rank->is_stuck || would_fail_again(rank);
    return WIFSIGNALED(rank->status) && !has_told ? UNREPORTED : REPORTED;
}

bool rank_exit_would_repeat(const struct rank_exit *rank, bool meets_anew)
{
    const struct last_words *words = &rank->words;
    if (meets_anew && !words->has_met && (words->code == ERR_EXISTS || words->code == ERR_TIMEOUT))
        return false;
    return rank_exit_code(rank) == EXIT_CONFIG || words->code == ERR_DIVERGED ||
           words->code == ERR_HARDWARE || (words->code == ERR_TIMEOUT && !words->has_met);
}

/* When one local rank has ended, the launcher asks the others to. A rank that was asked by nobody
 * else may have stopped for that, and says nothing. */
void stop_signs_add(struct stop_signs *signs, const struct rank_exit *rank)
{
    bool has_stopped = rank_exit_code(rank) == EXIT_TERMINATED && rank->words.code == ERR_CANCELLED;
    signs->by_peer |= has_stopped && !rank->words.was_asked;
    signs->here |= rank->words.was_asked_by_others;
}

bool stop_signs_name_peer(const struct stop_signs *signs, const struct rank_exit *cause)
{
    return signs->by_peer && !signs->here && rank_exit_severity(cause) == CONSEQUENCE;
}

void rank_exit_describe(const struct rank_exit *rank, const char *place, const char *when,
                        struct str *out)
{
    str_printf(out, "rank %d (local rank %d, pid %d) on %s failed at %s: ", rank->rank,
               rank->local_rank, (int)rank->pid, place, when);
    if (rank->is_stuck)
        str_printf(out, "it gave no sign of life, and was killed%s%s",
                   rank->doing[0] ? "; it was in " : "", rank->doing);
    else if (WIFSIGNALED(rank->status))
        str_printf(out, "signal %d", WTERMSIG(rank->status));
    else
        str_printf(out, "exit code %d", WEXITSTATUS(rank->status));
    if (rank->words.code != ERR_NONE)
        str_printf(out, ": %s", rank->words.text);
}

void rank_exit_describe_loss(const struct rank_exit *rank, struct str *out)
{
    str_add(out, rank_exit_code(rank) == EXIT_TERMINATED ? "a peer was asked to stop"
                                                         : "a peer was lost");
    if (rank->words.code != ERR_NONE)
        str_printf(out, " (%s)", rank->words.text);
}
