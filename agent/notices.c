#include "agent/notices.h"

#include "base/log.h"

static void log_line(void *ctx, const char *line)
{
    (void)ctx;
    log_warning("%s", line);
}

void notices_complete(struct config *config, struct arena *arena)
{
    const struct agent_config *c = &config->value;
    if (!c->checkpoint.dir[0] && !c->checkpoint.save_model[0] && config_is_language(c))
        config_add_headline(config, arena,
                            "no weights are kept: name a directory by checkpoint.dir "
                            "(--checkpoint_dir, --output_dir), or by checkpoint.save_model for "
                            "those at the end");
}

void notices_log(const struct config *config)
{
    if (config->script_notice[0])
        log_info("%s", config->script_notice);
    config_notices(config, log_line, NULL);
}
