#include "agent/report/banner.h"

#include "base/contract.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

/* Each line has it, for who looks for the configuration in the log of a pod. */
#define CONFIGURATION "Configuration: "
enum { LINE_COLUMNS = 120 };

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void add_passed_through(char *const *environment, struct str *out)
{
    size_t count = 0, found = 0;
    while (environment[count])
        count++;
    auto_free const char **texts = xcalloc(count + 1, sizeof *texts);
    for (size_t i = 0; i < count; i++)
        if (str_starts_with(environment[i], "NCCL_") || str_starts_with(environment[i], "FI_"))
            texts[found++] = environment[i];
    qsort(texts, found, sizeof *texts, compare);
    for (size_t i = 0; i < found; i++)
        str_printf(out, "%s%s", i ? ", " : "Environment of NCCL and libfabric: ", texts[i]);
    if (found)
        str_add(out, "\n");
}

void banner_print(const struct config *config, const struct topology *t, char *const *environment,
                  bool is_hyperpod, struct str *out)
{
    auto_str struct str settings;
    str_init(&settings, 64 * 1024);
    config_summary_lines(config, CONFIGURATION, LINE_COLUMNS, &settings);
    str_printf(out, "shoal-agent %s: %d rank%s on %d node%s, master_addr=%s, master_port=%d\n",
               SHOAL_VERSION, t->world_size, t->world_size == 1 ? "" : "s", t->nodes,
               t->nodes == 1 ? "" : "s", t->host, t->port);
    if (is_hyperpod && config->value.checkpoint.auto_resume)
        str_add(out, "Detected Hyperpod cluster.. enabling --auto-resume=1\n");
    str_add(out, settings.length ? str_text(&settings) : CONFIGURATION "all defaults\n");
    add_passed_through(environment, out);
}
