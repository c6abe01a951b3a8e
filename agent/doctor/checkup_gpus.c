/* The driver, the backend, the GPUs. */
#include "agent/doctor/checkup_internal.h"

#include "base/contract.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

#define GIB (1024.0 * 1024 * 1024)

static bool is_asked(const struct doctor_facts *f, const char *device)
{
    return str_starts_with(f->asked, device);
}

/* Whether GPUs that training would not use make it one that nobody means. */
static bool are_wanted(const struct doctor_facts *f)
{
    return is_asked(f, "cuda") || (is_asked(f, "auto") && !f->hides_gpus && f->nvml.count > 0);
}

/* What a missing thing means to training. */
static const char *without_gpus(const struct doctor_facts *f)
{
    if (is_asked(f, "cuda"))
        return "no rank gets a GPU, so training does not start";
    return are_wanted(f) ? "training would run on the CPU, and leave the GPUs alone"
                         : "training runs on the CPU";
}

/* The first driver that serves a CUDA's major version (NVIDIA, "CUDA Toolkit Release Notes",
 * table of minimum drivers). */
static const char *driver_of(int cuda)
{
    return cuda / 1000 == 12 ? "525.60.13" : cuda / 1000 == 13 ? "580.65.06" : "";
}

static const char *driver_version(const struct doctor_facts *f)
{
    return f->nvml.driver[0] ? f->nvml.driver : "of unknown version";
}

/* Returns whether the driver will do. */
static bool check_driver(const struct doctor_facts *f, struct checkup *c)
{
    char reason[CHECK_REASON_BYTES];
    struct check_row *row;
    int built = f->survey.backend_cuda, serves = f->survey.driver_cuda;
    if (!serves) /* there is no backend that could ask */
        serves = f->nvml.cuda;
    if (!serves && !f->driver.file[0] && !f->nvml.driver[0]) {
        row = checkup_add(c, CHECK_MISSING, "driver", "no NVIDIA driver answers (%s)",
                          checkup_reason(&f->driver, reason));
        row->is_fatal = is_asked(f, "cuda");
        checkup_explain(row, without_gpus(f),
                        "for GPUs: install the driver (%s or newer%s); in a pod: nvidia.com/gpu "
                        "in its limits, and NVIDIA's container toolkit on the node",
                        driver_of(built ? built : 13000), built ? "" : " for CUDA 13");
        return false;
    }
    if (!serves) {
        row = checkup_add(c, CHECK_BROKEN, "driver", "%s is there, but does not answer%s%s",
                          f->driver.file[0] ? f->driver.file : "libcuda.so.1",
                          f->nvml.library.why.code ? ": " : "",
                          f->nvml.library.why.code ? f->nvml.library.why.msg : "");
        row->is_fatal = is_asked(f, "cuda");
        checkup_explain(row, without_gpus(f),
                        "does nvidia-smi work on the node? are /dev/nvidia* in the container?");
        return false;
    }
    bool is_old = built && serves / 1000 < built / 1000;
    row = checkup_add(c, is_old ? CHECK_TOO_OLD : CHECK_OK, "driver", "%s, serves CUDA %d.%d%s%s",
                      driver_version(f), serves / 1000, serves % 1000 / 10,
                      f->driver.file[0] ? ": " : "", f->driver.file);
    if (!is_old)
        return true;
    checkup_more(row, "; this build needs CUDA %d.%d", built / 1000, built % 1000 / 10);
    row->is_fatal = !is_asked(f, "cpu") && !f->hides_gpus;
    checkup_explain(row, "no GPU can be used",
                    "a driver of %s or newer on the node, or a build with the toolkit of CUDA %d",
                    driver_of(built), serves / 1000);
    return false;
}

/* Returns whether there is one. */
static bool check_backend(const struct doctor_facts *f, struct checkup *c)
{
    if (!f->no_backend.code) {
        int built = f->survey.backend_cuda;
        checkup_add(c, CHECK_OK, "GPU backend", "built with CUDA %d.%d: %s", built / 1000,
                    built % 1000 / 10, f->survey.backend_file);
        return true;
    }
    struct check_row *row = checkup_add(c, CHECK_MISSING, "GPU backend", "%s", f->no_backend.msg);
    row->is_fatal = are_wanted(f);
    checkup_explain(row, without_gpus(f),
                    "for GPUs: make V=release where nvcc is, or take the image " AGENT_PROGRAM
                    ":" SHOAL_VERSION "-cuda13");
    return false;
}

