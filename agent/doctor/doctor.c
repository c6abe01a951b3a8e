#include "agent/doctor/doctor.h"

#include "agent/config/config_keys.h"
#include "agent/doctor/checkup.h"
#include "agent/doctor/examine.h"
#include "agent/launch/device_choice.h"
#include "base/contract.h"
#include "base/environment.h"
#include "base/exit_code.h"
#include "base/json_text.h"
#include "base/options.h"

#include <stdio.h>
#include <string.h>

enum { TEXT_MAX_BYTES = 128 * 1024 };

struct wish {
    const char *device;
    bool share_gpus, as_json, help;
};

static void add_text(const struct checkup *c, const struct doctor_facts *f, struct str *out)
{
    for (int i = 0; i < c->count; i++) {
        const struct check_row *row = &c->rows[i];
        str_printf(out, "%-8s %-14s %s", check_status_name(row->status), row->what, row->found);
        if (row->means[0])
            str_printf(out, " - %s", row->means);
        if (row->mend[0])
            str_printf(out, " - %s", row->mend);
        str_add(out, "\n");
    }
    int gpus = str_starts_with(f->asked, "cuda:") ? 1 : f->survey.gpus;
    if (c->can_train && c->uses_gpus)
        str_printf(out, "training can start: on %d GPU%s\n", gpus, gpus == 1 ? "" : "s");
    else if (c->can_train)
        str_add(out, "training can start: on the CPU, which needs nothing of NVIDIA's\n");
    else {
        str_add(out, "training cannot start:");
        for (int i = 0, count = 0; i < c->count; i++)
            if (c->rows[i].is_fatal)
                str_printf(out, "%s %s (%s)", count++ ? "," : "", c->rows[i].what,
                           check_status_name(c->rows[i].status));
        str_add(out, "\n");
    }
}

static void add_member(const char *name, const char *value, struct str *out)
{
    str_printf(out, ",\"%s\":", name);
    json_text(value, out);
}

static void add_json(const struct checkup *c, struct str *out)
{
    str_printf(out, "{\"version\":\"" SHOAL_VERSION "\",\"can_train\":%s,\"device\":\"%s\",",
               c->can_train ? "true" : "false", c->uses_gpus ? "cuda" : "cpu");
    str_add(out, "\"checks\":[");
    for (int i = 0; i < c->count; i++) {
        const struct check_row *row = &c->rows[i];
        str_printf(out, "%s{\"what\":", i ? "," : "");
        json_text(row->what, out);
        add_member("status", check_status_name(row->status), out);
        str_printf(out, ",\"fatal\":%s", row->is_fatal ? "true" : "false");
        add_member("found", row->found, out);
        add_member("means", row->means, out);
        add_member("mend", row->mend, out);
        str_add(out, "}");
    }
    str_add(out, "]}\n");
}

static int read_wish(int argc, char *const *argv, struct wish *ret, struct str *help,
                     struct error *err)
{
    const struct option_row rows[] = {
        {"device", 0, OPTION_TEXT, &ret->device, "DEVICE",
         "auto (default), cuda, cuda:N or cpu: what training shall run on; also: AGENT_RUNTIME_DEVICE",
         0, 0, NULL},
        {"share_gpus", 0, OPTION_FLAG, &ret->share_gpus, NULL,
         "several ranks may have one GPU; also: AGENT_RUNTIME_SHARE_GPUS", 0, 0, NULL},
        {"json", 0, OPTION_FLAG, &ret->as_json, NULL, "print one JSON object", 0, 0, NULL},
        {"help", 'h', OPTION_FLAG, &ret->help, NULL, "print this", 0, 0, NULL},
        {0},
    };
    const char *variable = environment_get(NULL, "AGENT_RUNTIME_DEVICE");
    *ret = (struct wish){.device = variable && variable[0] ? variable : "auto"};
    options_help(rows, help);
    const char *share = environment_get(NULL, "AGENT_RUNTIME_SHARE_GPUS");
    if (share && share[0] && !config_parse_bool(share, &ret->share_gpus))
        return error_set(err, ERR_CONFIG, "AGENT_RUNTIME_SHARE_GPUS=%s: it is true or false",
                         share);
    if (options_parse(rows, argc, argv, err) < 0)
        return -1;
    return device_choice_is_valid(ret->device)
               ? 0
               : error_set(err, ERR_CONFIG, "--device %s: it is auto, cuda, cuda:N or cpu",
                           ret->device);
}

static int examine_and_print(const struct wish *wish)
{
    static struct doctor_facts facts; /* large, once per process */
    static struct checkup checkup;
    auto_str struct str text;
    str_init(&text, TEXT_MAX_BYTES);
    examine(wish->device, wish->share_gpus, &facts);
    checkup_make(&facts, &checkup);
    if (wish->as_json)
        add_json(&checkup, &text);
    else
        add_text(&checkup, &facts, &text);
    fputs(str_text(&text), stdout);
    return checkup.can_train ? EXIT_DONE : EXIT_CONFIG;
}

static int run(int argc, char *const *argv)
{
    struct wish wish;
    struct error err;
    auto_str struct str help;
    str_init(&help, 4096);
    if (read_wish(argc, argv, &wish, &help, &err) < 0)
        return exit_failed(AGENT_PROGRAM " doctor", &err);
    if (!wish.help)
        return examine_and_print(&wish);
    printf("Usage: " AGENT_PROGRAM " doctor [--device DEVICE] [--share_gpus] [--json]\n"
           "\n"
           "Tells whether training could start here: driver, GPUs, NVIDIA's libraries with path\n"
           "and version, shared memory, limits, network. A line each: whether it will do, what\n"
           "it means if not, and the mend. Exit code 2: training could not start.\n"
           "\n%s",
           str_text(&help));
    return EXIT_DONE;
}

/* "torchrun doctor", "python3 doctor": a script of that name. */
static bool is_image_name(const char *program)
{
    static const char *const names[] = {AGENT_IMAGE_NAMES};
    const char *own = str_after_last(program, '/');
    for (size_t i = 0; i < array_length(names); i++)
        if (strcmp(own, names[i]) == 0)
            return true;
    return false;
}

bool doctor_command(char *const *argv, int *ret_exit_code)
{
    if (!argv[0] || !argv[1] || is_image_name(argv[0]) ||
        (strcmp(argv[1], "doctor") && strcmp(argv[1], "--check")))
        return false;
    int argc = 0;
    while (argv[2 + argc])
        argc++;
    *ret_exit_code = run(argc, argv + 2);
    return true;
}
