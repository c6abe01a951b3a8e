/* Progress reports of the training inside the pods: a Unix datagram socket that takes one JSON
 * object a datagram, as base/contract.h says. Programs other than the agent send none. */
#ifndef SHOAL_CLI_INBOX_H
#define SHOAL_CLI_INBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/error.h"
#include "cli/rank_list.h"
#include "operator/job/training.h"

struct json;

enum { PROGRESS_URL_BYTES = 128 };

/* The latest report. A number is negative if it was not reported. */
struct progress {
    bool known; /* there was a report of a step */
    int64_t epoch, epochs, step, steps;
    double loss, samples_per_s, seconds_left;
    bool has_loss;                /* a loss may be negative */
    char url[PROGRESS_URL_BYTES]; /* where the run is served; "": not known */
};

/* Reads a report; false, and nothing written, if the text is none. */
bool inbox_parse(const char *text, size_t bytes, struct progress *ret_progress);

/* The folder's name begins so, and in it is the socket. */
#define INBOX_FOLDER_PREFIX "shoal-"
#define INBOX_SOCKET        "progress"

/* `shoal top --local` and `shoal get --local` ask: an object with a token of its own. The answer
 * has the token, the job and more of it (run_answer.h). It goes back to where it was asked. */
#define INBOX_ASK    "ask"
#define INBOX_ANSWER "job"
#define INBOX_PODS   "pods"
enum { INBOX_TOKEN_BYTES = 17, INBOX_ANSWER_MAX_BYTES = 128 * 1024 };

struct inbox {
    int fd;           /* never blocks */
    char folder[108]; /* ours */
    char path[108];   /* FOLDER/progress */
    /* who asks, since inbox_read; "": nobody */
    char token[INBOX_TOKEN_BYTES];
    struct sockaddr_un asker;
    socklen_t asker_bytes;
};

/* Makes the socket in a new folder below $XDG_RUNTIME_DIR, $TMPDIR or /tmp. */
int inbox_open(struct inbox *inbox, struct error *err);
/* Where it has its folder if XDG_RUNTIME_DIR cannot: TMPDIR, else "/tmp". */
const char *inbox_temporary(void);
void inbox_close(struct inbox *inbox); /* removes both; the folder has nothing else any more */

/* The same of a report of the ranks. */
bool inbox_parse_ranks(const char *text, size_t bytes, struct rank_list *ret_ranks);

/* What was reported last, of each kind. */
struct reports {
    struct progress progress;
    struct training training; /* what the run tells operators */
    struct rank_list ranks;
};

/* Takes what has come in, without waiting. Returns whether anything of it changed. */
bool inbox_read(struct inbox *inbox, struct reports *reports);

/* Tells whoever asked last, without waiting. Takes the answer, an object. Its replicas are left out
 * where all of it is too long for an answer. */
void inbox_answer(struct inbox *inbox, struct json *answer);
#endif
