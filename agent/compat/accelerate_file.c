#include "agent/compat/accelerate_file.h"

#include "base/nearest.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { ANSWER_MAX_BYTES = 256, ASKED_AGAIN = 3 };

/* ---- where ---- */

/* The folder's place and its name there; in *ret_folder. */
static bool find_folder(getenv_fn *lookup, void *ctx, struct arena *arena, const char **ret_folder)
{
    static const struct {
        const char *variable, *below;
    } candidates[] = {{"HF_HOME", "accelerate"},
                      {"XDG_CACHE_HOME", "huggingface/accelerate"},
                      {"HOME", ".cache/huggingface/accelerate"}};
    for (size_t i = 0; i < array_length(candidates); i++) {
        const char *value = lookup(ctx, candidates[i].variable);
        if (!value || !value[0])
            continue;
        *ret_folder = arena_printf(arena, "%s/%s", value, candidates[i].below);
        return true;
    }
    return false;
}

const char *accelerate_default_file(getenv_fn *lookup, void *ctx, struct arena *arena)
{
    const char *folder;
    return find_folder(lookup, ctx, arena, &folder)
               ? arena_printf(arena, "%s/default_config.yaml", folder)
               : NULL;
}

const char *accelerate_find_file(getenv_fn *lookup, void *ctx, struct arena *arena)
{
    static const char *const names[] = {"default_config.yaml", "default_config.json"};
    const char *folder;
    if (!find_folder(lookup, ctx, arena, &folder))
        return NULL;
    for (size_t i = 0; i < array_length(names); i++) {
        const char *path = arena_printf(arena, "%s/%s", folder, names[i]);
        if (access(path, R_OK) == 0)
            return path;
    }
    return NULL;
}

/* ---- what ---- */

#define BOOLEAN "true false"

/* The file's keys in their order; those of fsdp_config begin with fsdp_. */
static const struct row {
    const char *key, *value; /* the default */
    const char *choices;     /* separated by spaces; NULL: any text, "": a whole number */
    const char *question;    /* NULL: never asked for */
} rows[] = {
    {"compute_environment", "LOCAL_MACHINE", "LOCAL_MACHINE", NULL},
    {"debug", "false", BOOLEAN, NULL},
    {"distributed_type", "FSDP", "FSDP MULTI_GPU MULTI_CPU 'NO'", "How do the processes share?"},
    {"downcast_bf16", "'no'", NULL, NULL},
    {"fsdp_activation_checkpointing", "false", BOOLEAN, "Compute activations again in backward?"},
    {"fsdp_auto_wrap_policy", "TRANSFORMER_BASED_WRAP",
     "TRANSFORMER_BASED_WRAP SIZE_BASED_WRAP NO_WRAP", "Which modules become units?"},
    {"fsdp_backward_prefetch", "BACKWARD_PRE", "BACKWARD_PRE BACKWARD_POST NO_PREFETCH",
     "When is the next unit gathered in backward?"},
    {"fsdp_cpu_ram_efficient_loading", "true", BOOLEAN, NULL},
    {"fsdp_forward_prefetch", "false", BOOLEAN, NULL},
    {"fsdp_min_num_params", "", "", NULL},
    {"fsdp_offload_params", "false", BOOLEAN, "Keep parameters and optimizer on the host?"},
    {"fsdp_sharding_strategy", "FULL_SHARD",
     "FULL_SHARD SHARD_GRAD_OP NO_SHARD HYBRID_SHARD HYBRID_SHARD_ZERO2",
     "What is cut into slices?"},
    {"fsdp_state_dict_type", "SHARDED_STATE_DICT",
     "FULL_STATE_DICT LOCAL_STATE_DICT SHARDED_STATE_DICT", "What do checkpoints hold?"},
    {"fsdp_sync_module_states", "true", BOOLEAN, NULL},
    {"fsdp_transformer_layer_cls_to_wrap", "", NULL,
     "Which classes are units, with commas? (empty: the model's blocks)"},
    {"fsdp_use_orig_params", "true", BOOLEAN, NULL},
    {"fsdp_version", "1", "1 2", NULL},
    {"machine_rank", "0", "", NULL},
    {"main_process_ip", "", NULL, NULL},
    {"main_process_port", "", "", NULL},
    {"main_training_function", "main", NULL, NULL},
    {"mixed_precision", "bf16", "bf16 'no'", "In which numbers is it computed?"},
    {"num_machines", "1", "", "How many machines are there?"},
    {"num_processes", "1", "", "How many processes are there on all of them?"},
    {"rdzv_backend", "static", "static c10d", NULL},
    {"same_network", "true", BOOLEAN, NULL},
    {"use_cpu", "false", BOOLEAN, "Without GPUs?"},
};

