#include "agent/config/script.h"

#include "agent/config/config_keys.h"
#include "base/file.h"

#include <ctype.h>
#include <string.h>

enum { MAX_BYTES = 1 << 20, MAX_VALUE = 80 };

#define NETWORK                                                                                    \
    "nn.Conv2d(1,32,3,1)", "nn.Conv2d(32,64,3,1)", "nn.Linear(9216,128)", "nn.Linear(128,10)"

static const struct {
    const char *script, *preset;
    bool for_accelerate;
    const char *marks[8]; /* what the script has, without blanks; NULL behind them */
} scripts[] = {
    {"train.py", "hyperpod", false, {"model_utils"}},
    {"FSDP_mnist.py", "mnist-fsdp", true, {NETWORK, "Adadelta(", "StepLR(", "FSDP("}},
    {"DDP_mnist.py", "mnist-ddp", true, {NETWORK, "Adadelta(", "StepLR("}},
    {"mnist-ddp.py", "mnist-ddp-adam", true, {NETWORK, "Adam("}},
    {"t5-fsdp.py", "t5-fsdp", true, {"T5ForConditionalGeneration"}},
    {"", "trainer", true, {"Trainer("}}, /* any other under accelerate */
};
enum { ANY = sizeof scripts / sizeof scripts[0] - 1 };

static size_t find(const char *script, bool by_accelerate)
{
    const char *name = str_after_last(script, '/');
    size_t i = 0;
    while (i < ANY &&
           (strcmp(scripts[i].script, name) != 0 || (by_accelerate && !scripts[i].for_accelerate)))
        i++;
    return i;
}

const char *script_preset(const char *script, bool by_accelerate)
{
    size_t i = find(script, by_accelerate);
    return i == ANY && !by_accelerate ? NULL : scripts[i].preset;
}

void script_names(struct str *out)
{
    for (size_t i = 0; i < ANY; i++)
        str_printf(out, " %s", scripts[i].script);
}

/* ---- the text ---- */

/* Where a string of Python that begins at `c` ends. */
static const char *string_end(const char *c)
{
    char quote = *c;
    bool is_long = c[1] == quote && c[2] == quote;
    for (c += is_long ? 3 : 1; *c; c++)
        if (*c == '\\' && c[1])
            c++;
        else if (*c == quote && (!is_long || (c[1] == quote && c[2] == quote)))
            return c + (is_long ? 3 : 1);
        else if (*c == '\n' && !is_long)
            return c;
    return c;
}