static const struct nvml_gpu *in_nvml(const struct doctor_facts *f, int i)
{
    for (int k = 0; k < f->nvml.count; k++)
        if (f->nvml.gpus[k].pci[0] && strcmp(f->nvml.gpus[k].pci, f->survey.gpu[i].pci) == 0)
            return &f->nvml.gpus[k];
    return NULL;
}

static bool is_slice(const struct gpu_facts *gpu)
{
    return strstr(gpu->name, " MIG ") != NULL;
}

/* Whether some rank gets it. */
static bool is_taken(const struct doctor_facts *f, int i)
{
    char name[24];
    snprintf(name, sizeof name, "cuda:%d", i);
    return !is_asked(f, "cuda:") || strcmp(f->asked, name) == 0;
}

static void check_gpu(const struct doctor_facts *f, int i, struct checkup *c)
{
    const struct gpu_facts *gpu = &f->survey.gpu[i];
    const struct nvml_gpu *board = in_nvml(f, i);
    char what[24];
    snprintf(what, sizeof what, "GPU %d", i);
    struct check_row *row =
        checkup_add(c, CHECK_OK, what, "%s, compute capability %d.%d, %.1f GiB, ECC %s%s%s%s",
                    gpu->name, gpu->compute_capability / 10, gpu->compute_capability % 10,
                    (double)gpu->memory_bytes / GIB, gpu->has_ecc ? "on" : "off",
                    is_slice(gpu) ? ", a MIG slice" : "", gpu->pci[0] ? ", at " : "", gpu->pci);
    if (f->refused[i].code) {
        row->status = f->refused[i].code == ERR_UNSUPPORTED ? CHECK_TOO_OLD : CHECK_BROKEN;
        row->is_fatal = is_taken(f, i);
        checkup_explain(row, f->refused[i].msg,
                        "leave it out: CUDA_VISIBLE_DEVICES names those that a job may use");
    } else if (board && (board->row_failure || board->ecc_uncorrected > 0)) {
        row->status = board->row_failure ? CHECK_BROKEN : CHECK_WARNING;
        checkup_explain(row,
                        board->row_failure ? "its memory cannot be mended: runs end on it"
                                           : "it has had memory errors that ECC cannot correct",
                        board->row_failure ? "replace it, and drain the node meanwhile"
                                           : "reset it: nvidia-smi --gpu-reset, or the node's "
                                             "reboot");
    } else if (is_slice(gpu)) {
        row->status = CHECK_WARNING;
        checkup_explain(row, "a process sees one slice, and NCCL joins none of the same GPU",
                        "one rank a pod; for several ranks --collectives host, or whole GPUs");
    } else if (gpu->compute_capability < DEVICE_BF16_CAPABILITY) {
        row->status = CHECK_WARNING;
        checkup_explain(row, "it does not compute in bf16, which most presets do: they are refused",
                        "precision.mixed_precision=no trains in fp32");
    }
}

/* --device cuda:N of a GPU that is not there. */
static void check_number(const struct doctor_facts *f, struct checkup *c)
{
    char what[24];
    for (int i = 0; i < f->survey.gpus; i++)
        if (is_taken(f, i))
            return;
    snprintf(what, sizeof what, "GPU %s", f->asked + strlen("cuda:"));
    struct check_row *row =
        checkup_add(c, CHECK_MISSING, what, "this process sees %d GPU%s, numbered from 0",
                    f->survey.gpus, f->survey.gpus == 1 ? "" : "s");
    row->is_fatal = true;
    checkup_explain(row, without_gpus(f), "--device cuda:0 to cuda:%d, or cuda for all",
                    f->survey.gpus - 1);
}

