#include "agent/compat/shim_internal.h"

#include "agent/compat/script.h"
#include "base/contract.h"
#include "base/nearest.h"
#include "base/str.h"

#include <ctype.h>
#include <string.h>

struct shim_flag {
    const char *name; /* with '_' */
    char letter;      /* 0: none */
    bool is_switch;   /* takes no value */
    const char *key;  /* of the agent's; NULL: see `why` */
    bool from_pet;    /* the agent itself reads PET_* of the others */
    const char *why;  /* it is refused; NULL: it is passed on under torchrun., to be reported */
};

static const struct shim_flag shim_flags[] = {
    {"nnodes", 0, false, "nnodes", false, NULL},
    {"nproc_per_node", 0, false, "nproc_per_node", false, NULL},
    {"node_rank", 0, false, "node_rank", false, NULL},
    {"master_addr", 0, false, "master_addr", false, NULL},
    {"master_port", 0, false, "master_port", false, NULL},
    {"rdzv_backend", 0, false, "rdzv_backend", false, NULL},
    {"rdzv_endpoint", 0, false, "rdzv_endpoint", false, NULL},
    {"rdzv_id", 0, false, "rdzv_id", false, NULL},
    {"standalone", 0, true, "standalone", true, NULL},
    {"max_restarts", 0, false, "max_restarts", true, NULL},
    {"monitor_interval", 0, false, "monitor_interval", true, NULL},
    {"log_dir", 0, false, "log_dir", true, NULL},
    {"redirects", 'r', false, "redirects", true, NULL},
    {"tee", 't', false, "tee", true, NULL},
    {"rdzv_conf", 0, false, NULL, false, NULL},
    {"start_method", 0, false, NULL, false, NULL},
    {"role", 0, false, NULL, false, NULL},
    {"local_addr", 0, false, NULL, false, NULL},
    {"run_path", 0, true, NULL, false, NULL},
    {"module", 'm', true, NULL, false, NULL},
    {"no_python", 0, true, NULL, false, "the agent runs no other programs"},
};

struct rewriter {
    struct shim_writer w;
    bool given[array_length(shim_flags)];
};

static bool is_launcher(const char *name)
{
    static const char *const launchers[] = {AGENT_LAUNCHERS};
    for (size_t i = 0; i < array_length(launchers); i++)
        if (strcmp(name, launchers[i]) == 0)
            return true;
    return false;
}

/* "python", "python3" and "python3.11". */
static bool is_python(const char *name)
{
    size_t length = strlen(name);
    return length >= 6 && memcmp(name, "python", 6) == 0 &&
           strspn(name + 6, "0123456789.") == length - 6;
}

int shim_add_word(struct shim_writer *w, const char *word, struct error *err)
{
    if (w->count == SHIM_MAX_WORDS)
        return error_set(err, ERR_CONFIG, "%s: more than %d arguments", w->tool, SHIM_MAX_WORDS);
    w->words[w->count++] = arena_strdup(w->arena, word);
    return 0;
}

bool shim_is_flag(const char *word, const char *name)
{
    size_t length = strcspn(word, "=");
    if (!str_starts_with(word, "--") || length - 2 != strlen(name))
        return false;
    for (size_t i = 2; i < length; i++)
        if ((word[i] == '-' ? '_' : word[i]) != name[i - 2])
            return false;
    return true;
}

int shim_refuse_flag(const char *tool, const char *word, const char *names, struct error *err)
{
    auto_free char *name = xasprintf("%.*s", (int)strcspn(word, "="), word);
    return error_set(err, ERR_CONFIG, "%s: unknown flag '%s' before the script%s", tool, word,
                     nearest_note(name, names, " ").text);
}

static const struct shim_flag *find_flag(const char *word)
{
    for (size_t i = 0; i < array_length(shim_flags); i++) {
        const struct shim_flag *flag = &shim_flags[i];
        bool is_letter =
            flag->letter && word[0] == '-' && word[1] == flag->letter && strcspn(word, "=") == 2;
        if (is_letter || shim_is_flag(word, flag->name))
            return flag;
    }
    return NULL;
}

static int pass_on(struct rewriter *r, const struct shim_flag *flag, const char *value,
                   struct error *err)
{
    r->given[flag - shim_flags] = true;
    if (flag->why)
        return error_set(err, ERR_CONFIG, "%s: --%s: %s", r->w.tool, flag->name, flag->why);
    return shim_add_word(&r->w,
                         arena_printf(r->w.arena, "--%s.%s=%s", flag->key ? "runtime" : "torchrun",
                                      flag->name, value),
                         err);
}

/* A launcher's own --help is the agent's: one text describes both. PyTorch's torchrun has no
 * --version, so that a script can tell by it who answers to the name. NULL: it asks for neither. */
static const char *requests(const char *word)
{
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        return "--help";
    return strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0 ? "--version" : NULL;
}

static int refuse_flag(const struct rewriter *r, const char *word, struct error *err)
{
    auto_str struct str names;
    str_init(&names, 4096);
    for (size_t i = 0; i < array_length(shim_flags); i++)
        str_printf(&names, " --%s", shim_flags[i].name);
    return shim_refuse_flag(r->w.tool, word, str_text(&names), err);
}

