/* NVIDIA's libraries, and NCCL's rules. */
#include "agent/doctor/checkup_internal.h"

#include "agent/comm/nccl_api.h"
#include "base/contract.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

/* What training does without it, and whose wheel has it. */
static const struct use {
    const char *name, *without, *wheel;
    bool is_needed;     /* on a GPU */
    bool has_cuda_name; /* the wheel's name ends in its CUDA, also with CUDA 13 */
} uses[] = {
    {"cuBLASLt", "no GPU can be used: it multiplies matrices", "nvidia-cublas", true, false},
    {"NCCL", "collectives go through the hosts' sockets, much slower", "nvidia-nccl", false, true},
    {"cuDNN", "attention is done by our own kernels", "nvidia-cudnn", false, true},
    {"NVRTC", "cuDNN has fewer kernels for attention", "nvidia-cuda-nvrtc", false, false},
    {"CUPTI", "a trace has no kernels", "nvidia-cuda-cupti", false, false},
    {"NVML", "no metrics of GPUs, and no Xids in the log", NULL, false, false},
};

static const struct use *use_of(const char *name)
{
    for (size_t i = 0; i < array_length(uses); i++)
        if (strcmp(uses[i].name, name) == 0)
            return &uses[i];
    return NULL;
}

static enum check_status status_of(const struct error *why)
{
    return why->code == ERR_NONE          ? CHECK_OK
           : why->code == ERR_NOT_FOUND   ? CHECK_MISSING
           : why->code == ERR_UNSUPPORTED ? CHECK_TOO_OLD
                                          : CHECK_BROKEN;
}

static void mend(const struct doctor_facts *f, const struct use *use, struct check_row *row)
{
    int cuda = f->survey.backend_cuda ? f->survey.backend_cuda / 1000 : 13;
    char suffix[16] = "";
    if (use->has_cuda_name || cuda < 13)
        snprintf(suffix, sizeof suffix, "-cu%d", cuda);
    const char *means = f->survey.gpus > 0 ? use->without : "nothing on the CPU";
    if (!use->wheel)
        checkup_explain(row, means,
                        "it comes with the driver; in a container NVIDIA_DRIVER_CAPABILITIES has "
                        "\"utility\"");
    else
        checkup_explain(row, means,
                        "take the image " AGENT_PROGRAM ":" SHOAL_VERSION
                        "-cuda13, or pip install %s%s and name its folder in " ENV_LIBRARY_PATH,
                        use->wheel, suffix);
}

static void check_library(const struct doctor_facts *f, const struct library_facts *library,
                          struct checkup *c)
{
    const struct use *use = use_of(library->name);
    enum check_status status = status_of(&library->why);
    if (status == CHECK_OK) {
        checkup_add(c, CHECK_OK, library->name, "%s%s%s", library->version,
                    library->version[0] && library->file[0] ? ": " : "", library->file);
        return;
    }
    char reason[CHECK_REASON_BYTES];
    bool has_file = strstr(checkup_reason(library, reason), library->file); /* also none */
    struct check_row *row = checkup_add(c, status, library->name, "%s%s%s", reason,
                                        has_file ? "" : ": ", has_file ? "" : library->file);
    row->is_fatal = c->uses_gpus && use->is_needed;
    mend(f, use, row);
}

/* Its versions are checked with the library: here is what a version can do. */
static void check_nccl_rules(const struct doctor_facts *f, struct checkup *c)
{
    char version[16], oldest[16];
    if (f->nccl.why.code || !c->uses_gpus)
        return;
    nccl_api_version_text(NCCL_OLDEST, oldest);
    nccl_api_version_text(NCCL_ORDERS_LAUNCHES, version);
    checkup_add(c, CHECK_OK, "NCCL's windows", "--register_buffers symmetric: %s%s",
                f->no_windows[0] ? "no rank uses them: "
                                 : "this NCCL can register symmetric windows",
                f->no_windows);
    bool is_old = f->nccl_version < NCCL_ORDERS_LAUNCHES;
    bool has_old_driver = f->survey.driver_cuda < NCCL_ORDERS_DRIVER;
    if (f->has_launch_order && !has_old_driver) {
        checkup_add(c, CHECK_OK, "NCCL's rules",
                    "%s or newer is needed; gathers and reduces go side by side", oldest);
        return;
    }
    struct check_row *row = checkup_add(c, CHECK_WARNING, "NCCL's rules",
                                        "gathers and reduces go one after the other: %s%s",
                                        is_old           ? "before NCCL "
                                        : has_old_driver ? "the driver knows no CUDA 12.3"
                                                         : "NCCL_LAUNCH_ORDER_IMPLICIT is not 1",
                                        is_old ? version : "");
    checkup_explain(row, "the same bits, slower steps on several GPUs",
                    is_old           ? "a newer NCCL, the same one for all ranks"
                    : has_old_driver ? "a newer driver"
                                     : "leave that variable out");
}

void checkup_libraries(const struct doctor_facts *f, struct checkup *c)
{
    if (strcmp(f->asked, "cpu") == 0)
        return;
    for (int i = 0; i < f->survey.libraries; i++)
        check_library(f, &f->survey.library[i], c);
    check_library(f, &f->nccl, c);
    check_nccl_rules(f, c);
    check_library(f, &f->nvml.library, c);
}
