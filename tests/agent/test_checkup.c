/* What `shoal-agent doctor` says of a machine, for each thing that may be wrong with it. */
#include "agent/doctor/checkup.h"

#include "agent/comm/nccl_api.h"
#include "base/mem.h"
#include "tests/support.h"

#include <stdio.h>
#include <string.h>

static struct library_facts library(const char *name, const char *version)
{
    struct library_facts facts = {.name = name};
    snprintf(facts.file, sizeof facts.file, "/lib/lib%s.so", name);
    snprintf(facts.version, sizeof facts.version, "%s", version);
    return facts;
}

/* Two H100 of one node, of two. */
static struct doctor_facts healthy(void)
{
    struct doctor_facts f = {
        .asked = "auto",
        .survey = {.backend_file = "/usr/lib/shoal/libshoal_cuda.so",
                   .driver_cuda = 13000,
                   .backend_cuda = 13000,
                   .gpus = 2,
                   .library = {library("cuBLASLt", "13.1.0"), library("CUPTI", "130001"),
                               library("cuDNN", "9.19.0"), library("NVRTC", "13.0")},
                   .libraries = 4},
        .driver = library("driver", ""),
        .nvml = {.library = library("NVML", "580.95.05"),
                 .driver = "580.95.05",
                 .cuda = 13000,
                 .count = 2},
        .nccl = library("NCCL", "2.28.9"),
        .nccl_version = 22809,
        .has_launch_order = true,
        .shm_bytes = INT64_C(8) << 30,
        .locked_bytes = -1,
        .open_files = 1 << 20,
        .cores = 96,
        .memory_bytes = INT64_C(1) << 40,
        .memory_by = "the machine",
        .world_size = 4,
        .started_here = 2,
        .master = "job-master-0",
        .address = "10.0.0.7",
    };
    for (int i = 0; i < 2; i++) {
        struct gpu_facts *gpu = &f.survey.gpu[i];
        *gpu = (struct gpu_facts){.name = "NVIDIA H100 80GB HBM3",
                                  .compute_capability = 90,
                                  .memory_bytes = INT64_C(80) << 30,
                                  .has_ecc = true,
                                  .peers = i == 0 ? 2 : 1};
        snprintf(gpu->pci, sizeof gpu->pci, "0000:a%c:00.0", "01"[i]);
        f.nvml.gpus[i] = (struct nvml_gpu){.model = "NVIDIA H100 80GB HBM3"};
        snprintf(f.nvml.gpus[i].pci, sizeof f.nvml.gpus[i].pci, "0000:a%c:00.0", "01"[i]);
    }
    return f;
}

static void lose(struct library_facts *facts, enum error_code code, const char *why)
{
    *facts = (struct library_facts){.name = facts->name};
    error_set(&facts->why, code, "%s", why);
}

#define MISSING(file) file " is not on this machine: it comes with this and that"

