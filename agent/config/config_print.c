#include "agent/config/config_keys.h"

#include <string.h>

static const char *const source_names[] = {
    [SOURCE_DEFAULT] = "default",         [SOURCE_PRESET] = "preset", [SOURCE_FILE] = "file",
    [SOURCE_ENVIRONMENT] = "environment", [SOURCE_FLAG] = "flag",
};

/* The AWS guide's table. */
static void add_strategies(struct str *out)
{
    static const struct {
        const char *name, *model, *meaning;
    } rows[] = {
        {"strategy", "model size", ""},
        {"FULL_SHARD", "10B and more", "everything in slices: least memory, most traffic"},
        {"SHARD_GRAD_OP", "1B to 10B", "parameters stay whole within a step: less traffic"},
        {"NO_SHARD", "below 1B", "everything whole on each rank: gradients are summed only"},
        {"HYBRID_SHARD", "several nodes", "FULL_SHARD within a node, copies between nodes"},
        {"HYBRID_SHARD_ZERO2", "several nodes", "SHARD_GRAD_OP within a node, likewise"},
    };
    str_add(out, "\nSharding strategies (auto chooses by size; shoal recommend names machines, "
                 "too):\n");
    for (size_t i = 0; i < array_length(rows); i++)
        str_printf(out, rows[i].meaning[0] ? "  %-18s  %-13s  %s\n" : "  %-18s  %s\n", rows[i].name,
                   rows[i].model, rows[i].meaning);
}

static void add_choices(const struct config_key *key, struct str *out)
{
    str_add(out, "      one of: ");
    if (key->choices)
        config_choices_text(key, out);
    else
        str_add(out, key->low_words);
    str_add(out, "\n");
}

/* What the key means, and which optimizers read it. */
static void add_meaning(const struct config_key *key, struct str *out)
{
    str_add(out, key->help);
    if (key->more_help) {
        str_add(out, "; ");
        key->more_help(out);
    }
    for (int i = 0; i < CONFIG_MAX_NEEDS; i++) {
        auto_str struct str users;
        str_init(&users, 256);
        if (config_need_optimizers(key->needs[i], &users))
            str_printf(out, " (%s)", str_text(&users));
    }
}

void config_help(struct str *out)
{
    str_add(
        out,
        "Usage: shoal-agent [--preset NAME] [--config FILE]... [--KEY=VALUE]... [@FILE]...\n"
        "       shoal-agent doctor [--device DEVICE] [--json]  (tells whether training can start)\n"
        "\n"
        "Trains a model, sharded over the ranks that the environment names (MASTER_ADDR, RANK,\n"
        "WORLD_SIZE, PET_*). A key's group may be left out where its name is unique; '-' and '_' are\n"
        "equal. Stronger sources first: flag, environment (AGENT_<GROUP>_<NAME>), --config file (YAML),\n"
        "preset, default. @FILE holds more flags.\n"
        "\n"
        "Presets:\n");
    for (int i = 0; i < config_preset_count; i++)
        str_printf(out, "  %-18s  %s\n", config_presets[i].name, config_presets[i].help);
    add_strategies(out);
    const char *group = "";
    for (int i = 0; i < config_key_count(); i++) {
        const struct config_key *key = config_key(i);
        if (strcmp(group, key->group) != 0)
            str_printf(out, "\n%s:\n", key->group);
        group = key->group;
        str_printf(out, "  --%s.%s (default: %s)\n      ", key->group, key->name,
                   key->default_value[0] ? key->default_value : "none");
        add_meaning(key, out);
        str_add(out, "\n");
        if (key->choices || key->low_words)
            add_choices(key, out);
        if (key->other_names)
            str_printf(out, "      also: %s\n", key->other_names);
    }
}

/* A cell of a table: '|' would end it. */
static void add_cell(const char *text, struct str *out)
{
    str_add(out, " ");
    for (const char *c = text; *c; c++)
        str_add_bytes(out, *c == '|' ? "\\|" : c, *c == '|' ? 2 : 1);
    str_add(out, " |");
}

static void add_choices_cell(const struct config_key *key, struct str *out)
{
    auto_str struct str text;
    str_init(&text, 1024);
    config_choices_text(key, &text);
    add_cell(str_text(&text), out);
}

static void add_meaning_cell(const struct config_key *key, struct str *out)
{
    auto_str struct str text;
    str_init(&text, 4096);
    add_meaning(key, &text);
    add_cell(str_text(&text), out);
}

static void add_range(const struct config_key *key, struct str *out)
{
    static const char *const words[] = {
        [TYPE_INT] = "whole",     [TYPE_SIZE] = "bytes",       [TYPE_FLOAT] = "number",
        [TYPE_DURATION] = "time", [TYPE_BOOL] = "true, false", [TYPE_TEXT] = "text",
    };
    if (key->type == TYPE_CHOICE)
        add_choices_cell(key, out);
    else if (key->type == TYPE_BOOL || key->type == TYPE_TEXT)
        str_printf(out, " %s |", words[key->type]);
    else
        str_printf(out, " %s, %.15g to %.15g%s%s |", words[key->type], key->low, key->high,
                   key->low_words ? " or " : "", key->low_words ? key->low_words : "");
}

