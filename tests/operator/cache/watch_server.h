/* An API server in memory with three collections (jobs, pods, services) that change at random:
 * lists in pages, streams of events, a past that is compacted, and faults. For watches and the
 * cache behind them. */
#ifndef SHOAL_TESTS_OPERATOR_CACHE_WATCH_SERVER_H
#define SHOAL_TESTS_OPERATOR_CACHE_WATCH_SERVER_H

#include "base/error.h"
#include "operator/cache/cache.h"

struct json;

#define SERVER_JOBS     3
#define SERVER_REPLICAS 4 /* the master, then workers */
#define SERVER_SLOTS    (SERVER_JOBS * SERVER_REPLICAS)
#define SERVER_KINDS    3
#define SERVER_MAX_LOG  400 /* changes */

extern const char *const server_job_names[SERVER_JOBS];

/* What bears a name at some time. Slots of jobs are job numbers, the others job * REPLICAS + i. */
struct server_object {
    bool present;
    int version; /* of its last change, deletion included */
    int uid;
    int variant; /* number of workers, or index of the phase */
    int owner;   /* job number of the controller; -1: none */
    int label;   /* the same of the label */
};

struct server_record {
    int slot;
    struct server_object object; /* after the change */
};

struct server_collection {
    struct server_object slots[SERVER_SLOTS];
    int slot_count;
    struct server_record log[SERVER_MAX_LOG];
    int log_count;
};

struct watch_server {
    uint64_t random;
    bool calm; /* no faults */
    struct server_collection of[SERVER_KINDS];
    int version;
    int compacted; /* what was before this version is forgotten */
};

struct watch_server watch_server_make(uint64_t seed);

/* From [0, bound). */
int watch_server_below(struct watch_server *server, int bound);
bool watch_server_chance(struct watch_server *server, int percent);

/* Some object is made, changed or deleted. */
void watch_server_change(struct watch_server *server);

/* A page, by the path's limit and continue (the caller frees it), or NULL with err set. */
struct json *watch_server_list(struct watch_server *server, enum cache_kind kind, const char *path,
                               struct error *err);

/* The resourceVersion in a watch's path. */
int watch_server_position(const char *path);
/* The next line of a stream that was sent all up to *position, which it moves on; NULL: there is
 * nothing to say. The caller frees it. */
char *watch_server_line(struct watch_server *server, enum cache_kind kind, int *position);
char *watch_server_bookmark(const struct watch_server *server, int *position);
/* Whether such a stream was sent everything. */
bool watch_server_sent_all(const struct watch_server *server, enum cache_kind kind, int position);

/* "JOB-TYPE-INDEX" of a slot, to `out` of `size` bytes; returns out. */
const char *watch_server_child_name(int slot, char *out, size_t size);

/* What a job's pass is to see: "none", or its version and its children, by slot, as " NAME uUID
 * PHASE;" (pods) and " NAME uUID;" (services). Those are its own that it controls, or that bear its
 * label and have no controller, or that bear a name it wants. The caller frees it. */
char *watch_server_state(const struct watch_server *server, int job);
size_t watch_server_count(const struct watch_server *server, enum cache_kind kind);
#endif
