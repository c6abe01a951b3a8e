/* The constants of the model with their sources:
 *   [published] measured and printed by others, as named
 *   [fitted]    to figures that others published, as named
 *   [guess]     nobody has published it; the band of time_device_in_band() is no error bar of these
 * Sources that are named often:
 *   ml-eng   stas00/ml-engineering, compute/accelerator and network: best product found by search
 *   FA2, FA3 Dao-AILab/flash-attention's figures, causal, 8192 tokens
 *   SASS     instructions of hot loops compiled for 9.0, ours against FlashAttention-2's; cycles =
 *            6.5 HMMA + 13.9 LDSM + 0.77 others is fitted to FA2's speed with heads 64 wide and
 *            gives its speed with 128 to 10 % */
#include "agent/plan/time_model.h"

#include "base/mem.h"
#include "base/nearest.h"

#include <math.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

const struct time_device time_devices[] = {
    {
        .name = "h100",
        .driver_name = "NVIDIA H100 80GB HBM3",
        .memory_bytes = INT64_C(81559) << 20, /* [published] as nvidia-smi prints it */
        .compute_capability = 90,
        .SMs = 132,
        .bf16 = 745e12, /* [fitted] llmq's rows to 3 %, under 700 W; ml-eng's best is 794.5, a short
                           8192 x 8192 x 8192 makes 798 */
        .fp32 = 57e12,  /* [guess] 0.85 of the data sheet's 67 */
        .memory = 2.75e12, /* [fitted] 0.92 of a copy's 3.0e12 (Hugging Face's playbook has 3.0) */
        .links = 340e9,    /* [guess] 0.94 of 361e9, ml-eng's all-gather of 8 H200 and 16 GiB */
        .link_step = 3.4e-6,     /* [published] NCCL, graph/tuning: ring, Simple, NVLink */
        .network = 50e9,         /* [published] P5: 32 EFA x 100 Gb/s for 8 GPUs */
        .host_link = 50e9,       /* [guess] PCIe 5 x16, of 64e9 */
        .launch_gap = 1.3e-6,    /* [guess] between two kernels of a stream */
        .hopper_clock = 1.755e9, /* [guess] as SASS's fit has it: attention draws 700 W */
        .ours = {{271e12, 325e12}, {199e12, 188e12}, {0}}, /* [fitted] SASS */
        /* 128: [published] cuDNN 9.19 on an H200, cudnn-frontend's csv; its backward adds dQ in any
           order. 64: forward [guess], FA3's figure has 379 for cuDNN 9.1; backward [guess] */
        .cudnn = {{390e12, 644e12}, {335e12, 541e12}, {0}},
    },
    {
        .name = "h200",
        .driver_name = "NVIDIA H200",
        .memory_bytes = INT64_C(143771) << 20, /* [published] as nvidia-smi prints it */
        .compute_capability = 90,
        .SMs = 132,
        .bf16 = 735e12,    /* [published] the H100's times 788/798, a product of 8192 cubed */
        .fp32 = 57e12,     /* as the H100 */
        .memory = 3.94e12, /* [fitted] 0.92 of a copy's 4.3e12, as on the H100 */
        .links = 340e9,
        .link_step = 3.4e-6, /* as the H100 */
        .network = 50e9,
        .host_link = 50e9,
        .launch_gap = 1.3e-6,
        .hopper_clock = 1.755e9,                           /* as the H100 */
        .ours = {{271e12, 325e12}, {199e12, 188e12}, {0}}, /* as the H100: the same SMs and clock */
        .cudnn = {{390e12, 644e12}, {335e12, 541e12}, {0}},
    },
    {
        .name = "a100",
        .driver_name = "NVIDIA A100-SXM4-80GB",
        .memory_bytes = INT64_C(81920) << 20, /* [published] as nvidia-smi prints it */
        .compute_capability = 80,
        .SMs = 108,
        .bf16 = 254e12,       /* [fitted] ml-eng's best, 271, times the H100's 745 / 794.5 */
        .fp32 = 16.6e12,      /* [guess] 0.85 of the data sheet's 19.5 */
        .memory = 1.67e12,    /* [guess] the H100's 0.82 of the data sheet's 2.039e12 */
        .links = 225e9,       /* [guess] the H100's 0.75 of 300e9 one way */
        .link_step = 3.4e-6,  /* as the H100 */
        .network = 6.25e9,    /* [published] P4d, P4de: 400 Gb/s for 8 GPUs; a DGX A100 has 25e9 */
        .host_link = 22e9,    /* [guess] PCIe 4 x16, of 32e9 */
        .launch_gap = 1.5e-6, /* [guess] a lower clock */
        /* [guess] FA2's paper on an A100 (180 and 200 forward, 145 and 165 backward) times what
           SASS says of ours against FA2: 0.92, 0.98 and 0.75, 0.63 */
        .ours = {{165e12, 195e12}, {109e12, 104e12}, {0}},
        .cudnn = {{0}, {0}, {0}}, /* slower than FA2 (huggingface/transformers, issue 48163) */
    },
    {
        .name = "b200",
        .driver_name = "NVIDIA B200",
        .memory_bytes = INT64_C(183359) << 20, /* [published] as nvidia-smi prints it */
        .compute_capability = 100,
        .SMs = 148,
        .bf16 =
            1530e12,   /* [fitted] to 10 % of Megatron-Bridge's 8B: 0.68 of the data sheet's 2250 */
        .fp32 = 64e12, /* [guess] 0.85 of the data sheet's 75 */
        .memory = 6.56e12,   /* [guess] the H100's 0.82 of the data sheet's 8.0e12 */
        .links = 680e9,      /* [guess] the H100's 0.75 of 900e9 one way */
        .link_step = 3.4e-6, /* as the H100 */
        .network = 50e9,     /* [published] P6-B200: 8 x 400 Gb/s */
        .host_link = 50e9,
        .launch_gap = 1.3e-6, /* as the H100 */
        /* [guess] the mma instructions of 8.0 at the H100's rate per SM and clock, 148 SMs */
        .ours = {{313e12, 373e12}, {228e12, 215e12}, {0}},
        /* [published] 128: cuDNN 9.22 on a GB200, 16k (cudnn-frontend's csv); 64: FA4's 1063 of
           1665 as the share */
        .cudnn = {{1063e12, 1600e12}, {800e12, 1250e12}, {0}},
    },
    {
        .name = "l40s",
        .driver_name = "NVIDIA L40S",
        .memory_bytes = INT64_C(46068) << 20, /* [published] as nvidia-smi prints it */
        .compute_capability = 89,
        .SMs = 142,
        .bf16 = 235e12,      /* [guess] 0.65 of the data sheet's 362: 350 W hold the clock down */
        .fp32 = 70e12,       /* [guess] 0.77 of the data sheet's 91.6 */
        .memory = 0.71e12,   /* [guess] the H100's 0.82 of the data sheet's 0.864e12 */
        .links = 22e9,       /* [guess] no NVLink: PCIe 4 x16 */
        .link_step = 5.7e-6, /* [published] NCCL, graph/tuning: ring, Simple, PCI */
        .network = 6.25e9,   /* [published] G6e.48xlarge: 400 Gb/s for 8 GPUs */
        .host_link = 22e9,
        .launch_gap = 1.3e-6, /* as the H100 */
        /* [guess] the A100's share of the rate of products */
        .ours = {{152e12, 180e12}, {101e12, 96e12}, {0}},
        .cudnn = {{0}, {0}, {0}}, /* equal to FA2 (huggingface/transformers, issue 48163) */
    },
    {
        .name = "t4",
        .driver_name = "Tesla T4",
        .memory_bytes = INT64_C(15360) << 20, /* [published] as nvidia-smi prints it */
        .compute_capability = 75,
        .SMs = 40,
        .bf16 = 0,           /* it has none */
        .fp32 = 5.3e12,      /* [guess] 0.65 of the data sheet's 8.1: 70 W hold the clock down */
        .memory = 0.26e12,   /* [guess] the H100's 0.82 of the data sheet's 0.32e12 */
        .links = 11e9,       /* [guess] no NVLink: PCIe 3 x16, half of the A100's host link */
        .link_step = 5.7e-6, /* [published] NCCL, graph/tuning: ring, Simple, PCI */
        .network = 1.56e9,   /* [published] G4dn.12xlarge: 50 Gb/s for 4 GPUs; metal: 100 for 8 */
        .host_link = 11e9,
        .launch_gap = 1.5e-6,    /* as the A100 */
        .ours = {{0}, {0}, {0}}, /* of matrix units: it has none for bf16 */
        .cudnn = {{0}, {0}, {0}},
    },
    {0},
};

