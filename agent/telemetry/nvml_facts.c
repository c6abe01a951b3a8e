/* The machine's GPUs, as the driver counts them. */
#include "agent/telemetry/nvml_internal.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* NVML writes a domain of eight digits, and capitals. */
static void read_pci(const struct nvml_functions *fn, nvml_device device, struct nvml_gpu *ret)
{
    struct nvml_pci_info pci;
    unsigned domain, bus, slot;
    if (works(fn->DeviceGetPciInfo_v3, device, &pci) &&
        sscanf(pci.bus_id, "%x:%x:%x", &domain, &bus, &slot) == 3)
        snprintf(ret->pci, sizeof ret->pci, "%04x:%02x:%02x.0", domain, bus, slot);
}

static void read_gpu(const struct nvml_functions *fn, nvml_device device, struct nvml_gpu *ret)
{
    unsigned mode, after_reset, rows[4];
    unsigned long long errors;
    read_pci(fn, device, ret);
    if (!works(fn->DeviceGetName, device, ret->model, sizeof ret->model))
        ret->model[0] = '\0';
    ret->is_mig = works(fn->DeviceGetMigMode, device, &mode, &after_reset) && mode == NVML_MIG_ON;
    ret->ecc_uncorrected =
        works(fn->DeviceGetTotalEccErrors, device, NVML_ECC_UNCORRECTED, NVML_ECC_VOLATILE, &errors)
            ? (double)errors
            : (double)NAN;
    ret->row_failure =
        works(fn->DeviceGetRemappedRows, device, &rows[0], &rows[1], &rows[2], &rows[3]) && rows[3];
}

void nvml_read_facts(struct nvml_facts *ret)
{
    struct nvml_functions fn;
    nvml_device device;
    void *library;
    unsigned count = 0;
    memset(ret, 0, sizeof *ret);
    ret->library.name = "NVML";
    bool has_started = nvml_start(&fn, &library, &ret->library.why) == 0;
    if (library)
        snprintf(ret->library.file, sizeof ret->library.file, "%s", library_file(library));
    if (!has_started)
        return;
    if (!works(fn.SystemGetDriverVersion, ret->driver, sizeof ret->driver))
        ret->driver[0] = '\0';
    snprintf(ret->library.version, sizeof ret->library.version, "%.20s", ret->driver);
    if (!works(fn.SystemGetCudaDriverVersion_v2, &ret->cuda))
        ret->cuda = 0;
    if (works(fn.DeviceGetCount_v2, &count))
        for (unsigned i = 0; i < count && ret->count < GPU_MAX; i++)
            if (works(fn.DeviceGetHandleByIndex_v2, i, &device))
                read_gpu(&fn, device, &ret->gpus[ret->count++]);
    fn.Shutdown();
}