/* Without comments, strings and blanks, but a line for each line. */
static const char *bare(const char *text, struct arena *arena)
{
    char *out = arena_alloc(arena, strlen(text) + 1), *end = out;
    while (*text) {
        if (*text == '#') {
            text += strcspn(text, "\n");
        } else if (*text == '"' || *text == '\'') {
            text = string_end(text);
        } else {
            if (*text == '\n' || !isspace((unsigned char)*text))
                *end++ = *text;
            text++;
        }
    }
    *end = '\0';
    return out;
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* The next call of the function; what follows is its arguments. NULL: there is none. */
static const char *next_call(const char *text, const char *begin, const char *function)
{
    size_t length = strlen(function);
    for (text = strstr(text, function); text; text = strstr(text + 1, function))
        if (text[length] == '(' && (text == begin || (!is_word(text[-1]) && text[-1] != '.')))
            return text + length + 1;
    return NULL;
}

/* The value of a keyword of a call whose arguments begin at `call`; "": it has none. */
static const char *keyword(const char *call, const char *name, struct arena *arena)
{
    size_t length = strlen(name);
    int depth = 0;
    for (const char *argument = call, *c = call;; c++) {
        bool closes = *c == '\0' || (depth == 0 && *c == ')');
        if (closes || (depth == 0 && *c == ',')) {
            argument += strspn(argument, "\n");
            if (strncmp(argument, name, length) == 0 && argument[length] == '=') {
                size_t bytes = (size_t)(c - argument) - length - 1;
                char *value = arena_strndup(arena, argument + length + 1, bytes);
                return arena_strndup(arena, value, strcspn(value, "\n"));
            }
            argument = c + 1;
        }
        if (closes)
            return "";
        depth += strchr("([{", *c) ? 1 : strchr(")]}", *c) ? -1 : 0;
    }
}

/* The row whose preset was taken for the script; beyond ANY: another was named. */
static size_t applied(const struct config *config)
{
    const char *name = str_after_last(config->value.runtime.script, '/');
    size_t i = 0;
    while (i <= ANY && ((i < ANY && strcmp(scripts[i].script, name) != 0) ||
                        !strstr(config->preset, scripts[i].preset)))
        i++;
    return i;
}

/* ---- what it asks for, and the configuration does not ---- */

static void tell(struct config *config, struct arena *arena, const char *what, const char *flags)
{
    const char *name = str_after_last(config->value.runtime.script, '/');
    config_add_headline(config, arena, "%s has %.*s, which is not read: say %s", name, MAX_VALUE,
                        what, flags);
}

/* The policy's own number, if the script has one. */
static const char *wrap_flags(const char *text, struct arena *arena)
{
    const char *number = strstr(text, "min_num_params=");
    size_t digits = number ? strspn(number + strlen("min_num_params="), "0123456789_") : 0;
    if (digits > 0)
        return arena_printf(arena, "--auto_wrap_policy SIZE_BASED_WRAP --min_num_params %.*s",
                            (int)digits, number + strlen("min_num_params="));
    return "--auto_wrap_policy TRANSFORMER_BASED_WRAP, or SIZE_BASED_WRAP with --min_num_params";
}

/* "ShardingStrategy.NAME" where the key is at another value. */
static void compare_name(struct config *config, struct arena *arena, const char *argument,
                         const char *value, const char *prefix, size_t field, const char *flag)
{
    auto_str struct str now;
    str_init(&now, 256);
    config_get_value(config_key(config_key_at(field)), &config->value, &now);
    const char *name = str_starts_with(value, prefix) ? value + strlen(prefix) : "";
    if (name[0] && strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_2") == strlen(name) &&
        strcmp(name, str_text(&now)) != 0)
        tell(config, arena, arena_printf(arena, "%s=%s", argument, value),
             arena_printf(arena, "%s %s", flag, name));
}

static void compare_call(struct config *config, const char *text, const char *call,
                         struct arena *arena)
{
    static const char *const policies[] = {"auto_wrap_policy", "fsdp_auto_wrap_policy"};
    const struct agent_config *c = &config->value;
    for (size_t i = 0; i < array_length(policies); i++) {
        const char *value = keyword(call, policies[i], arena);
        if (value[0] && strcmp(value, "None") != 0 && c->parallel.wrap_policy == WRAP_NONE)
            tell(config, arena, arena_printf(arena, "%s=%s", policies[i], value),
                 wrap_flags(text, arena));
    }
    const char *offload = keyword(call, "cpu_offload", arena);
    bool offloads = str_starts_with(offload, "CPUOffload(offload_params=True") ||
                    str_starts_with(offload, "CPUOffload(True");
    if (offloads && !c->memory.cpu_offload)
        tell(config, arena, arena_printf(arena, "cpu_offload=%s", offload), "--cpu_offload");
    compare_name(config, arena, "sharding_strategy", keyword(call, "sharding_strategy", arena),
                 "ShardingStrategy.", KEY_AT(parallel.strategy), "--sharding_strategy");
    compare_name(config, arena, "backward_prefetch", keyword(call, "backward_prefetch", arena),
                 "BackwardPrefetch.", KEY_AT(parallel.backward_prefetch), "--backward_prefetch");
    if (strcmp(keyword(call, "forward_prefetch", arena), "True") == 0 &&
        !c->parallel.forward_prefetch)
        tell(config, arena, "forward_prefetch=True", "--forward_prefetch");
    const char *precision = keyword(call, "mixed_precision", arena);
    if (str_starts_with(precision, "MixedPrecision(") && c->precision.mixed == PRECISION_FP32)
        tell(config, arena, arena_printf(arena, "mixed_precision=%s", precision),
             "--mixed_precision bf16");
}

/* A number that the script has as an argument's default, and nobody gave: another one than ours. */
static void compare_default(struct config *config, const char *name, const char *number,
                            struct arena *arena)
{
    struct agent_config theirs = config->value;
    struct error ignored; /* flags that are no numbers here, or no keys */
    auto_str struct str a, b;
    int index;
    bool known;
    str_init(&a, 64);
    str_init(&b, 64);
    if (config_find_key(name, &index, &known, &ignored))
        return;
    const struct config_key *key = config_key(index);
    bool is_number = key->type == TYPE_INT || key->type == TYPE_FLOAT;
    if (!is_number || config->source[index] > SOURCE_PRESET ||
        config_set_value(key, &theirs, number, arena, &ignored))
        return;
    config_get_value(key, &config->value, &a);
    config_get_value(key, &theirs, &b);
    if (strcmp(str_text(&a), str_text(&b)) != 0)
        tell(config, arena, arena_printf(arena, "%s as the default of --%s", number, name),
             arena_printf(arena, "--%s %s", name, number));
}

/* The script's own text, but for lines that are comments, which are blank. */
static char *without_comments(const char *text, struct arena *arena)
{
    char *code = arena_strdup(arena, text), *line = code;
    while (*line) {
        size_t length = strcspn(line, "\n");
        if (line[strspn(line, " \t")] == '#')
            memset(line, ' ', length);
        line += length + (line[length] == '\n');
    }
    return code;
}

/* argparse's: add_argument('--name', ..., default=1, ...). */
static void compare_defaults(struct config *config, const char *text, struct arena *arena)
{
    static const char call[] = "add_argument(", word[] = "default=";
    char *code = without_comments(text, arena);
    for (char *at = strstr(code, call); at; at = strstr(at, call)) {
        at += strlen(call);
        char *end = strstr(at, call);
        char *one = arena_strndup(arena, at, end ? (size_t)(end - at) : strlen(at));
        char *name = strstr(one, "--"), *value = strstr(one, word);
        if (!name || !value || value < name)
            continue;
        value += strlen(word);
        size_t length = strspn(value, "0123456789.eE+-_");
        name[strcspn(name, "'\"")] = '\0';
        if (length > 0 && isdigit((unsigned char)value[0]))
            compare_default(config, name + 2, arena_strndup(arena, value, length), arena);
    }
}

/* Whether it is the known script; if not, the first mark that it lacks is told. */
static bool is_known(struct config *config, size_t which, const char *text, struct arena *arena)
{
    const char *name = str_after_last(config->value.runtime.script, '/');
    for (const char *const *mark = scripts[which].marks; *mark; mark++)
        if (!strstr(text, *mark)) {
            config_add_headline(config, arena,
                                "%s has no %s: it is not the script that preset %s stands for, and "
                                "what it would train is not trained",
                                name, *mark, scripts[which].preset);
            return false;
        }
    return true;
}

void script_compare(struct config *config, const char *text, struct arena *arena)
{
    const char *script = config->value.runtime.script;
    size_t which = applied(config);
    const char *help = "";
    if (which > ANY)
        return;
    for (int i = 0; i < config_preset_count; i++)
        if (strcmp(config_presets[i].name, scripts[which].preset) == 0)
            help = config_presets[i].help;
    config->stand_in = arena_printf(
        arena, "%s%s is not read: preset %s stands in for it (%s)", str_after_last(script, '/'),
        text ? "" : " (there is no such file here)", scripts[which].preset, help);
    if (!text)
        return;
    const char *code = bare(text, arena);
    static const char *const wrappers[] = {"FSDP", "FullyShardedDataParallel"};
    for (size_t i = 0; i < array_length(wrappers); i++)
        for (const char *call = next_call(code, code, wrappers[i]); call;
             call = next_call(call, code, wrappers[i]))
            compare_call(config, code, call, arena);
    if (is_known(config, which, code, arena))
        compare_defaults(config, text, arena);
}

void script_look(struct config *config, struct arena *arena)
{
    struct error ignored; /* the image has none of the scripts */
    auto_free char *text = NULL;
    size_t bytes = 0;
    if (!config->value.runtime.script[0])
        return;
    if (file_read(config->value.runtime.script, MAX_BYTES, &text, &bytes, &ignored) < 0)
        text = NULL;
    script_compare(config, text, arena);
}