static void nothing(struct doctor_facts *f)
{
    (void)f;
}
static void no_cublaslt(struct doctor_facts *f)
{
    lose(&f->survey.library[0], ERR_NOT_FOUND, MISSING("libcublasLt.so.13"));
}
static void no_cupti(struct doctor_facts *f)
{
    lose(&f->survey.library[1], ERR_NOT_FOUND, MISSING("libcupti.so.13"));
}
static void no_cudnn(struct doctor_facts *f)
{
    lose(&f->survey.library[2], ERR_NOT_FOUND, MISSING("libcudnn.so.9"));
    f->survey.libraries = 3;
}
static void old_cudnn(struct doctor_facts *f)
{
    lose(&f->survey.library[2], ERR_UNSUPPORTED, "cuDNN 9.1 is too old: 9.10 is needed");
}
static void half_cudnn(struct doctor_facts *f)
{
    lose(&f->survey.library[2], ERR_INPUT,
         "/lib/libcudnn.so.9 is installed by half: libcudnn_graph.so.9: cannot open");
}
static void no_nvrtc(struct doctor_facts *f)
{
    lose(&f->survey.library[3], ERR_NOT_FOUND, MISSING("libnvrtc.so.13"));
}
static void no_nccl(struct doctor_facts *f)
{
    lose(&f->nccl, ERR_NOT_FOUND, "NCCL: " MISSING("libnccl.so.2"));
}
static void no_nccl_of_cuda_12(struct doctor_facts *f)
{
    no_nccl(f);
    f->survey.backend_cuda = 12040;
}
static void old_nccl(struct doctor_facts *f)
{
    lose(&f->nccl, ERR_UNSUPPORTED, "NCCL 2.8.3 is too old: 2.14 or newer is needed");
}
static void nccl_of_before(struct doctor_facts *f)
{
    f->nccl_version = 22500;
    strcpy(f->no_windows, "NCCL 2.25.0 has none (2.27 or newer)");
    f->has_launch_order = false;
}
static void no_launch_order(struct doctor_facts *f)
{
    f->has_launch_order = false;
}
static void driver_before_12_3(struct doctor_facts *f)
{
    f->survey.backend_cuda = 12040;
    f->survey.driver_cuda = 12020;
}
static void no_nvml(struct doctor_facts *f)
{
    lose(&f->nvml.library, ERR_NOT_FOUND, MISSING("libnvidia-ml.so.1"));
    f->nvml.count = 0;
}
static void no_driver(struct doctor_facts *f)
{
    no_nvml(f);
    f->nvml = (struct nvml_facts){.library = f->nvml.library};
    lose(&f->driver, ERR_NOT_FOUND, MISSING("libcuda.so.1"));
    f->survey.driver_cuda = f->survey.gpus = 0;
}
static void no_driver_but_asked(struct doctor_facts *f)
{
    no_driver(f);
    f->asked = "cuda";
}
static void silent_driver_but_asked(struct doctor_facts *f)
{
    no_driver_but_asked(f);
    f->driver = library("driver", "");
}
static void silent_driver(struct doctor_facts *f)
{
    no_driver(f);
    f->driver = library("driver", "");
}
static void old_driver(struct doctor_facts *f)
{
    f->survey.driver_cuda = f->nvml.cuda = 12040;
    f->survey.gpus = 0;
    strcpy(f->nvml.driver, "550.54.15");
}
static void old_driver_on_the_cpu(struct doctor_facts *f)
{
    old_driver(f);
    f->asked = "cpu";
}
static void no_backend(struct doctor_facts *f)
{
    memset(&f->survey, 0, sizeof f->survey);
    error_set(&f->no_backend, ERR_UNSUPPORTED, "no GPU support in this build");
}
static void no_backend_nor_gpu(struct doctor_facts *f)
{
    no_driver(f);
    no_backend(f);
}
static void no_gpu(struct doctor_facts *f)
{
    f->survey.gpus = 0;
    error_set(&f->survey.no_gpus, ERR_UNSUPPORTED, "this process sees no GPU");
}
static void no_gpu_but_asked(struct doctor_facts *f)
{
    no_gpu(f);
    f->asked = "cuda";
}
static void hidden_gpus(struct doctor_facts *f)
{
    no_gpu(f);
    f->hides_gpus = true;
}
static void no_slices(struct doctor_facts *f)
{
    no_gpu(f);
    f->nvml.gpus[1].is_mig = true;
}
static void slice(struct doctor_facts *f)
{
    strcpy(f->survey.gpu[1].name, "NVIDIA H100 80GB HBM3 MIG 1g.10gb");
}
static void other_kind(struct doctor_facts *f)
{
    strcpy(f->survey.gpu[1].name, "NVIDIA L40S");
    f->survey.gpu[1].compute_capability = 89;
}
static void old_gpu(struct doctor_facts *f)
{
    error_set(&f->refused[1], ERR_UNSUPPORTED, "GPU 1 has compute capability 7.0");
}
static void turing(struct doctor_facts *f)
{
    strcpy(f->survey.gpu[0].name, "Tesla T4");
    f->survey.gpu[0].compute_capability = 75;
}
static void old_gpu_unasked(struct doctor_facts *f)
{
    old_gpu(f);
    f->asked = "cuda:0";
}
static void no_such_gpu(struct doctor_facts *f)
{
    f->asked = "cuda:7";
    f->started_here = 1;
}
static void other_gpu(struct doctor_facts *f)
{
    no_such_gpu(f);
    f->asked = "cuda:1";
}
static void more_ranks(struct doctor_facts *f)
{
    f->started_here = 4;
}
static void more_ranks_that_share(struct doctor_facts *f)
{
    more_ranks(f);
    f->share_gpus = true;
}
static void ranks_of_one_gpu(struct doctor_facts *f)
{
    f->asked = "cuda:1";
}
static void lost_gpu(struct doctor_facts *f)
{
    error_set(&f->refused[0], ERR_DEVICE, "GPU: open it: uncorrectable ECC error encountered");
}
static void worn_gpu(struct doctor_facts *f)
{
    f->nvml.gpus[1].row_failure = true;
}
static void ecc_errors(struct doctor_facts *f)
{
    f->nvml.gpus[1].ecc_uncorrected = 3;
}
static void no_peers(struct doctor_facts *f)
{
    f->survey.gpu[0].peers = 0;
}
static void small_shm(struct doctor_facts *f)
{
    f->shm_bytes = 64 << 20;
}
static void no_limit(struct doctor_facts *f)
{
    f->memory_bytes = INT64_MAX;
}
static void no_shm(struct doctor_facts *f)
{
    f->shm_bytes = -1;
}
static void small_shm_of_one(struct doctor_facts *f)
{
    small_shm(f);
    f->survey.gpus = f->started_here = 1;
}
static void locked_little(struct doctor_facts *f)
{
    f->locked_bytes = 64 << 10;
}
static void locked_little_with_efa(struct doctor_facts *f)
{
    locked_little(f);
    f->has_infiniband = true;
}
static void few_files(struct doctor_facts *f)
{
    f->world_size = 1024;
    f->open_files = 1024;
}
static void no_interface(struct doctor_facts *f)
{
    error_set(&f->no_interface, ERR_CONFIG, "GLOO_SOCKET_IFNAME: no network interface \"eth9\"");
}
static void no_address_yet(struct doctor_facts *f)
{
    error_set(&f->no_interface, ERR_NOT_FOUND, "job-master-0: Name or service not known");
}
static void wrong_environment(struct doctor_facts *f)
{
    error_set(&f->no_topology, ERR_CONFIG, "WORLD_SIZE=two is no number");
}
static void alone(struct doctor_facts *f)
{
    f->world_size = 1;
}

