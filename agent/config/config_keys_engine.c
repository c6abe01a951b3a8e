/* The keys of sharding, precision and memory. */
#include "agent/config/config_keys.h"

#include "agent/models/families.h"
#include "agent/shard/shard.h"

#define FAMILY_BLOCK(name, spellings, block) "=" block

static const struct config_key keys[] = {
    KEY_CHOICE("parallel", "sharding_strategy", parallel.strategy, "FULL_SHARD",
               CHOICES({"FULL_SHARD=1=full", FULL_SHARD}, {"SHARD_GRAD_OP=2", SHARD_GRAD_OP},
                       {"NO_SHARD=3=ddp", NO_SHARD},
                       {"HYBRID_SHARD=4=hybrid=_HYBRID_SHARD", HYBRID_SHARD},
                       {"HYBRID_SHARD_ZERO2=5=_HYBRID_SHARD_ZERO2", HYBRID_SHARD_ZERO2},
                       {"auto", STRATEGY_AUTO}),
               "fsdp_sharding_strategy",
               "what is cut into slices, one per rank. auto: NO_SHARD below 1e9 parameters, "
               "SHARD_GRAD_OP below 1e10, FULL_SHARD above; it never chooses HYBRID_SHARD, which "
               "spares traffic between nodes",
               .environment = "FSDP_SHARDING_STRATEGY"),
    KEY_INT("parallel", "shard_group_size", parallel.shard_group_size, "0", 0, 1e6, NULL,
            "HYBRID: consecutive ranks that share one copy; 0: the ranks of a node (of nodes with "
            "different numbers: what divides them all)",
            .needs = {NEED_HYBRID}),
    KEY_CHOICE(
        "parallel", "auto_wrap_policy", parallel.wrap_policy, "auto",
        CHOICES({"NO_WRAP=3=none", WRAP_NONE}, {"SIZE_BASED_WRAP=2", WRAP_SIZE},
                {"TRANSFORMER_BASED_WRAP=1" LANGUAGE_FAMILIES(FAMILY_BLOCK, ) "=llama=gpt2",
                 WRAP_TRANSFORMER},
                {"auto", WRAP_AUTO}),
        "fsdp_auto_wrap_policy fsdp_wrap_policy",
        "which modules become units of their own; auto: the blocks, where the model has some",
        .environment = "FSDP_AUTO_WRAP_POLICY"),
    KEY_TEXT("parallel", "transformer_layer_cls_to_wrap", parallel.wrap_classes, "",
             "fsdp_transformer_layer_cls_to_wrap",
             "TRANSFORMER_BASED_WRAP: class names, separated by commas; empty: the model's blocks",
             .environment = "FSDP_TRANSFORMER_CLS_TO_WRAP", .needs = {NEED_WRAP_BY_CLASS}),
    KEY_INT("parallel", "min_num_params", parallel.min_num_params, "1e8", 0, 1e15,
            "fsdp_min_num_params min_num_param fsdp_min_num_param",
            "SIZE_BASED_WRAP: elements from which a module is a unit; 0: none is",
            .environment = "FSDP_MIN_NUM_PARAMS", .needs = {NEED_WRAP_BY_SIZE}),
    KEY_CHOICE("parallel", "backward_prefetch", parallel.backward_prefetch, "BACKWARD_PRE",
               CHOICES({"NO_PREFETCH=3=none", NO_PREFETCH}, {"BACKWARD_PRE=1", BACKWARD_PRE},
                       {"BACKWARD_POST=2", BACKWARD_POST}),
               "fsdp_backward_prefetch fsdp_backward_prefetch_policy backward_prefetch_policy",
               "when the next unit is gathered in backward",
               .environment = "FSDP_BACKWARD_PREFETCH", .needs = {NEED_SHARDS}),
    KEY_BOOL("parallel", "forward_prefetch", parallel.forward_prefetch, "true",
             "fsdp_forward_prefetch", "gather the next unit while this one computes",
             .environment = "FSDP_FORWARD_PREFETCH", .needs = {NEED_SHARDS}),
    KEY_BOOL("parallel", "limit_all_gathers", parallel.limit_all_gathers, "true",
             "fsdp_limit_all_gathers", "at most two units unsharded and not yet resharded",
             .needs = {NEED_SHARDS}),
    KEY_INT("parallel", "reduction_slots", parallel.reduction_slots, "auto", -1, 1e6, NULL,
            "ranks as which to compute, to the same bits on fewer ranks: each of these takes the "
            "parts of several in turns; 0: as many as there are; auto: as the checkpoint has it, "
            "else in an elastic run those that it begins with, else 0",
            .low_words = "auto"),
    KEY_BOOL("parallel", "sync_module_states", parallel.sync_module_states, "true",
             "fsdp_sync_module_states",
             "no effect: all ranks begin with the same values in any case",
             .environment = "FSDP_SYNC_MODULE_STATES"),
    KEY_BOOL("parallel", "cpu_ram_efficient_loading", parallel.cpu_ram_efficient_loading, "true",
             "fsdp_cpu_ram_efficient_loading",
             "no rank holds a whole model on the host: each reads its own slices in any case; "
             "no effect, but needs sync_module_states",
             .environment = "FSDP_CPU_RAM_EFFICIENT_LOADING"),

    KEY_CHOICE("precision", "mixed_precision", precision.mixed, "auto",
               CHOICES({"auto", PRECISION_AUTO}, {"no=false=fp32=32-true=32", PRECISION_FP32},
                       {"bf16=bf16-mixed", PRECISION_BF16_MIXED},
                       {"bf16-true", PRECISION_BF16_TRUE}),
               "precision",
               "bf16: computes in bf16, keeps fp32; bf16-true: keeps bf16 too, rounding at random; "
               "auto: bf16 for language models, else no",
               .environment = "ACCELERATE_MIXED_PRECISION"),
    KEY_CHOICE("precision", "reduce_dtype", precision.reduce_dtype, "fp32",
               CHOICES({"fp32=float32", STATE_FP32}, {"bf16=bfloat16", STATE_BF16}), NULL,
               "in which gradients are summed over ranks"),
    KEY_BOOL("precision", "fp8", precision.fp8, "false", NULL,
             "linear layers of transformer blocks multiply numbers of 8 bits: e4m3 values and "
             "weights, e5m2 gradients, each tensor with a scale of the moment; the rest stays "
             "bf16. Faster on compute capability 8.9 and newer, older GPUs refuse it; slower on "
             "the CPU",
             .needs = {NEED_LANGUAGE}),

    KEY_CHOICE(
        "memory", "activation_checkpointing", memory.activation_checkpointing, "none",
        CHOICES({"none=0=false=no=off", RECOMPUTE_NONE}, {"full=1=true=yes=on", RECOMPUTE_FULL},
                {"selective", RECOMPUTE_SELECTIVE}),
        "use_checkpointing fsdp_activation_checkpointing gradient_checkpointing",
        "compute activations again in backward; full: of each block; selective: of norms and "
        "element-wise parts",
        .implied = "full", .environment = "FSDP_ACTIVATION_CHECKPOINTING",
        .needs = {NEED_LANGUAGE}),
    KEY_BOOL("memory", "offload_activations", memory.offload_activations, "false",
             "fsdp_activation_checkpointing_offload", "activations wait on the host for backward",
             .needs = {NEED_LANGUAGE}),
    KEY_INT("memory", "activation_loading_horizon", memory.activation_loading_horizon, "2", 1, 1e3,
            NULL, "offload_activations: blocks brought back ahead",
            .needs = {NEED_OFFLOADED_ACTIVATIONS}),
    KEY_BOOL("memory", "cpu_offload", memory.cpu_offload, "false",
             "use_offload fsdp_offload_params offload_params fsdp_cpu_offload",
             "parameters, gradients and optimizer live on the host",
             .environment = "FSDP_OFFLOAD_PARAMS"),
    KEY_BOOL("memory", "log_memory", memory.log_memory, "false", "with_tracking",
             "print what memory each epoch began with, added, and took at most"),
};

const struct config_table config_table_engine = {keys, sizeof keys / sizeof keys[0], RANKS_MATCH};