/* Reads the flags in front of the script. *ret_is_module: the "script" is a module's name. */
static int read_flags(struct rewriter *r, char *const **words, bool *ret_is_module,
                      struct error *err)
{
    for (; **words && (**words)[0] == '-'; ++*words) {
        const char *word = **words, *value = strchr(word, '=');
        const struct shim_flag *flag = find_flag(word);
        if (!flag)
            return refuse_flag(r, word, err);
        if (flag->letter == 'm') {
            *ret_is_module = true;
            continue;
        }
        if (value)
            value++;
        else if (flag->is_switch)
            value = "true";
        else if ((*words)[1])
            value = *++*words;
        else
            return error_set(err, ERR_CONFIG, "%s: %s needs a value", r->w.tool, word);
        if (pass_on(r, flag, value, err))
            return -1;
    }
    return 0;
}

static const char *variable_of(const struct shim_flag *flag, struct arena *arena)
{
    char *name = arena_printf(arena, "PET_%s", flag->name);
    for (char *c = name; *c; c++)
        *c = (char)toupper((unsigned char)*c);
    return name;
}

void shim_variables(struct str *out)
{
    auto_arena struct arena *arena = arena_open();
    for (size_t i = 0; i < array_length(shim_flags); i++)
        str_printf(out, " %s", variable_of(&shim_flags[i], arena));
}

/* What the command line does not say. */
static int read_variables(struct rewriter *r, struct error *err)
{
    for (size_t i = 0; i < array_length(shim_flags); i++) {
        if (!shim_flags[i].from_pet || r->given[i])
            continue;
        const char *value = r->w.lookup(r->w.ctx, variable_of(&shim_flags[i], r->w.arena));
        if (value && *value && pass_on(r, &shim_flags[i], value, err))
            return -1;
    }
    return 0;
}

int shim_add_script(struct shim_writer *w, const char *script, bool is_module, struct error *err)
{
    const char *file =
        is_module ? arena_printf(w->arena, "%s.py", str_after_last(script, '.')) : script;
    const char *preset = script_preset(file, strcmp(w->tool, "accelerate") == 0);
    if (preset)
        return shim_add_word(w, arena_printf(w->arena, "--preset=%s", preset), err) ||
                       shim_add_word(w, arena_printf(w->arena, "--runtime.script=%s", file), err)
                   ? -1
                   : 0;
    auto_str struct str known;
    str_init(&known, 256);
    script_names(&known);
    return error_set(err, ERR_CONFIG,
                     "%s: '%s'%s is no script that the agent stands in for; it knows%s; "
                     "accelerate launch takes any, with the defaults of Transformers' Trainer",
                     w->tool, script,
                     nearest_note(str_after_last(file, '/'), str_text(&known), " ").text,
                     str_text(&known));
}

/* "python SCRIPT": one process per device of this machine, as such scripts spawn them. */
static int read_python(struct rewriter *r, char *const **words, bool *ret_is_module,
                       struct error *err)
{
    for (; **words && (**words)[0] == '-'; ++*words) {
        const char *word = **words;
        if (strcmp(word, "-m") == 0 && (*words)[1]) {
            ++*words;
            if (strcmp(**words, "torch.distributed.run") == 0 ||
                strcmp(**words, "torch.distributed.launch") == 0) {
                ++*words;
                return read_flags(r, words, ret_is_module, err) || read_variables(r, err) ? -1 : 0;
            }
            *ret_is_module = true;
            break;
        }
        if (strspn(word + 1, "uBOEsSI") != strlen(word + 1) || !word[1])
            return error_set(err, ERR_CONFIG,
                             "%s: '%s': this is " AGENT_PROGRAM " under that name, which runs no "
                             "Python: it takes '%s SCRIPT' and '%s -m torch.distributed.run', and "
                             "trains what the script's name stands for",
                             r->w.tool, word, r->w.tool, r->w.tool);
    }
    return shim_add_word(&r->w, "--runtime.nproc_per_node=auto", err);
}

/* The launcher's own words, and the script. */
static int read_launcher(struct rewriter *r, char *const **words, struct error *err)
{
    bool is_module = false;
    const char *asked = **words ? requests(**words) : NULL;
    if (asked) {
        ++*words;
        return shim_add_word(&r->w, asked, err);
    }
    if (strcmp(r->w.tool, "accelerate") == 0)
        return shim_read_accelerate(&r->w, words, err);
    if (is_python(r->w.tool) ? read_python(r, words, &is_module, err)
                             : read_flags(r, words, &is_module, err) || read_variables(r, err))
        return -1;
    if (!**words)
        return error_set(err, ERR_CONFIG, "%s: names no script", r->w.tool);
    return shim_add_script(&r->w, *(*words)++, is_module, err);
}

int shim_rewrite(char *const *argv, getenv_fn *lookup, void *ctx, struct arena *arena,
                 bool *ret_is_shim, char *const **ret_argv, struct error *err)
{
    const char *tool = argv[0] ? str_after_last(argv[0], '/') : "";
    char *const *words = argv + (argv[0] ? 1 : 0);
    if (!is_launcher(tool) && !is_python(tool) && *words) /* "shoal-agent torchrun ..." */
        tool = str_after_last(*words++, '/');
    *ret_is_shim = is_launcher(tool) || is_python(tool);
    *ret_argv = argv;
    if (!*ret_is_shim)
        return 0;
    struct rewriter *r = arena_new(arena, struct rewriter);
    *r = (struct rewriter){.w = {.lookup = lookup, .ctx = ctx, .arena = arena, .tool = tool}};
    if (shim_add_word(&r->w, AGENT_PROGRAM, err) || read_launcher(r, &words, err))
        return -1;
    for (; *words; words++)
        if (shim_add_word(&r->w, *words, err))
            return -1;
    r->w.words[r->w.count] = NULL;
    *ret_argv = r->w.words;
    return 0;
}
