/* What the parts of the shard engine share, and nobody else: shard.c opens and closes it,
 * shard_values.c knows how slices are filled and read, shard_gather.c decides when parameters are
 * in memory, shard_reduce.c what happens to gradients.
 *
 * Device memory is safe to free once the compute stream has passed its last use (device_alloc gives
 * it out again in the order of that stream). So: before one of the two communication streams
 * touches fresh memory, it waits for compute; before memory that it used is freed, compute waits
 * for it. */
#ifndef SHOAL_AGENT_SHARD_ENGINE_H
#define SHOAL_AGENT_SHARD_ENGINE_H

#include "agent/shard/shard.h"

#ifdef __cplusplus
extern "C" {
#endif

struct unit {
    struct shard_unit view;
    const struct layout_unit *layout;

    void *compute_shard; /* on the shard device: the slice in param_dtype; view.value if that is its
                            own */
    void *unsharded;     /* [flat_count] of param_dtype, gathered values; NULL when dropped */
    bool awaited;        /* compute waits for `gathered` already */
    struct event *gathered; /* on the stream of gathers */

    bool in_backward; /* this pass's backward has reached it */
    /* [flat_count], from before_backward until it is reduced; else NULL */
    float *unsharded_gradient;
    bool pending;          /* unsharded_gradient holds micro-batches that are not reduced yet */
    bool accumulated;      /* view.gradient holds micro-batches of this step */
    struct event *reduced; /* on the stream of reduces */
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

    struct stream *compute;     /* not owned */
    struct stream *transfer;    /* gathers, and the copies they need */
    struct stream *reduces;     /* what gradients go through; transfer itself if reducer is group */
    struct stream *update;      /* compute itself if the slices live on its device */
    bool offload;               /* the shard device is another device */
    bool is_first_replica;      /* of the first shard group */
    bool in_place;              /* S is 1 and no offload: the slices are the gathered units */
    bool reshard_after_forward; /* FULL_SHARD, HYBRID_SHARD */
    struct comm *group;         /* ranks that share a unit; NULL if S is 1 */
    struct comm *reducer;   /* the same ranks, for reduces: group itself unless it is concurrent */
    struct comm *replicas;  /* ranks that have the same slices; NULL if S is W */
    struct comm *opened[3]; /* those of the three that are not the world: owned */
    int opened_count;
    struct event *reached; /* a point of another stream, recorded and waited for at once */
    struct error failure;  /* of a stream whose end another one has to have, too */

    struct unit *units;
    int unit_count;
    struct unit_order entered, left;  /* by this pass's forward */
    struct unit_order entered_before; /* by the last pass's */
    struct unit *reducing; /* the one whose unsharded gradient is still in use, or NULL */
    double *sum;     /* on compute's device, for shard_sum(); NULL if the slices are there, too */
    void *packed;    /* [largest flat_count] in reduce_dtype, on compute's device; NULL: fp32 */
    float *unpacked; /* [largest shard_count] what came back, in fp32, if it goes to the shard
                        device; else NULL */
    float *arrival;  /* on the shard device, for gradients that are added there; NULL if none are */
    bool last_micro_batch;
};

/* From now on compute waits for the event, which is of a communication stream. */
void shard_wait(struct shard *shard, struct event *event);
/* From now on `later` waits for all that `earlier` has been given. */
void shard_order(struct shard *shard, struct stream *later, struct stream *earlier);

/* ---- shard_gather.c ---- */

/* Queues a gather of `count` elements of each rank's slice into `all`, on compute's device. */
void shard_gather_slices(struct shard *shard, enum dtype t, void *all, const void *slice,
                         int64_t count);
/* Starts gathering the unit unless it is there. Errors: ERR_MEMORY naming the unit. */
int shard_gather(struct shard *shard, struct unit *u, struct error *err);
/* What compute is given from now on may use the gathered unit. */
void shard_await(struct shard *shard, struct unit *u);
/* Frees the gathered unit; what compute was given before may still use it. */
void shard_reshard(struct shard *shard, struct unit *u);

/* ---- shard_reduce.c ---- */

/* Gives the unit's parameters gradients to write to. Errors: ERR_MEMORY naming the unit. */
int shard_bind_gradients(struct shard *shard, struct unit *u, struct error *err);
/* After the unit's backward: the gradients of parameters that no op used are 0. */
void shard_complete_gradients(struct shard *shard, struct unit *u);
/* Starts reducing the unsharded gradient into the slice, if one is pending. */
void shard_reduce(struct shard *shard, struct unit *u);
/* Frees all unsharded gradients at the end; nothing is queued any more. */
void shard_free_gradients(struct shard *shard);
/* Whether the backward of this micro-batch reduces, or keeps unsharded gradients for
 * the next one. */
bool shard_reduces_now(const struct shard *shard);

#ifdef __cplusplus
}
#endif
#endif
