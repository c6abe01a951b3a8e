/* YAML to job, and on to a plan and its pods: whatever the bytes, there is a job or a message, and
 * a valid job can be planned. */
#include "tests/fuzz/fuzz.h"

#include "base/json.h"
#include "base/mem.h"
#include "operator/decode/decode.h"
#include "operator/decode/decode_status.h"
#include "operator/manifest/pod.h"
#include "operator/reconcile/reconcile.h"

#include <assert.h>

static void plan(const struct job *job, const struct job_status *status, struct arena *arena)
{
    struct snapshot snapshot = {.job = job, .status = status, .now_ms = 1};
    reconcile(&snapshot, arena);
    for (int type = 0; type < REPLICA_TYPES; type++)
        if (job->replicas[type].present && !job->invalid)
            assert(pod_build(job, &status->history, type, 0, &(struct pod_options){0}, arena));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct manifest *manifest = NULL;
    struct error err = {0};
    int result = decode_manifest((const char *)data, size, "fuzz", 6, &manifest, &err);
    assert(result == 0 || (err.msg[0] && manifest->problems.count > 0));
    assert(result != 0 || manifest->job_count > 0);
    struct job_status nothing = {0};
    for (size_t i = 0; i < manifest->job_count; i++) {
        const struct json *document = json_at(manifest->documents, i);
        struct job_status claimed = decode_status(json_get(document, "status"), manifest->arena);
        plan(manifest->jobs[i], &nothing, manifest->arena);
        plan(manifest->jobs[i], &claimed, manifest->arena);
    }
    decode_close(manifest);
    return 0;
}