/* [published] ml-eng's best products on an H100: 1403 of e4m3, 794.5 of bf16. */
const double time_fp8_products = 1403 / 794.5;

/* [guess] Kernels were measured alone; NCCL has 16 to 24 of 132 SMs for itself. */
const double time_interference = 0.25;
/* [guess] The update waits for memory, forward for tensor cores, and they share the SMs. */
const double time_update_hidden = 0.55;
/* [guess] AdamW over memory of a host that 8 ranks share. */
const double time_host_update = 20e9;
/* [guess] Convolutions with 1 and 32 channels fill no tile. */
const double time_convolution = 0.35;

/* ---- devices ---- */

void time_device_names(struct str *out)
{
    for (const struct time_device *d = time_devices; d->name; d++)
        str_printf(out, "%s%s", d == time_devices ? "" : " ", d->name);
}

int time_device_find(const char *name, const struct time_device **ret_device, struct error *err)
{
    for (const struct time_device *d = time_devices; d->name; d++)
        if (!strcasecmp(d->name, name) || !strcmp(d->driver_name, name)) {
            *ret_device = d;
            return 0;
        }
    auto_str struct str names;
    str_init(&names, 256);
    time_device_names(&names);
    return error_set(err, ERR_CONFIG, "'%s'%s is not one of: %s", name,
                     nearest_note(name, str_text(&names), " ").text, str_text(&names));
}

