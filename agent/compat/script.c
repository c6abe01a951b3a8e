#include "agent/compat/script.h"

#include "agent/compat/script_text.h"
#include "agent/config/config_keys.h"
#include "base/file.h"

#include <ctype.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_BYTES = 1 << 20, MAX_VALUE = 80 };

#define NETWORK                                                                                    \
    "nn.Conv2d(1,32,3,1)", "nn.Conv2d(32,64,3,1)", "nn.Linear(9216,128)", "nn.Linear(128,10)"

static const struct {
    const char *script, *preset;
    bool for_accelerate;
    bool by_flags;         /* its own arguments say what it passes to FSDP() */
    const char *marks[10]; /* what the script has, without blanks; NULL behind them */
} scripts[] = {
    {"train.py", "hyperpod", false, true, {"model_utils"}},
    {"FSDP_mnist.py",
     "mnist-fsdp",
     true,
     false,
     {NETWORK, "Adadelta(", "StepLR(", "FSDP(", "MNIST("}},
    {"DDP_mnist.py", "mnist-ddp", true, false, {NETWORK, "Adadelta(", "StepLR(", "MNIST("}},
    {"mnist-ddp.py", "mnist-ddp-adam", true, false, {NETWORK, "Adam(", "MNIST("}},
    {"t5-fsdp.py", "t5-fsdp", true, false, {"T5ForConditionalGeneration"}},
    {"", "trainer", true, false, {"Trainer("}}, /* any other under accelerate */
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

static void warn_unread(struct config *config, struct arena *arena, const char *what,
                        const char *flags)
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

/* Keywords of FSDP() that are keys here. */
struct fsdp_keyword {
    const char *name;
    const char *prefix; /* of what it can be; "": True or False */
    size_t field;
    const char *flag;
};

/* What the value of a script means to the key; NULL: it takes running the script to know. */
static const char *meaning(const struct fsdp_keyword *row, const char *value)
{
    static const struct {
        const char *written, *means;
    } rows[] = {
        {"True", "true"},
        {"False", "false"},
        {"CPUOffload(offload_params=True)", "true"},
        {"CPUOffload(True)", "true"},
        {"CPUOffload(offload_params=False)", "false"},
        {"CPUOffload(False)", "false"},
        {"CPUOffload()", "false"},
    };
    for (size_t i = 0; i < array_length(rows); i++)
        if (strcmp(rows[i].written, value) == 0)
            return rows[i].means;
    const char *name = str_starts_with(value, row->prefix) ? value + strlen(row->prefix) : "";
    bool is_name = name[0] && strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_2") == strlen(name);
    return row->prefix[0] && is_name ? name : NULL;
}

/* An argument that cannot be known without running the script. */
static void warn_unknown(struct config *config, struct arena *arena, const char *argument, int line,
                         const char *flags)
{
    if (scripts[applied(config)].by_flags)
        return;
    config_add_headline(config, arena,
                        "%s has %.*s in line %d, and its value is not known, as the script is not "
                        "run: say %s",
                        str_after_last(config->value.runtime.script, '/'), MAX_VALUE, argument,
                        line, flags);
}

/* The key's value as text, and what it would be by the script's; whether they differ. */
static bool differs(const struct config *config, const struct config_key *key, const char *theirs,
                    struct arena *arena)
{
    struct agent_config other = config->value;
    struct error ignored; /* what the key does not know is no difference */
    auto_str struct str a, b;
    str_init(&a, 256);
    str_init(&b, 256);
    if (config_set_value(key, &other, theirs, arena, &ignored))
        return false;
    config_get_value(key, &config->value, &a);
    config_get_value(key, &other, &b);
    return strcmp(str_text(&a), str_text(&b)) != 0;
}

static void compare_keyword(struct config *config, const struct fsdp_keyword *row,
                            const char *value, int line, struct arena *arena)
{
    const struct config_key *key = config_key(config_key_at(row->field));
    bool is_given = config_is_given(config, (const char *)&config->value + row->field);
    const char *means = meaning(row, value);
    const char *argument = arena_printf(arena, "%s=%s", row->name, value);
    if (!means && !is_given)
        warn_unknown(config, arena, argument, line, row->flag);
    if (!means || !differs(config, key, means, arena))
        return;
    bool is_off = strcmp(means, "false") == 0;
    if (strcmp(means, "true") == 0)
        warn_unread(config, arena, argument, row->flag);
    else if (!is_off || !is_given) /* who turned it on by a flag knows */
        warn_unread(config, arena, argument, arena_printf(arena, "%s %s", row->flag, means));
}

static void compare_precision(struct config *config, const char *value, int line,
                              struct arena *arena)
{
    const char *argument = arena_printf(arena, "mixed_precision=%s", value);
    if (!str_starts_with(value, "MixedPrecision(")) {
        if (!config_is_given(config, &config->value.precision.mixed))
            warn_unknown(config, arena, argument, line, "--mixed_precision");
    } else if (config->value.precision.mixed == PRECISION_FP32) {
        warn_unread(config, arena, argument, "--mixed_precision bf16");
    }
}

/* A keyword's value, or what the script assigns to the variable that it is; "": it has none, or
 * None. *ret_line: where it stands. */
static const char *value_of(const char *code, const char *call, const char *name, int *ret_line,
                            struct arena *arena)
{
    const char *at, *value = script_text_keyword(call, name, &at, arena);
    *ret_line = script_text_line(code, at);
    const char *assigned = value[0] ? script_text_assigned(code, value, arena) : "";
    if (assigned[0])
        value = assigned;
    return strcmp(value, "None") == 0 ? "" : value;
}

static void compare_call(struct config *config, const char *code, const char *call,
                         struct arena *arena)
{
    static const char *const policies[] = {"auto_wrap_policy", "fsdp_auto_wrap_policy"};
    static const struct fsdp_keyword rows[] = {
        {"cpu_offload", "", KEY_AT(memory.cpu_offload), "--cpu_offload"},
        {"sharding_strategy", "ShardingStrategy.", KEY_AT(parallel.strategy),
         "--sharding_strategy"},
        {"backward_prefetch", "BackwardPrefetch.", KEY_AT(parallel.backward_prefetch),
         "--backward_prefetch"},
        {"forward_prefetch", "", KEY_AT(parallel.forward_prefetch), "--forward_prefetch"},
        {"limit_all_gathers", "", KEY_AT(parallel.limit_all_gathers), "--limit_all_gathers"},
    };
    int line;
    const char *at, *value;
    for (size_t i = 0; i < array_length(policies); i++) {
        value = script_text_keyword(call, policies[i], &at, arena);
        if (value[0] && strcmp(value, "None") != 0 &&
            config->value.parallel.wrap_policy == WRAP_NONE)
            warn_unread(config, arena, arena_printf(arena, "%s=%s", policies[i], value),
                        wrap_flags(code, arena));
    }
    for (size_t i = 0; i < array_length(rows); i++) {
        value = value_of(code, call, rows[i].name, &line, arena);
        if (value[0])
            compare_keyword(config, &rows[i], value, line, arena);
    }
    value = value_of(code, call, "mixed_precision", &line, arena);
    if (value[0])
        compare_precision(config, value, line, arena);
    value = value_of(code, call, "**", &line, arena);
    if (value[0])
        warn_unknown(config, arena, arena_printf(arena, "FSDP(**%s)", value), line,
                     "by flags what it passes (--sharding_strategy, --auto_wrap_policy, "
                     "--cpu_offload, --mixed_precision)");
}

/* A number that the script has as an argument's default, and nobody gave: another one than ours. */
static void compare_default(struct config *config, const char *name, const char *number,
                            struct arena *arena)
{
    struct error ignored; /* flags that are no keys here */
    int index;
    bool known;
    if (config_find_key(name, &index, &known, &ignored))
        return;
    const struct config_key *key = config_key(index);
    bool is_number = key->type == TYPE_INT || key->type == TYPE_FLOAT;
    if (is_number && config->source[index] <= SOURCE_PRESET && differs(config, key, number, arena))
        warn_unread(config, arena, arena_printf(arena, "%s as the default of --%s", number, name),
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

/* Whether it is the known script; if not, the first mark that it lacks is reported. */
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

/* A class of data in the script: MNIST's own, one with files of its format, or another. */
static int check_class(struct config *config, const char *name, int line, struct arena *arena,
                       struct error *err)
{
    const char *script = str_after_last(config->value.runtime.script, '/');
    const char *preset = scripts[applied(config)].preset;
    if (strcmp(name, "MNIST") == 0)
        return 0;
    if (!config_names_have("FashionMNIST KMNIST QMNIST EMNIST", name, false))
        return error_set(
            err, ERR_CONFIG,
            "%s has %.64s in line %d, and is not run: preset %s trains MNIST, or files "
            "of its format; to train that, say --preset %s in place of the script",
            script, name, line, preset, preset);
    if (!config_is_given(config, &config->value.data.source.root))
        warn_unread(config, arena, name,
                    arena_printf(arena, "--data.root DIR/%s/raw, its files", name));
    return 0;
}

/* Classes of torchvision, by their module or by the names that people import. */
static int check_data(struct config *config, const char *code, struct arena *arena,
                      struct error *err)
{
    static const char *const imported[] = {"CIFAR10",      "CIFAR100", "SVHN",    "STL10",
                                           "ImageFolder",  "ImageNet", "USPS",    "FakeData",
                                           "FashionMNIST", "KMNIST",   "QMNIST",  "EMNIST",
                                           "Caltech101",   "Food101",  "Omniglot"};
    static const char module[] = "datasets.";
    for (const char *at = strstr(code, module); at; at = strstr(at, module)) {
        at += strlen(module);
        const char *name = script_text_name(at, arena);
        if (at[strlen(name)] == '(' &&
            check_class(config, name, script_text_line(code, at), arena, err))
            return -1;
    }
    for (size_t i = 0; i < array_length(imported); i++) {
        const char *call = script_text_call(code, code, imported[i]);
        if (call && check_class(config, imported[i], script_text_line(code, call), arena, err))
            return -1;
    }
    return 0;
}

static int compare_text(struct config *config, size_t which, const char *text, struct arena *arena,
                        struct error *err)
{
    static const char *const wrappers[] = {"FSDP", "FullyShardedDataParallel"};
    const char *code = script_text_bare(text, arena);
    for (size_t i = 0; i < array_length(wrappers); i++)
        for (const char *call = script_text_call(code, code, wrappers[i]); call;
             call = script_text_call(code, call, wrappers[i]))
            compare_call(config, code, call, arena);
    if (!config_is_language(&config->value) && check_data(config, code, arena, err))
        return -1;
    if (is_known(config, which, code, arena))
        compare_defaults(config, text, arena);
    return 0;
}

void script_describe(struct config *config, bool is_here, struct arena *arena)
{
    size_t which = applied(config);
    const char *help = "";
    if (which > ANY || !config->value.runtime.script[0])
        return;
    for (int i = 0; i < config_preset_count; i++)
        if (strcmp(config_presets[i].name, scripts[which].preset) == 0)
            help = config_presets[i].help;
    config->script_notice = arena_printf(
        arena, "%s%s is not run: preset %s stands in for it (%s)", config->value.runtime.script,
        is_here ? "" : " (there is no such file here)", scripts[which].preset, help);
}

int script_compare(struct config *config, const char *text, struct arena *arena, struct error *err)
{
    size_t which = applied(config);
    return which <= ANY ? compare_text(config, which, text, arena, err) : 0;
}

int script_check(struct config *config, struct arena *arena, struct error *err)
{
    struct error unread;
    auto_free char *text = NULL;
    size_t bytes = 0;
    const char *script = config->value.runtime.script;
    struct stat found;
    if (!script[0])
        return 0;
    bool is_there = stat(script, &found) == 0;
    if (is_there && !S_ISREG(found.st_mode)) /* reading a FIFO waits for its writer */
        return error_set(err, ERR_CONFIG, "%s is %s: it is no script", script,
                         S_ISDIR(found.st_mode) ? "a directory" : "not a regular file");
    script_describe(config, is_there, arena);
    if (!is_there || applied(config) > ANY) /* the image has none of the scripts */
        return 0;
    if (file_read(script, MAX_BYTES, &text, &bytes, &unread) < 0) {
        config_add_headline(config, arena, "%s: its settings are not compared", unread.msg);
        return 0;
    }
    return script_compare(config, text, arena, err);
}