static const struct {
    const char *name;
    void (*change)(struct doctor_facts *f);
    const char *what; /* the row */
    enum check_status status;
    bool can_train;
    const char *told; /* in one of its texts */
} rows[] = {
    {"all is there", nothing, "driver", CHECK_OK, true, "580.95.05, serves CUDA 13.0"},
    {"all is there", nothing, "GPU backend", CHECK_OK, true, "built with CUDA 13.0: /usr/lib"},
    {"all is there", nothing, "GPU 1", CHECK_OK, true,
     "NVIDIA H100 80GB HBM3, compute capability 9.0, 80.0 GiB, ECC on, at 0000:a1:00.0"},
    {"all is there", nothing, "peer access", CHECK_OK, true, "1 of 1 pairs"},
    {"all is there", nothing, "cuBLASLt", CHECK_OK, true, "13.1.0: /lib/libcuBLASLt.so"},
    {"all is there", nothing, "cuDNN", CHECK_OK, true, "9.19.0"},
    {"all is there", nothing, "NVRTC", CHECK_OK, true, "13.0"},
    {"all is there", nothing, "NCCL", CHECK_OK, true, "2.28.9"},
    {"all is there", nothing, "NCCL's rules", CHECK_OK, true, "2.14.0 or newer is needed"},
    {"all is there", nothing, "NCCL's windows", CHECK_OK, true,
     "this NCCL can register symmetric windows"},
    {"NCCL 2.25", nccl_of_before, "NCCL's windows", CHECK_OK, true,
     "no rank uses them: NCCL 2.25.0 has none"},
    {"all is there", nothing, "NVML", CHECK_OK, true, "580.95.05"},
    {"all is there", nothing, "CPU", CHECK_OK, true,
     "96 cores, 1024.0 GiB of memory left (the machine)"},
    {"memory without a limit", no_limit, "CPU", CHECK_OK, true, "96 cores"},
    {"all is there", nothing, "shared memory", CHECK_OK, true, "/dev/shm has 8192 MiB"},
    {"all is there", nothing, "locked memory", CHECK_OK, true, "no limit"},
    {"all is there", nothing, "open files", CHECK_OK, true, "at most 1048576"},
    {"all is there", nothing, "rendezvous", CHECK_OK, true,
     "route to rank 0 at 10.0.0.7, with rank 0 at job-master-0"},
    {"no cuBLASLt", no_cublaslt, "cuBLASLt", CHECK_MISSING, false, "pip install nvidia-cublas and"},
    {"no CUPTI", no_cupti, "CUPTI", CHECK_MISSING, true, "a trace has no kernels"},
    {"no cuDNN", no_cudnn, "cuDNN", CHECK_MISSING, true, "attention is done by our own kernels"},
    {"cuDNN too old", old_cudnn, "cuDNN", CHECK_TOO_OLD, true, "9.10 is needed"},
    {"half a cuDNN", half_cudnn, "cuDNN", CHECK_BROKEN, true, "libcudnn_graph.so.9"},
    {"no NVRTC", no_nvrtc, "NVRTC", CHECK_MISSING, true, "cuDNN has fewer kernels"},
    {"no NCCL", no_nccl, "NCCL", CHECK_MISSING, true, "pip install nvidia-nccl-cu13"},
    {"no NCCL", no_nccl, "NCCL", CHECK_MISSING, true, "the hosts' sockets, much slower"},
    {"no NCCL, CUDA 12", no_nccl_of_cuda_12, "NCCL", CHECK_MISSING, true, "nvidia-nccl-cu12"},
    {"NCCL too old", old_nccl, "NCCL", CHECK_TOO_OLD, true, "2.14 or newer is needed"},
    {"NCCL 2.25", nccl_of_before, "NCCL's rules", CHECK_WARNING, true, "before NCCL 2.26.0"},
    {"launch order off", no_launch_order, "NCCL's rules", CHECK_WARNING, true, "is not 1"},
    {"driver of 12.2", driver_before_12_3, "NCCL's rules", CHECK_WARNING, true, "no CUDA 12.3"},
    {"no NVML", no_nvml, "NVML", CHECK_MISSING, true, "NVIDIA_DRIVER_CAPABILITIES"},
    {"no driver", no_driver, "driver", CHECK_MISSING, true, "libcuda.so.1 is not on this machine)"},
    {"no driver", no_driver, "driver", CHECK_MISSING, true, "580.65.06 or newer"},
    {"no driver", no_driver, "cuBLASLt", CHECK_OK, true, "13.1.0"},
    {"no driver, but a GPU is asked for", no_driver_but_asked, "driver", CHECK_MISSING, false,
     "training does not start"},
    {"... that does not answer", silent_driver_but_asked, "driver", CHECK_BROKEN, false,
     "training does not start"},
    {"a driver without devices", silent_driver, "driver", CHECK_BROKEN, true, "does not answer"},
    {"driver too old", old_driver, "driver", CHECK_TOO_OLD, false,
     "550.54.15, serves CUDA 12.4: /lib/libdriver.so; this build needs CUDA 13.0"},
    {"driver too old", old_driver, "driver", CHECK_TOO_OLD, false,
     "a driver of 580.65.06 or newer"},
    {"driver too old, on the CPU", old_driver_on_the_cpu, "GPUs", CHECK_OK, true, "none are asked"},
    {"no backend beside GPUs", no_backend, "GPU backend", CHECK_MISSING, false, "-cuda13"},
    {"no backend beside GPUs", no_backend, "GPU backend", CHECK_MISSING, false,
     "would run on the CPU"},
    {"neither backend nor GPU", no_backend_nor_gpu, "GPU backend", CHECK_MISSING, true, "CPU"},
    {"no GPU is shown", no_gpu, "GPUs", CHECK_MISSING, false, "(NVML counts 2)"},
    {"no GPU is shown", no_gpu_but_asked, "GPUs", CHECK_MISSING, false, "does not start"},
    {"GPUs are hidden", hidden_gpus, "GPUs", CHECK_MISSING, true, "runs on the CPU"},
    {"MIG without slices", no_slices, "GPUs", CHECK_MISSING, false, "cut into MIG slices"},
    {"a MIG slice", slice, "GPU 1", CHECK_WARNING, true, "--collectives host"},
    {"two kinds", other_kind, "kinds of GPU", CHECK_WARNING, true, "GPU 1 is NVIDIA L40S"},
    {"a GPU too old", old_gpu, "GPU 1", CHECK_TOO_OLD, false, "compute capability 7.0"},
    {"a GPU for fp32", turing, "GPU 0", CHECK_WARNING, true, "does not compute in bf16"},
    {"a GPU for fp32", turing, "GPU 0", CHECK_WARNING, true, "precision.mixed_precision=no"},
    {"a GPU too old, for none", old_gpu_unasked, "GPU 1", CHECK_TOO_OLD, true, ""},
    {"no such GPU", no_such_gpu, "GPU 7", CHECK_MISSING, false, "sees 2 GPUs, numbered from 0"},
    {"no such GPU", no_such_gpu, "GPU 7", CHECK_MISSING, false, "--device cuda:0 to cuda:1"},
    {"the other GPU", other_gpu, "GPU 1", CHECK_OK, true, ""},
    {"more ranks than GPUs", more_ranks, "GPUs of ranks", CHECK_MISSING, false,
     "4 ranks on this node share 2 GPUs"},
    {"... that share them", more_ranks_that_share, "GPUs of ranks", CHECK_WARNING, true,
     "collectives go through the host"},
    {"two ranks of one GPU", ranks_of_one_gpu, "GPUs of ranks", CHECK_WARNING, true, "share 1 GPU"},
    {"a lost GPU", lost_gpu, "GPU 0", CHECK_BROKEN, false, "uncorrectable ECC"},
    {"memory that is worn", worn_gpu, "GPU 1", CHECK_BROKEN, true, "replace it"},
    {"ECC errors", ecc_errors, "GPU 1", CHECK_WARNING, true, "that ECC cannot correct"},
    {"no peers", no_peers, "peer access", CHECK_WARNING, true, "0 of 1 pairs"},
    {"64 MiB of /dev/shm", small_shm, "shared memory", CHECK_WARNING, true, "medium: Memory"},
    {"no /dev/shm", no_shm, "shared memory", CHECK_WARNING, true, "no /dev/shm"},
    {"64 MiB for one GPU", small_shm_of_one, "shared memory", CHECK_OK, true, "64 MiB"},
    {"64 KiB locked", locked_little, "locked memory", CHECK_OK, true, "at most 64 KiB"},
    {"... with EFA", locked_little_with_efa, "locked memory", CHECK_WARNING, true, "ulimit -l"},
    {"1024 ranks and files", few_files, "open files", CHECK_WARNING, true, "ulimit -Hn 1280"},
    {"no interface", no_interface, "rendezvous", CHECK_MISSING, false, "eth9"},
    {"no address yet", no_address_yet, "rendezvous", CHECK_WARNING, true, "not known"},
    {"a wrong variable", wrong_environment, "rendezvous", CHECK_BROKEN, false, "WORLD_SIZE=two"},
    {"one process", alone, "rendezvous", CHECK_OK, true, "no other is met"},
};