const struct time_device *time_device_of_driver(const char *driver_name)
{
    for (const struct time_device *d = time_devices; d->name; d++)
        if (!strcmp(d->driver_name, driver_name))
            return d;
    return NULL;
}

struct time_device time_device_in_band(const struct time_device *device, enum time_band band)
{
    /* [published] products 700 to 785 of 745 and memory 2.6 to 2.9 of 2.75, the spread of what is
       reported of H100s; [guess] attention */
    static const struct {
        double products, memory, attention;
    } bands[TIME_BANDS] = {
        {700.0 / 745, 2.6 / 2.75, 0.88},
        {1, 1, 1},
        {785.0 / 745, 2.9 / 2.75, 1.12},
    };
    struct time_device d = *device;
    d.bf16 *= bands[band].products;
    d.fp32 *= bands[band].products;
    d.memory *= bands[band].memory;
    for (int i = 0; i < 2; i++) {
        d.ours.forward[i] *= bands[band].attention;
        d.ours.backward[i] *= bands[band].attention;
        d.cudnn.forward[i] *= bands[band].attention;
        d.cudnn.backward[i] *= bands[band].attention;
    }
    d.hopper_clock *= bands[band].attention;
    return d;
}

/* ---- products of matrices ---- */

static double up(int64_t a, int64_t b)
{
    return (double)((a + b - 1) / b);
}

static double max(double a, double b)
{
    return a > b ? a : b;
}

/* The multiplications alone, with the best of some tiles and splits of K. */
static double multiply(const struct time_device *d, const struct time_product *p, double rate)
{
    /* [guess] What a smaller tile loses; relative, as nvMatmulHeuristics has it. */
    static const struct {
        int64_t M, N;
        double efficiency;
    } tiles[] = {
        {128, 256, 1}, {256, 128, 1}, {128, 128, 0.88}, {64, 256, 0.8}, {128, 64, 0.72},
    };
    static const int64_t splits[] = {1, 2, 3, 4, 6, 8};
    enum { SPLIT_MIN_K = 512 };
    /* [fitted] to llmq's rows: a tile's first loads and its last stores, as so many of K */
    const double ends = 170;
    double best = INFINITY, MN = (double)p->M * (double)p->N;
    for (size_t i = 0; i < array_length(tiles); i++)
        for (size_t j = 0; j < array_length(splits); j++) {
            int64_t split = splits[j];
            double K = (double)p->K / (double)split;
            if (split > 1 && K < SPLIT_MIN_K)
                continue;
            double waves = up(p->M, tiles[i].M) * up(p->N, tiles[i].N) * (double)split / d->SMs;
            double filled = waves / ceil(waves);
            double t =
                2 * MN * (double)p->K / (rate * tiles[i].efficiency * filled * K / (K + ends));
            if (split > 1) /* fp32 parts, written, read and added; [guess] 0.6 of it shows */
                t += MN * (double)(8 * split + p->out_bytes) / d->memory * 0.6 + 3e-6;
            best = t < best ? t : best;
        }
    return best;
}

