/* How long things take on a GPU, before one is paid for: a roofline with the efficiencies that
 * others have published. A device is a row of a table. Pure: sizes in, seconds out; knows no
 * configuration, model or device that is present.
 *
 * Nothing here was measured by us. Each constant has its source in time_model.c, marked as
 * [published], [fitted] (to what) or [guess]. time_step.h puts a step together from these parts. */
#ifndef SHOAL_AGENT_PLAN_TIME_MODEL_H
#define SHOAL_AGENT_PLAN_TIME_MODEL_H

#include "base/error.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

/* FLOP/s of attention at TIME_ATTENTION_TOKENS tokens, causal, where 2 products of a forward and 5
 * of a backward count; by the width of a head, 64 or 128. 0: not known. */
enum { TIME_ATTENTION_TOKENS = 8192 };
struct time_attention {
    double forward[2], backward[2];
    double half[2]; /* of both: tokens whose work a call takes beside its own; 0: FA2's */
};

struct time_device {
    const char *name;        /* "h100" */
    const char *driver_name; /* as its driver calls it; flops_peak_per_s() knows it */
    int64_t memory_bytes;
    int compute_capability; /* 90: 9.0 */
    int SMs;
    double bf16, fp32; /* FLOP/s that large products of matrices sustain; bf16: 0: it has none */
    double memory;    /* bytes/s that a good streaming kernel sustains, read and written together */
    double links;     /* bytes/s that a ring sends per rank within a node: NVLink, or PCIe */
    double link_step; /* seconds of a step of such a ring */
    double network;   /* bytes/s per GPU between nodes, one way */
    double host_link; /* bytes/s between a GPU and its host, one way */
    double launch_gap; /* seconds of idleness between two kernels */
    double
        hopper_clock; /* cycles/s of its SMs at attention, where attention_hopper*.cu run; else 0 */
    struct time_attention ours, cudnn;
};

/* The rows of the table; the last one's name is NULL. */
extern const struct time_device time_devices[];

/* By its name, in either case, or its driver's. Errors: ERR_CONFIG that names the nearest and the
 * list. */
int time_device_find(const char *name, const struct time_device **ret_device, struct error *err);
void time_device_names(struct str *out); /* "h100 h200 ..." */
/* By its driver's name; NULL: no row. */
const struct time_device *time_device_of_driver(const char *driver_name);

/* How sure the constants are: the ends of what their sources give. */
enum time_band { TIME_LOW, TIME_MIDDLE, TIME_HIGH, TIME_BANDS };
/* The device with rates at that end. */
struct time_device time_device_in_band(const struct time_device *device, enum time_band band);

/* out [M, N] = sum over K; inputs of value_bytes an element (2: bf16, 4: fp32). */
struct time_product {
    int64_t M, N, K;
    int value_bytes, out_bytes;
    bool adds;      /* to what is there, which is read */
    bool unaligned; /* rows of a matrix begin at addresses that are no multiples of 16 */
    double speed;   /* times the device's rate: 1, or what fp8 gains */
};
double time_of_product(const struct time_device *device, const struct time_product *product);

/* A kernel that passes over memory. efficiency: of device->memory. */
double time_of_pass(const struct time_device *device, double bytes, double efficiency);
/* That of a cross-entropy over logits; aligned: their rows begin at multiples of 16 bytes. */
double time_loss_efficiency(bool aligned);

enum time_attention_kernel {
    TIME_ATTENTION_MATRIX,  /* matrix units: bf16, heads 64 or 128 wide */
    TIME_ATTENTION_EXTRAS,  /* likewise with dropout or a bias of the distance */
    TIME_ATTENTION_GENERAL, /* fp32, and other widths */
};
struct time_attention_call {
    int64_t rows, heads, hd, queries, keys;
    bool causal, backward;
    enum time_attention_kernel kernel;
};
double time_of_attention(const struct time_device *device, const struct time_attention *rates,
                         const struct time_attention_call *call);
double time_attention_flops(const struct time_attention_call *call);

/* Bytes/s that a ring of consecutive ranks sends per rank; node: ranks on a node; network: 0: the
 * device's. With few ranks of the ring on a node, their part of the node's network is the limit. */
double time_ring_rate(const struct time_device *device, int ranks, int node, double network);

/* Seconds that the steps of a collective take beside its bytes; node: as above. */
double time_collective_start(const struct time_device *device, int ranks, int node,
                             bool is_all_reduce);

/* Seconds that a launch costs: on the GPU between two kernels, and on the host, which runs ahead
 * as long as kernels are long enough. With CUDA graphs the host's part is none. */
struct time_launch {
    double gap, host, collective; /* collective: the host's, for each */
};
struct time_launch time_of_launch(const struct time_device *device, bool graphs);
/* Idle at a step's end: what is read back, logged and launched anew. */
double time_of_step_end(int ranks);

/* How many times as fast as bf16's the products are in fp8 where a device has it. */
extern const double time_fp8_products;
/* By how much kernels are slower while collectives take some of the SMs. */
extern const double time_interference;
/* How much of an update that runs beside forward is hidden there. */
extern const double time_update_hidden;
/* Bytes/s at which a rank's share of the CPUs updates what is offloaded. */
extern const double time_host_update;
/* How much of a convolution's FLOP/s is left of the fp32 rate, forward and backward. */
extern const double time_convolution;
#endif
