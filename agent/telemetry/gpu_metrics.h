/* GPUs' values as Prometheus metrics, under our own names, under those of NVIDIA's DCGM exporter
 * (which dashboards such as Grafana's 12239 ask for), or both. Pure. */
#ifndef SHOAL_AGENT_TELEMETRY_GPU_METRICS_H
#define SHOAL_AGENT_TELEMETRY_GPU_METRICS_H

#include "agent/telemetry/gpu_sample.h"
#include "base/str.h"

/* Of the configuration's logging.metric_names. DCGM's names beside a real exporter would count
 * every GPU twice, so ours are the default. */
enum gpu_names { GPU_NAMES_NATIVE, GPU_NAMES_DCGM, GPU_NAMES_BOTH };

/* Where the GPUs are, for labels; "": the label is left out. */
struct gpu_labels {
    const char *driver;   /* its version */
    const char *hostname; /* of the node, as far as it is known */
    const char *pod_namespace, *pod, *container;
    const char *job;
};

/* All metrics of all GPUs; what none of them reports is left out. */
void gpu_metrics_print(const struct gpu_sample *gpus, int count, enum gpu_names names,
                       const struct gpu_labels *labels, struct str *out);
#endif
