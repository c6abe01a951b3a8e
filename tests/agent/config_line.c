#include "tests/agent/config_line.h"

#include "base/mem.h"
#include "tests/support.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_WORDS = 64 };

static const char *lookup(void *ctx, const char *name)
{
    const char *variable = ctx;
    size_t length = strlen(name);
    return strncmp(variable, name, length) == 0 && variable[length] == '=' ? variable + length + 1
                                                                           : NULL;
}

int config_line_parse(struct arena *arena, const char *line, const char *environment,
                      struct config *config, struct error *err)
{
    const char *words[MAX_WORDS];
    int count = 0;
    char *rest = NULL;
    for (char *w = strtok_r(arena_strdup(arena, line), " ", &rest); w;
         w = strtok_r(NULL, " ", &rest)) {
        assert_true(count < MAX_WORDS);
        words[count++] = w;
    }
    return config_parse(count, words, lookup, (void *)(uintptr_t)environment, arena, config, err);
}

void config_line_summary(const struct config *config, struct str *out)
{
    enum { ALL_COLUMNS = 1 << 20 };
    auto_str struct str lines;
    str_init(&lines, ALL_COLUMNS);
    config_summary_lines(config, "", ALL_COLUMNS, &lines);
    char *rest = NULL, *text = xstrdup(str_text(&lines));
    const char *separator = "";
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        str_printf(out, "%s%s", separator, line);
        separator = ", ";
    }
    free(text);
}
