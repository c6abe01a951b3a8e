/* What a board is told, and how its answers are read: for the tests of operator/board. */
#ifndef SHOAL_TESTS_OPERATOR_BOARD_BOARD_FIXTURE_H
#define SHOAL_TESTS_OPERATOR_BOARD_BOARD_FIXTURE_H

#include "operator/board/board.h"

struct json;

#define BOARD_NOW_MS INT64_C(1767225600000) /* 2026-01-01T00:00:00Z */

/* What both clocks tell. */
extern int64_t board_now_ms;
extern const struct clocks board_clocks;

struct board_world {
    char name[32], uid[32];
    struct condition condition;
    struct quantity gpus;
    struct container container;
    struct job job;
    struct job_status status;
    struct pod pods[3];
    struct snapshot snapshot;
};

/* A job "ns/NAME" that runs. */
void board_make_job(struct board_world *w, const char *name);
/* Its agent has done so many of 100 steps. */
void board_train(struct board_world *w, int64_t step, double loss);
void board_tell_with(struct board *b, struct board_world *w, const struct action *actions,
                     size_t count);
void board_tell(struct board *b, struct board_world *w);

/* What is answered at the path; NULL: nothing. The caller owns it. */
struct json *board_read(struct board *b, const char *path);
/* The member at "a.b.0". */
const struct json *board_at(const struct json *value, const char *path);
/* ... is this as JSON. */
void board_expect(const struct json *value, const char *path, const char *text);

struct board_heard {
    struct json *list[64];
    int count;
};

/* For board_send. */
void board_keep(void *context, const char *text, size_t bytes);
void board_heard_forget(struct board_heard *m);
#endif
