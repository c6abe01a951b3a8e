/* Private to the shard engine: shard.c opens and closes it, shard_window.c its windows,
 * shard_values.c fills and reads slices, shard_gather.c unshards and reshards units, shard_fp8.c
 * what of that is fp8, shard_reduce.c handles gradients, shard_slots.c those with reduction slots.
 *
 * The device allocator reuses freed memory in the order of the compute stream (device_alloc). So a
 * communication stream waits for compute before it touches newly allocated memory. Compute waits
 * for the communication stream before memory that this stream used is freed. */
#ifndef SHOAL_AGENT_SHARD_SHARD_INTERNAL_H
#define SHOAL_AGENT_SHARD_SHARD_INTERNAL_H

#include "agent/shard/shard.h"
#include "agent/shard/shard_payload.h"
#include "agent/shard/window_plan.h"
#include "kernels/ops.h"

struct unit {
    struct shard_unit view;
    const struct layout_unit *layout;

    void *compute_shard; /* on the shard device: the slice in param_dtype; view.value if that is its
                            own */
    struct shard_payload payload;
    void *unsharded;        /* [flat_count] of param_dtype, or codes, gathered; NULL: resharded */
    bool awaited;           /* compute has queued its wait for `gathered` */
    struct event *gathered; /* on the stream of gathers */
    /* In fp8, on compute's device, both written by the first gather after an update: */
    struct fp8_scale *scales; /* of the payload's matrices */
    bf16 *rest;
    bool has_rest; /* they are those of the slices */

    bool in_backward;          /* this pass's backward has reached it */
    float *unsharded_gradient; /* [flat_count], from before_backward until its reduction ended; else
                                  NULL */
    bool pending;          /* unsharded_gradient holds micro-batches that no reduction has taken */
    bool accumulated;      /* view.gradient holds micro-batches of this step */
    bool is_mean;          /* with slots: it holds the step's mean */
    struct event *reduced; /* on the stream of reduces */
    bool updating;         /* nobody has waited for `updated` yet */
    bool gathers_update;   /* its gather has, and nobody for the gather */
    struct event *updated; /* with update_beside, on the stream of updates */
};

/* The symmetric window of one communicator. A place in it is taken when a unit is gathered, or
 * bound to its gradients, and given back when it is resharded, or reduced: in the order of the
 * passes, which is the same on every rank, as that of the collectives is. So the ranks find the
 * same places without telling each other. Nothing that is one rank's own matter may take one. */
struct shard_window {
    char *memory; /* NULL: there is none */
    struct window_plan plan;
    struct window_place *places; /* of each unit */
    bool taken[WINDOW_TURNS];
};

/* Units in the order in which a pass met them. */
struct unit_order {
    int *units;
    int count;
};

struct shard {
    struct shard_config config;
    struct arena *arena; /* owns all of the host memory below */
    struct shard_layout layout;
    struct param_range *ranges; /* of this rank */
    int range_count;
    int group_rank, group_size;

    struct stream *compute;  /* not owned */
    struct stream *transfer; /* gathers, and the copies they need */
    struct stream
        *reduces; /* what gradients go through; transfer itself unless reducer is concurrent */
    struct stream *update;      /* compute itself if the slices live on its device, unless beside */
    bool update_beside;         /* the configuration's, without offload */
    bool offload;               /* the shard device is another device */
    bool is_first_replica;      /* of the first shard group */
    bool in_place;              /* S is 1 and no offload: the slices are the gathered units */
    bool gradient_in_place;     /* and their gradients: where backward writes them, sums are made */
    bool reshard_after_forward; /* FULL_SHARD, HYBRID_SHARD */
    struct comm *group;         /* the shard group; NULL if S is 1 */
    /* For reductions the same ranks, or with slots all ranks: group or the world itself, unless
     * that is concurrent. */
    struct comm *reducer;
    struct comm *replicas; /* ranks with the same slices, one of each shard group; NULL if S is W */
    struct shard_window gathers, reductions; /* of `group` and of `reducer` */
    char no_windows[160];                    /* why one of them has none; "": no reason */
    struct comm *opened[3]; /* those of the three that the engine has opened: owned */
    int opened_count;
    struct event *reached; /* of shard_order(): recorded and waited for at once */
    struct error failure;  /* of a stream, to be passed on to a stream that waits for it */

    struct unit *units;
    int unit_count;
    struct unit_order entered, left;  /* by this pass's forward */
    struct unit_order entered_before; /* by the last pass's */
    struct unit *reducing; /* the one whose unsharded gradient is still in use, or NULL */
    /* With reduction slots: */
    struct slots slots; /* count 0: without */
    int width;          /* ranks whose gradients count in this round */
    bool turn_reduces;
    int part;       /* of each unit's W parts: that this rank adds up */
    int *places;    /* of each rank: its part */
    void *received; /* [W][slots_piece() of the largest part] in reduce_dtype: of this rank's part
                       of each slot's gradient; NULL: one rank */
    double *sum;    /* [SHARD_MAX_SUMS] on compute's device, for shard_sum(); NULL if the slices are
                       there, too */
    void *packed;   /* [largest flat_count] in reduce_dtype, on compute's device; NULL: fp32 */
    float *unpacked; /* [largest shard_count] what came back, in fp32, if it goes to the shard
                        device; else NULL */
    bf16 *messages;  /* of fp8's ranks, [S][largest message_count]; NULL: no unit is fp8 */
    bf16 *staged;    /* of fp8 with offload: the largest such slice; else NULL */
    float *arrival;  /* on the shard device, for gradients that are added there; NULL if none are */
    bool last_micro_batch;
};