void config_markdown(struct str *out)
{
    str_add(
        out,
        "# Configuration\n\n"
        "Every key of `shoal-agent`, made by `shoal-agent --help=markdown`.\n\n"
        "A key is `group.name`. On the command line a name that is unique needs no group. `-` and "
        "`_` are equal. An\nunambiguous prefix of a name stands for it. `@FILE` holds more flags.\n\n"
        "Sources, the strongest first: flag, environment (`AGENT_<GROUP>_<NAME>`), "
        "`--config FILE` (a later one wins),\npreset, default.\n\n"
        "Numbers may be written `1e8` or `20_000`, bytes with `KiB`, `MiB` or `GiB`, times with "
        "`s`, `m` or `h`.\nThe case of a choice does not matter; `A=B` are spellings of one.\n\n"
        "An unknown `--group.name` is an error, and so is a flag that one slip of the keys parts from "
        "a name on\nthis page (`--hiden_width`). Each message names the nearest. Any other unknown "
        "flag or variable is a\nwarning, with `--strict` an error.\n\n"
        "## Presets\n\n"
        "`--preset A,B` (or `preset:` in a file) applies several; a later one is the "
        "stronger.\n\n| preset | what |\n| --- | --- |\n");
    for (int i = 0; i < config_preset_count; i++)
        str_printf(out, "| %s | %s |\n", config_presets[i].name, config_presets[i].help);
    const char *group = "";
    for (int i = 0; i < config_key_count(); i++) {
        const struct config_key *key = config_key(i);
        if (strcmp(group, key->group) != 0)
            str_printf(out,
                       "\n## %s\n\n| key | default | allowed | meaning | other names |\n"
                       "| --- | --- | --- | --- | --- |\n",
                       key->group);
        group = key->group;
        str_printf(out, "| %s | %s |", key->name, key->default_value);
        add_range(key, out);
        add_meaning_cell(key, out);
        add_cell(key->other_names ? key->other_names : "", out);
        str_add(out, "\n");
    }
}

/* Text in single quotes, where YAML knows no escape but the doubled quote. */
static void add_yaml_scalar(const struct config_key *key, const struct config *config,
                            struct str *out)
{
    if (key->type != TYPE_TEXT && key->type != TYPE_CHOICE) {
        config_get_value(key, &config->value, out);
        return;
    }
    auto_str struct str value;
    str_init(&value, 4096);
    config_get_value(key, &config->value, &value);
    str_add(out, "'");
    for (const char *c = str_text(&value); *c; c++)
        str_add_bytes(out, *c == '\'' ? "''" : c, *c == '\'' ? 2 : 1);
    str_add(out, "'");
}

/* The headings between two keys: "group:", and below it "map:". */
static void add_yaml_heading(const char *before, const char *group, struct str *out)
{
    size_t top = strcspn(group, ".");
    if (strlen(before) < top || strncmp(before, group, top) != 0)
        str_printf(out, "%.*s:\n", (int)top, group);
    if (group[top] && strcmp(before, group) != 0)
        str_printf(out, "  %s:\n", group + top + 1);
}

void config_yaml(const struct config *config, struct str *out)
{
    const char *group = "";
    for (int i = 0; i < config_key_count(); i++) {
        const struct config_key *key = config_key(i);
        add_yaml_heading(group, key->group, out);
        group = key->group;
        str_printf(out, "  %s%s: ", strchr(group, '.') ? "  " : "", key->name);
        add_yaml_scalar(key, config, out);
        str_printf(out, " # %s\n", source_names[config->source[i]]);
    }
}

int config_entries(const struct config *config, struct arena *arena,
                   struct config_entry **ret_entries)
{
    int count = config_key_count();
    struct config_entry *entries = arena_array(arena, struct config_entry, count);
    auto_str struct str value;
    str_init(&value, 64 * 1024);
    for (int i = 0; i < count; i++) {
        const struct config_key *key = config_key(i);
        str_clear(&value);
        config_get_value(key, &config->value, &value);
        entries[i] = (struct config_entry){
            .key = arena_printf(arena, "%s.%s", key->group, key->name),
            .value = arena_strdup(arena, str_text(&value)),
            .is_number = key->type != TYPE_TEXT && key->type != TYPE_CHOICE,
            .is_path = key->is_path,
            .ranks_match = config_ranks_must_match(i),
        };
    }
    *ret_entries = entries;
    return count;
}

static void add_setting(const struct config *config, int i, struct str *out)
{
    const struct config_key *key = config_key(i);
    str_printf(out, "%s.%s=", key->group, key->name);
    config_get_value(key, &config->value, out);
    str_printf(out, " (%s)", source_names[config->source[i]]);
}

void config_summary_lines(const struct config *config, const char *prefix, size_t columns,
                          struct str *out)
{
    const char *group = NULL; /* of the line that is being written */
    size_t width = 0, begin = out->length;
    auto_str struct str setting;
    str_init(&setting, 64 * 1024);
    for (int i = 0; i < config_key_count(); i++) {
        const char *this_group = config_key(i)->group;
        size_t top = strcspn(this_group, ".");
        if (config->source[i] == SOURCE_DEFAULT)
            continue;
        str_clear(&setting);
        add_setting(config, i, &setting);
        bool goes_on = group && strncmp(group, this_group, top) == 0 &&
                       (group[top] == '.' || group[top] == '\0') &&
                       width + strlen(", ") + setting.length <= columns;
        if (!goes_on && group)
            str_add(out, "\n");
        if (!goes_on)
            begin = out->length;
        str_printf(out, "%s%s", goes_on ? ", " : prefix, str_text(&setting));
        width = out->length - begin;
        group = this_group;
    }
    if (group)
        str_add(out, "\n");
}