/* The choice that `text` is, by its name, with or without quotes, or by its number from 1. */
static const char *find_choice(struct arena *arena, const char *choices, const char *text)
{
    char *end;
    long number = strtol(text, &end, 10);
    if (*end || end == text)
        number = 0;
    for (const char *c = choices; *c;) {
        size_t length = strcspn(c, " ");
        const char *choice = arena_strndup(arena, c, length);
        const char *bare = choice[0] == '\'' ? arena_strndup(arena, c + 1, length - 2) : choice;
        if (strcasecmp(text, bare) == 0 || strcasecmp(text, choice) == 0 || --number == 0)
            return choice;
        c += length + (c[length] == ' ');
    }
    return NULL;
}

/* The value as the file has it. */
static int check(struct arena *arena, const struct row *row, const char *text,
                 const char **ret_value, struct error *err)
{
    *ret_value = text;
    if (!row->choices || !text[0])
        return 0;
    if (row->choices[0])
        *ret_value = find_choice(arena, row->choices, text);
    else if (strspn(text, "-0123456789") != strlen(text))
        *ret_value = NULL;
    if (*ret_value)
        return 0;
    return error_set(err, ERR_CONFIG, "%s: '%s'%s is not %s%s", row->key, text,
                     nearest_note(text, row->choices, " '").text,
                     row->choices[0] ? "one of: " : "a whole number", row->choices);
}

/* What was given for a key; NULL: nothing. */
static const char *find_value(const char *const *values, const char *key)
{
    size_t length = strlen(key);
    for (; *values; values++) {
        const char *value = *values + strspn(*values, "-");
        if (strncmp(value, key, length) == 0 && value[length] == '=')
            return value + length + 1;
    }
    return NULL;
}

static int refuse_key(const char *given, struct error *err)
{
    char name[64];
    auto_str struct str keys;
    str_init(&keys, 4096);
    for (size_t i = 0; i < array_length(rows); i++)
        str_printf(&keys, " %s", rows[i].key);
    const char *key = given + strspn(given, "-");
    snprintf(name, sizeof name, "%.*s", (int)strcspn(key, "="), key);
    return error_set(err, ERR_CONFIG, "'%s': give KEY=VALUE, with a key of the file%s", given,
                     nearest_note(name, str_text(&keys), " ").text);
}

static int refuse_unknown(const char *const *values, struct error *err)
{
    for (; *values; values++) {
        const char *value = *values + strspn(*values, "-");
        size_t length = strcspn(value, "="), i = 0;
        while (i < array_length(rows) &&
               (strlen(rows[i].key) != length || strncmp(rows[i].key, value, length) != 0))
            i++;
        if (i == array_length(rows) || !value[length])
            return refuse_key(*values, err);
    }
    return 0;
}

static int ask(struct arena *arena, const struct row *row, FILE *in, FILE *out,
               const char **ret_value, struct error *err)
{
    char line[ANSWER_MAX_BYTES];
    for (int i = 0; i < ASKED_AGAIN; i++) {
        fprintf(out, "%s", row->question);
        int number = 1;
        for (const char *c = row->choices ? row->choices : ""; *c; number++) {
            size_t length = strcspn(c, " ");
            fprintf(out, "%s%d %.*s", number > 1 ? ", " : " (", number, (int)length, c);
            c += length + (c[length] == ' ');
        }
        fprintf(out, "%s [%s] ", number > 1 ? ")" : "", row->value);
        fflush(out);
        if (!fgets(line, sizeof line, in)) {
            *ret_value = row->value;
            return 0;
        }
        line[strcspn(line, "\n")] = '\0';
        if (check(arena, row, line[0] ? arena_strdup(arena, line) : row->value, ret_value, err) ==
            0)
            return 0;
        fprintf(out, "%s\n", err->msg);
    }
    return -1;
}

int accelerate_write_file(const char *const *values, FILE *in, FILE *out, struct str *text,
                          struct error *err)
{
    auto_arena struct arena *arena = arena_open();
    bool is_fsdp = true, in_fsdp = false;
    if (refuse_unknown(values, err))
        return -1;
    for (size_t i = 0; i < array_length(rows); i++) {
        const struct row *row = &rows[i];
        bool of_fsdp = str_starts_with(row->key, "fsdp_");
        const char *given = find_value(values, row->key), *value = row->value;
        if (given ? check(arena, row, given, &value, err)
                  : in && row->question && (is_fsdp || !of_fsdp) &&
                        ask(arena, row, in, out, &value, err))
            return -1;
        if (strcmp(row->key, "distributed_type") == 0)
            is_fsdp = strcmp(value, "FSDP") == 0;
        if ((of_fsdp && !is_fsdp) || !value[0])
            continue;
        if (of_fsdp && !in_fsdp)
            str_add(text, "fsdp_config:\n");
        in_fsdp = of_fsdp;
        str_printf(text, "%s%s: %s\n", of_fsdp ? "  " : "", row->key, value);
    }
    return 0;
}