/* Ranks of this node that would share GPUs. */
static void check_ranks(const struct doctor_facts *f, struct checkup *c)
{
    bool have_one = is_asked(f, "cuda:"); /* which may be shared */
    int gpus = have_one ? 1 : f->survey.gpus;
    bool may_share = have_one || f->share_gpus;
    if (f->started_here <= gpus)
        return;
    struct check_row *row = checkup_add(c, may_share ? CHECK_WARNING : CHECK_MISSING,
                                        "GPUs of ranks", "%d ranks on this node share %d GPU%s",
                                        f->started_here, gpus, gpus == 1 ? "" : "s");
    row->is_fatal = !may_share;
    checkup_explain(row,
                    may_share ? "NCCL joins no ranks of one GPU: collectives go through the host"
                              : "ranks may not have one GPU, so training does not start",
                    "start as many ranks as there are GPUs (nproc_per_node)%s",
                    may_share ? ""
                              : ", let them share (--share_gpus) or take the CPU (--device cpu)");
}

static void check_kinds(const struct doctor_facts *f, struct checkup *c)
{
    const struct gpu_facts *first = &f->survey.gpu[0];
    for (int i = 1; i < f->survey.gpus; i++) {
        const struct gpu_facts *gpu = &f->survey.gpu[i];
        if (strcmp(gpu->name, first->name) == 0 &&
            gpu->compute_capability == first->compute_capability)
            continue;
        struct check_row *row = checkup_add(c, CHECK_WARNING, "kinds of GPU",
                                            "GPU 0 is %s, GPU %d is %s", first->name, i, gpu->name);
        checkup_explain(row, "all ranks wait for the slowest; the smallest memory is the limit",
                        "give a job GPUs of one kind: CUDA_VISIBLE_DEVICES, or node labels");
        return;
    }
}

static void check_peers(const struct doctor_facts *f, struct checkup *c)
{
    int pairs = 0, apart = 0, a = 0, b = 0;
    for (int i = 0; i < f->survey.gpus; i++)
        for (int k = i + 1; k < f->survey.gpus; k++) {
            pairs++;
            if (f->survey.gpu[i].peers >> k & f->survey.gpu[k].peers >> i & 1)
                continue;
            if (apart++ == 0)
                a = i, b = k;
        }
    if (pairs == 0)
        return;
    struct check_row *row = checkup_add(c, apart ? CHECK_WARNING : CHECK_OK, "peer access",
                                        "%d of %d pairs of GPUs", pairs - apart, pairs);
    if (apart)
        checkup_explain(row, "NCCL goes through the host's memory between the others: slower",
                        "GPU %d and %d lack it first: is IOMMU or ACS on? are they on one PCIe "
                        "root? (nvidia-smi topo -p2p r)",
                        a, b);
}

static void check_none(const struct doctor_facts *f, struct checkup *c)
{
    bool has_slices = false;
    for (int i = 0; i < f->nvml.count; i++)
        has_slices |= f->nvml.gpus[i].is_mig;
    struct check_row *row =
        checkup_add(c, CHECK_MISSING, "GPUs", "%s (NVML counts %d%s)", f->survey.no_gpus.msg,
                    f->nvml.count, has_slices ? ", cut into MIG slices" : "");
    row->is_fatal = are_wanted(f);
    bool is_hidden = f->survey.no_gpus.code == ERR_NOT_FOUND;
    checkup_explain(row, without_gpus(f),
                    has_slices  ? "make slices (nvidia-smi mig -cgi ... -C) and ask for one "
                                  "(nvidia.com/mig-...), or turn MIG off"
                    : is_hidden ? "nvidia.com/gpu in the pod's limits; CUDA_VISIBLE_DEVICES names "
                                  "GPUs that are there"
                                : "mend that on the node: no other program can use CUDA there");
}

bool checkup_gpus(const struct doctor_facts *f, struct checkup *c)
{
    if (is_asked(f, "cpu")) {
        checkup_add(c, CHECK_OK, "GPUs", "none are asked for (--device cpu)");
        return false;
    }
    bool has_driver = check_driver(f, c);
    if (!check_backend(f, c) || !has_driver)
        return false;
    if (f->survey.gpus == 0) {
        check_none(f, c);
        return false;
    }
    for (int i = 0; i < f->survey.gpus; i++)
        check_gpu(f, i, c);
    check_number(f, c);
    check_ranks(f, c);
    check_kinds(f, c);
    check_peers(f, c);
    return true;
}