static const struct check_row *row_of(const struct checkup *c, const char *what)
{
    for (int i = 0; i < c->count; i++)
        if (strcmp(c->rows[i].what, what) == 0)
            return &c->rows[i];
    fail_msg("there is no row %s", what);
    return NULL;
}

static void each_is_told(void **state)
{
    (void)state;
    static struct checkup c;
    for (size_t i = 0; i < array_length(rows); i++) {
        struct doctor_facts f = healthy();
        rows[i].change(&f);
        checkup_make(&f, &c);
        const struct check_row *row = row_of(&c, rows[i].what);
        if (row->status != rows[i].status || c.can_train != rows[i].can_train)
            fail_msg("%s: %s is %s (%s), training %s", rows[i].name, rows[i].what,
                     check_status_name(row->status), row->found,
                     c.can_train ? "can start" : "cannot start");
        if (!strstr(row->found, rows[i].told) && !strstr(row->means, rows[i].told) &&
            !strstr(row->mend, rows[i].told))
            fail_msg("%s: no \"%s\" in: %s - %s - %s", rows[i].name, rows[i].told, row->found,
                     row->means, row->mend);
    }
}

/* What is not well has a meaning and a mend; what stops training is no other row's fault. */
static void what_is_wrong_has_a_mend(void **state)
{
    (void)state;
    static struct checkup c;
    for (size_t i = 0; i < array_length(rows); i++) {
        struct doctor_facts f = healthy();
        rows[i].change(&f);
        checkup_make(&f, &c);
        for (int k = 0; k < c.count; k++) {
            const struct check_row *row = &c.rows[k];
            if (row->status != CHECK_OK && !(row->means[0] && row->mend[0]))
                fail_msg("%s: %s (%s) has no mend", rows[i].name, row->what, row->found);
            if (row->is_fatal && (row->status == CHECK_OK || strcmp(row->what, rows[i].what) != 0))
                fail_msg("%s: %s (%s) stops training", rows[i].name, row->what, row->found);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_is_told),
        cmocka_unit_test(what_is_wrong_has_a_mend),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
