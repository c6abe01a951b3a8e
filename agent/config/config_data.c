/* The rules of the data's keys. */
#include "agent/config/config_parser.h"

#include "agent/text/utf8.h"

#include <string.h>

int config_check_data(const struct agent_config *c, struct error *err)
{
    if (c->data.label_pad_token_id < 0 && c->data.label_pad_token_id != -100)
        return error_set(err, ERR_CONFIG,
                         "data.label_pad_token_id: %lld is neither -100 nor the number of a token",
                         (long long)c->data.label_pad_token_id);
    if (c->data.mlm_probability <= 0 || c->data.mlm_probability >= 1)
        return error_set(err, ERR_CONFIG, "data.mlm_probability must be above 0 and below 1");
    if (!c->data.source.text_column[0] || !c->data.source.target_column[0] ||
        !c->data.source.label_column[0])
        return error_set(err, ERR_CONFIG, "data.%s is empty; name a field of the rows",
                         !c->data.source.text_column[0]     ? "text_column"
                         : !c->data.source.target_column[0] ? "target_column"
                                                            : "label_column");
    size_t bytes = strlen(c->data.source.label_names);
    if (utf8_well_formed(c->data.source.label_names, bytes) < bytes)
        return error_set(err, ERR_CONFIG, "data.label_names is not UTF-8, as config.json has it");
    return 0;
}