/* Of compute's device. */
static inline const struct ops *compute_ops(const struct shard *shard)
{
    return device_ops(stream_device(shard->compute));
}

/* Lets compute wait for the event of another stream. */
void shard_wait(struct shard *shard, enum shard_wait what, struct event *event);
/* Lets `later` wait for everything that is queued on `earlier` now. */
void shard_order(struct shard *shard, struct stream *later, struct stream *earlier);

/* ---- shard_window.c ---- */

/* Opens what the configuration asks for. Collective in the shard group. Errors:
 * comm_open_window()'s. */
int shard_open_windows(struct shard *shard, struct error *err);
/* The unit's slice; NULL: it lies outside. */
void *shard_window_slice(const struct shard_window *window, const struct layout_unit *unit);
/* Takes a place for the whole unit; NULL: it lies outside. Given back by a pointer there; false: it
 * is none. */
void *shard_window_take(struct shard_window *window, const struct layout_unit *unit);
bool shard_window_give_back(struct shard_window *window, const void *memory);
/* The unit's reduction runs there. */
bool shard_window_has(const struct shard_window *window, const struct layout_unit *unit);
bool shard_window_holds(const struct shard_window *window, const void *memory);

/* ---- shard_gather.c ---- */

/* What is queued next on the communicator moves the unit's tensors; NULL: no unit's. comm NULL:
 * there is none. */
void shard_name_unit(struct comm *comm, const struct unit *u);
/* Queues a gather of `count` elements of each rank's slice into `all`, on compute's device. */
void shard_gather_slices(struct shard *shard, enum dtype t, void *all, const void *slice,
                         int64_t count);
/* Starts to gather the unit unless it is unsharded. Errors: ERR_MEMORY naming the unit. */
int shard_gather(struct shard *shard, struct unit *u, struct error *err);
/* Lets compute wait for the unit's gather: later work on compute may use it. */
void shard_await(struct shard *shard, struct unit *u);
/* Frees the unsharded unit. Work that is on compute already may still use it. */
void shard_reshard(struct shard *shard, struct unit *u);

/* ---- shard_fp8.c ---- */

/* The unit's gathers carry codes, which lie in no window. */
bool shard_gathers_fp8(const struct shard *shard, const struct layout_unit *unit);
/* Decides what the unit's gathers carry; allocates what stays between them, if that is fp8. Errors:
 * ERR_MEMORY naming the unit. */
int shard_open_fp8(struct shard *shard, struct unit *u, struct error *err);
void shard_close_fp8(struct shard *shard, struct unit *u);
/* Allocates what all such units share. Errors: ERR_MEMORY. */
int shard_open_messages(struct shard *shard, struct error *err);
/* Queues the gather on the transfer stream: of a unit whose payload is fp8. */
void shard_gather_fp8(struct shard *shard, struct unit *u);
/* Binds the unsharded unit's parameters. */
void shard_bind_fp8(const struct unit *u);

/* ---- shard_reduce.c ---- */

/* Allocates the unit's unsharded gradient and binds its parameters to it. Errors: ERR_MEMORY naming
 * the unit. */
int shard_bind_gradients(struct shard *shard, struct unit *u, struct error *err);
/* After the unit's backward: zeroes the gradients of parameters that no op has used. */
void shard_complete_gradients(struct shard *shard, struct unit *u);
/* Starts reducing the unsharded gradient into the slice, if one is pending. */
void shard_reduce(struct shard *shard, struct unit *u);
/* All that are pending still: those that the last micro-batch has not used. */
void shard_reduce_pending(struct shard *shard);
/* Frees all unsharded gradients when the engine closes; nothing is queued any more. */
void shard_free_gradients(struct shard *shard);
/* Whether this micro-batch's backward reduces gradients; else they stay unsharded. */
bool shard_reduces_now(const struct shard *shard);

/* ---- shard_slots.c: all of it with reduction slots ---- */

/* How many slots there are and which part of a unit is whose; nothing without slots. */
void shard_open_slots(struct shard *shard, struct comm *world);
/* Elements of this rank's part of the unit that it gets from each rank at once. */
int64_t shard_slots_piece(const struct shard *shard, const struct layout_unit *unit);
/* Adds this rank's part of the round's slots' gradients to its part of view.gradient. unsharded: in
 * reduce_dtype. */
void shard_add_slots(struct shard *shard, struct unit *u, const void *unsharded);
/* Makes a mean of the step's sum, on the whole slice; once. */
void shard_end_slots(struct shard *shard, struct unit *u);
#endif
