/* What the operator makes of a node: whether it bears a sign of bad hardware that others have put
 * there (NVSentinel, node-problem-detector), whether new pods may come to it, and which other nodes
 * are like it. Pure.
 *
 * Signs are two lists with commas. Of taints: KEY[=VALUE][:EFFECT], as kubectl taint writes them;
 * a key that ends in * stands for all that begin so. Of conditions: TYPE[=STATUS], without STATUS
 * True. A taint with effect PreferNoSchedule is a sign only where the list names that effect. */
#ifndef SHOAL_OPERATOR_JOB_NODE_H
#define SHOAL_OPERATOR_JOB_NODE_H

#include "operator/job/types.h"

struct arena;

struct taint {
    const char *key, *value, *effect;
};

struct node_condition {
    const char *type, *status, *reason, *message;
};

/* Absent texts are "". */
struct node {
    const char *name;
    bool unschedulable; /* cordoned */
    struct taint *taints;
    size_t taint_count;
    struct node_condition *conditions;
    size_t condition_count;
    struct pairs capacity; /* by resource */
};

struct node_signs {
    const char *taints, *conditions;
};

/* Of NVSentinel (docs.nvidia.com/nvsentinel, integrations), node-problem-detector (its kernel
 * monitor's permanent problems, and those of AKS for GPUs) and EKS' node monitoring agent. Not
 * node.kubernetes.io/unschedulable: that is a drain, whose evictions the operator answers. */
#define NODE_TAINTS                                                                                \
    "nvidia.com/gpu-error,nvidia.com/gpu-xid-error,nvidia.com/gpu-nvlink-error,"                   \
    "nvidia.com/syslog-xid-error,gpu.health/*,nvlink.health/*,nvswitch.health/*"
#define NODE_CONDITIONS                                                                            \
    "GpuMemWatch,GpuNvlinkWatch,GpuPcieWatch,GpuInforomWatch,GpuSmWatch,GpuMcuWatch,GpuPmuWatch,"  \
    "SysLogsXIDError,SysLogsSXIDError,SysLogsGPUFallenOff,NVSwitchFatalError,NVSwitchDown,"        \
    "KernelDeadlock,ReadonlyFilesystem,GPUMissing,NVLinkStatusInactive,IBLinkFlapping,"            \
    "AcceleratedHardwareReady=False,KernelReady=False"

/* Why a list of signs cannot be read, for people; NULL: it can. */
const char *node_taints_problem(const char *list, struct arena *arena);
const char *node_conditions_problem(const char *list, struct arena *arena);

/* The node's first sign, for people: "taint KEY=VALUE:EFFECT", or "condition TYPE is STATUS
 * (REASON: MESSAGE)"; NULL: none. */
const char *node_sign(const struct node *node, const struct node_signs *signs, struct arena *arena);

/* Whether it is Ready, not cordoned, and Kubernetes itself keeps no pods from it (its own taints,
 * node.kubernetes.io/..., such as for a full disk). */
bool node_takes_pods(const struct node *node);

/* Nodes with an equal kind offer the same devices and are set apart for the same pods: all extended
 * resources (nvidia.com/gpu=8), and the taints that are neither Kubernetes' own nor signs. */
const char *node_kind(const struct node *node, const struct node_signs *signs, struct arena *arena);
#endif