double time_of_product(const struct time_device *d, const struct time_product *p)
{
    /* [guess] Rows of 50257 x 2 bytes: no TMA and no 16-byte cp.async. nanoGPT gained 25 % of a
       step by padding them on an A100. An input so costs more than the output. */
    const double unaligned_out = 250.0 / 745, unaligned_in = 110.0 / 745;
    double rate = (p->value_bytes == 2 ? d->bf16 : d->fp32) * p->speed;
    double MN = (double)p->M * (double)p->N, out = MN * p->out_bytes * (p->adds ? 2 : 1);
    if (p->unaligned)
        return 2 * MN * (double)p->K / (rate * (p->N % 8 ? unaligned_out : unaligned_in)) +
               (p->adds ? out / d->memory / 2 : 0);
    double in = (double)(p->M + p->N) * (double)p->K * p->value_bytes;
    double t = max(multiply(d, p, rate), (in + out) / d->memory);
    /* [fitted] to nvMatmulHeuristics (697 of 734 with fp32 output): of the epilogue's traffic some
       is behind other tiles' products, less where K is short */
    bool is_wide = p->out_bytes > p->value_bytes;
    double shown = 0.3 + 0.5 * (1024 / max((double)p->K, 1024));
    t += out / d->memory * (is_wide || p->adds ? shown : 0.15);
    return is_wide ? t * 1.03 : t;
}

double time_of_pass(const struct time_device *d, double bytes, double efficiency)
{
    return bytes / (d->memory * efficiency);
}

/* [fitted] one block of threads a row at V = 128256; [guess] 2-byte loads where unaligned */
double time_loss_efficiency(bool aligned)
{
    return aligned ? 0.78 : 0.45;
}

/* ---- attention ---- */

double time_attention_flops(const struct time_attention_call *c)
{
    double products = c->backward ? 5 : 2, scores = (double)c->queries * (double)c->keys;
    return 2 * products * scores * (double)(c->rows * c->heads * c->hd) * (c->causal ? 0.5 : 1);
}

/* [fitted] Short sequences have few tiles for a block to walk: FA2's curve at 1024 tokens, 0.77
 * forward and 0.69 backward of its speed at 8192. */
static double ramp(const struct time_attention *rates, const struct time_attention_call *c)
{
    double half = rates->half[c->backward], T = (double)c->keys;
    half = half > 0 ? half : c->backward ? 575 : 360;
    half = c->causal ? half : half / 2; /* [guess] */
    return T / (T + half) * (TIME_ATTENTION_TOKENS + half) / TIME_ATTENTION_TOKENS;
}

double time_of_attention(const struct time_device *d, const struct time_attention *rates,
                         const struct time_attention_call *c)
{
    /* [guess] From instructions: 2100 a tile with dropout and a bias, where plain has 700; 149 and
       72 TFLOP/s on an H100 at T5's 512 tokens. */
    static const double extras[2] = {0.73, 0.55};
    /* [guess] fp32 multiply-add with operands from shared memory */
    const double general = 0.3;
    const double *rate = c->backward ? rates->backward : rates->forward;
    double per_s = rate[c->hd > 64] * ramp(rates, c);
    if (c->kernel == TIME_ATTENTION_GENERAL)
        per_s = d->fp32 * general;
    else if (c->kernel == TIME_ATTENTION_EXTRAS)
        per_s *= extras[c->backward];
    return time_attention_flops(c) / per_s;
}

/* ---- links and launches ---- */

double time_ring_rate(const struct time_device *d, int ranks, int node, double network)
{
    /* [published] ml-eng: 365 of 400 GB/s, an all-reduce of 32 H200 with 8 x 50 GB/s a node */
    const double network_efficiency = 0.91;
    if (ranks <= node)
        return d->links;
    double rate = (network > 0 ? network : d->network) * node * network_efficiency;
    return rate < d->links || node == 1 ? rate : d->links;
}

double time_collective_start(const struct time_device *d, int ranks, int node, bool is_all_reduce)
{
    /* [published] NCCL, graph/tuning, Simple: 8.4 us; a step between nodes 14 us. An all-reduce
       goes around twice, or up and down a tree, whose steps within a node NCCL has at 4 us. */
    const double start = 8.4e-6, network_step = 14e-6, tree_step = 4e-6;
    int between = (ranks - 1) / node, within = ranks - 1 - between;
    double ring = within * d->link_step + between * network_step;
    int nodes = between + 1, local = ranks < node ? ranks : node;
    double tree = (local - 1) * tree_step + floor(log2(nodes)) * network_step;
    if (!is_all_reduce)
        return start + ring;
    return start + 2 * (ring < tree ? ring : tree);
}

struct time_launch time_of_launch(const struct time_device *d, bool graphs)
{
    /* [guess] Within a graph 0.6 of a gap, and nothing of the host's; else 3 us a launch of it. 50
       us a collective of a non-blocking communicator: NCCL launches it in a thread of its own. */
    return (struct time_launch){
        .gap = d->launch_gap * (graphs ? 0.6 : 1),
        .host = graphs ? 0 : 3e-6,
        .collective = 50e-6,
    };
}

double time_of_step_end(int ranks)
{
    return ranks > 1 ? 0.6e-3 : 0.25e-3; /* [guess] */
}
