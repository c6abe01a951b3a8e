/* The jobs of the small histories. */
#include "tests/operator/histories/settings.h"

#define RETRIED  .restart_policy = "ExitCode", .run_policy = SETTING_RUN_POLICY
#define GROUPED  .restart_policy = "ExitCode", .run_policy = SETTING_RUN_POLICY SETTING_GROUP
#define IN_PLACE .restart_policy = "OnFailure", .run_policy = SETTING_RUN_POLICY
#define NEVER    .restart_policy = "Never", .run_policy = SETTING_RUN_POLICY

/* masters, workers */
#define WORKER         .workers = 1
#define MASTER         .masters = 1
#define WORKERS        .workers = 2
#define MASTER_WORKER  .masters = 1, .workers = 1
#define MASTER_WORKERS .masters = 1, .workers = 2

#define FAILS(...)        .exit_codes = {__VA_ARGS__}
#define EDITS(count, ...) .edits = {__VA_ARGS__}, .edit_count = count
#define BOUNDS(...)       .bounds = {__VA_ARGS__}

/* clang-format off */
const struct setting settings[] = {
    {ALWAYS, {"a pod fails", MASTER_WORKER, RETRIED, FAILS(137), BOUNDS(.failures = 1)}},
    {ALWAYS, {"a pod is deleted or evicted", WORKER, RETRIED, BOUNDS(.deletions = 1)}},
    {ALWAYS, {"the operator dies", WORKERS, NEVER, BOUNDS(.crashes = 1)}},
    {ALWAYS, {"a group restarts", MASTER_WORKER, GROUPED, FAILS(137), BOUNDS(.failures = 1)}},
    {ALWAYS, {"a container restarts in place, the operator dies", WORKER, IN_PLACE, FAILS(137),
              BOUNDS(.failures = 2, .crashes = 1)}},
    {ALWAYS, {"trouble with a request, and delay", WORKER, NEVER, FAILS(1),
              BOUNDS(.failures = 1, .troubles = 1, .delays = 1)}},
    {ALWAYS, {"suspended, resumed, spoilt", WORKER, RETRIED,
              EDITS(3, EDIT_SUSPEND, EDIT_RESUME, EDIT_SPOIL), BOUNDS(.edits = 2)}},
    {ALWAYS, {"scaled up or down", WORKERS, .restart_policy = "ExitCode",
              .run_policy = "cleanPodPolicy: None", EDITS(2, EDIT_GROW, EDIT_SHRINK),
              BOUNDS(.edits = 1)}},

    {IN_ALL, {"1 pod, everything", MASTER, RETRIED, FAILS(137, 1),
              EDITS(2, EDIT_SUSPEND, EDIT_LIMIT),
              BOUNDS(.failures = 2, .deletions = 1, .edits = 1, .crashes = 1)}},
    {IN_ALL, {"1 pod, in place, everything", WORKER, IN_PLACE, FAILS(137),
              EDITS(2, EDIT_SUSPEND, EDIT_LIMIT),
              BOUNDS(.failures = 2, .deletions = 1, .edits = 1, .crashes = 1)}},

    {IN_ALL, {"2 pods: failure, crash", MASTER_WORKER, RETRIED, FAILS(137, 1),
              BOUNDS(.failures = 1, .crashes = 1)}},
    {IN_ALL, {"2 pods: two failures", WORKERS, RETRIED, FAILS(137, 138), BOUNDS(.failures = 2)}},
    {IN_ALL, {"2 pods, resumed: failure", MASTER_WORKER, RETRIED, .suspended = true, FAILS(137),
              EDITS(1, EDIT_RESUME), BOUNDS(.failures = 1, .edits = 1)}},
    {IN_ALL, {"2 pods, never again: failure, crash", MASTER_WORKER, .restart_policy = "Never",
              .run_policy = "cleanPodPolicy: Running", FAILS(1),
              BOUNDS(.failures = 1, .crashes = 1)}},
    {IN_ALL, {"2 pods, a group: failure, crash", MASTER_WORKER, GROUPED, FAILS(137),
              BOUNDS(.failures = 1, .crashes = 1)}},
    {IN_ALL, {"2 pods, a group: two failures", WORKERS, GROUPED, FAILS(137),
              BOUNDS(.failures = 2)}},
    {IN_ALL, {"2 pods, a group: deletion, crash", MASTER_WORKER, GROUPED,
              BOUNDS(.deletions = 1, .crashes = 1)}},
    {IN_ALL, {"2 pods, in place: two failures, crash", MASTER_WORKER, IN_PLACE, FAILS(137),
              BOUNDS(.failures = 2, .crashes = 1)}},
    {IN_ALL, {"2 pods: trouble, delay", MASTER_WORKER, RETRIED,
              BOUNDS(.troubles = 1, .delays = 1)}},
    {IN_ALL, {"2 pods: trouble, deletion", WORKERS, NEVER, BOUNDS(.deletions = 1, .troubles = 1)}},
    {BY_NAME, {"2 pods: deletion, crash", MASTER_WORKER, RETRIED,
               BOUNDS(.deletions = 1, .crashes = 1)}},
    {BY_NAME, {"2 pods: failure, deletion, crash", MASTER_WORKER, RETRIED, FAILS(137),
               BOUNDS(.failures = 1, .deletions = 1, .crashes = 1)}},
    {IN_ALL, {"2 pods: failure, deletion, edit, crash", MASTER_WORKER, RETRIED, FAILS(137),
              EDITS(1, EDIT_SUSPEND),
              BOUNDS(.failures = 1, .deletions = 1, .edits = 1, .crashes = 1)}},

    {IN_ALL, {"3 pods: scaled down", MASTER_WORKERS, RETRIED, EDITS(1, EDIT_SHRINK),
              BOUNDS(.edits = 1)}},
    {IN_ALL, {"3 pods, a group: failure", MASTER_WORKERS, GROUPED, FAILS(137),
              BOUNDS(.failures = 1)}},
    {BY_NAME, {"3 pods: nothing", MASTER_WORKERS, RETRIED}},
    {BY_NAME, {"3 pods: failure, crash", MASTER_WORKERS, RETRIED, FAILS(137),
               BOUNDS(.failures = 1, .crashes = 1)}},
    {IN_ALL, {"3 pods: failure, edit, crash", MASTER_WORKERS, RETRIED, FAILS(137),
              EDITS(1, EDIT_SUSPEND), BOUNDS(.failures = 1, .edits = 1, .crashes = 1)}},
    {IN_ALL, {"3 pods: deletion, edit, crash", MASTER_WORKERS, RETRIED, EDITS(1, EDIT_SUSPEND),
              BOUNDS(.deletions = 1, .edits = 1, .crashes = 1)}},
    {IN_ALL, {"3 pods: failure, deletion, crash", MASTER_WORKERS, RETRIED, FAILS(137),
              BOUNDS(.failures = 1, .deletions = 1, .crashes = 1)}},
    {BY_NAME, {"3 pods: failure, deletion, edit", MASTER_WORKERS, RETRIED, FAILS(137),
               EDITS(1, EDIT_SUSPEND), BOUNDS(.failures = 1, .deletions = 1, .edits = 1)}},
    {BY_NAME, {"3 pods: failure, deletion, edit, crash", MASTER_WORKERS, RETRIED, FAILS(137),
               EDITS(1, EDIT_SUSPEND),
               BOUNDS(.failures = 1, .deletions = 1, .edits = 1, .crashes = 1)}},
};
/* clang-format on */

const size_t setting_count = sizeof settings / sizeof settings[0];
