/* What the trainer reports, in telemetry's words. Pure. */
#ifndef SHOAL_AGENT_REPORT_REPORT_NUMBERS_H
#define SHOAL_AGENT_REPORT_REPORT_NUMBERS_H

#include "agent/report/report.h"
#include "agent/telemetry/telemetry.h"

/* Memory from `arena`. */
void report_telemetry_setting(const struct report_setting *setting,
                              const struct trainer_facts *facts, struct arena *arena,
                              struct telemetry_setting *ret_setting);

struct run_eval report_eval(const struct trainer_score *score, bool predicts_tokens,
                            double seconds);
#endif
