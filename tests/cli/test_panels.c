/* The panels of deploy/monitoring/dashboards, as a person looks at them: each says what it shows,
 * in what unit, and from where on that is bad, or stands below with why nobody can say. */
#include "tests/support.h"

#include "base/json.h"
#include "base/mem.h"
#include "tests/cli/monitoring.h"

#include <string.h>

/* Grafana draws panels that overlap on top of each other, and of two with one id only one. */
static void panels_have_places_of_their_own(void **state)
{
    (void)state;
    for (const char *const *path = monitoring_dashboards; *path; path++) {
        struct json *dashboard = monitoring_document(*path), *panel;
        bool taken[256][24] = {{false}}, ids[256] = {false};
        json_each_item(panel, json_get(dashboard, "panels")) {
            const struct json *place = json_get(panel, "gridPos");
            int64_t x = monitoring_whole(place, "x"), y = monitoring_whole(place, "y");
            int64_t w = monitoring_whole(place, "w"), h = monitoring_whole(place, "h");
            int64_t id = monitoring_whole(panel, "id");
            assert_true(id > 0 && id < 256 && !ids[id] && x + w <= 24 && y + h <= 256);
            ids[id] = true;
            for (int64_t row = y; row < y + h; row++)
                for (int64_t column = x; column < x + w; column++) {
                    if (taken[row][column])
                        fail_msg("%s: panel %lld covers another", *path, (long long)id);
                    taken[row][column] = true;
                }
            if (strcmp(monitoring_text(panel, "type"), "row") != 0)
                assert_true(json_array_count(json_get(panel, "targets")) > 0);
        }
        json_free(dashboard);
    }
}

/* ---- thresholds ---- */

#define COUNT "a count, which the jobs decide"
#define MODEL "the model, its data and its configuration decide what is normal"
#define GPU                                                                                        \
    "each model of GPU has a limit of its own, and to be there is no fault: Clock event reasons "  \
    "tells what holds a GPU back"
#define LINK  "each link has a rate of its own, and it is the model that decides how much is sent"
#define KINDS "of kinds that add up, each may be much: the share of steps has its line in Goodput"
#define ROOM  "what there is room for differs: the share that is used has its line in Shoal / GPUs"

/* The panels without thresholds. A panel that gets some has to leave this list. */
static const struct {
    const char *dashboard, *title, *reason;
} without_thresholds[] = {
    {"Shoal / GPUs", "GPUs", COUNT},
    {"Shoal / GPUs", "Power usage", GPU},
    {"Shoal / GPUs", "Tensor core utilization", MODEL},
    {"Shoal / GPUs", "GPU power usage", GPU},
    {"Shoal / GPUs", "SM clock", GPU},
    {"Shoal / GPUs", "Energy", "what was spent: there is no limit to it"},
    {"Shoal / GPUs", "Corrected ECC errors",
     "no job notices them: charts of rows tell of memory that wears out"},
    {"Shoal / GPUs", "Rows remapped after corrected errors",
     "no job noticed them: Row remap failures has the line where no spare row is left"},
    {"Shoal / GPUs", "NVLink bandwidth", LINK},
    {"Shoal / GPUs", "PCIe bandwidth", LINK},
    {"Shoal / GPUs", "GPUs by job", COUNT},
    {"Shoal / GPUs", "Power usage by job", GPU},
    {"Shoal / GPUs", "GPUs by node", COUNT},
    {"Shoal / Operator", "Jobs, pods, services", COUNT},
    {"Shoal / Operator", "Jobs by state", COUNT},
    {"Shoal / Operator", "Jobs created and finished", COUNT},
    {"Shoal / Operator", "Reconcile passes",
     "passes follow the jobs; of those that fail any is too many: ShoalOperatorPassesFail"},
    {"Shoal / Operator", "Time of jobs by kind", KINDS},
    {"Shoal / Training", "Step", COUNT},
    {"Shoal / Training", "Epoch", COUNT},
    {"Shoal / Training", "Loss", MODEL},
    {"Shoal / Training", "Tokens and samples per second", MODEL},
    {"Shoal / Training", "Perplexity and accuracy", MODEL},
    {"Shoal / Training", "Gradient norm", MODEL},
    {"Shoal / Training", "Learning rate", MODEL},
    {"Shoal / Training", "Time of the job by kind", KINDS},
    {"Shoal / Training", "Time of the process by kind", KINDS},
    {"Shoal / Training", "Last checkpoint and step",
     "it is the distance of the two that counts: Checkpoint age has its line"},
    {"Shoal / Training", "Forward and backward by pod",
     "a pod is compared with the others: Ranks that hang or straggle has the line"},
    {"Shoal / Training", "Communication by pod", MODEL},
    {"Shoal / Training", "Step time by phase", KINDS},
    {"Shoal / Training", "Step duration", MODEL},
    {"Shoal / Training", "Mean step duration by pod", MODEL},
    {"Shoal / Training", "Collective bytes sent", LINK},
    {"Shoal / Training", "Collectives", MODEL},
    {"Shoal / Training", "Device memory by kind", ROOM},
    {"Shoal / Training", "Peak device memory", ROOM},
    {"Shoal / Training", "Host memory", "a pod's limit is its own"},
    {"Shoal / Training", "Checkpoint size", MODEL},
    {"Shoal / Training", "Tensor core utilization", MODEL},
    {"Shoal / Training", "GPU memory used", ROOM},
    {"Shoal / Training", "GPU power usage", GPU},
    {"Shoal / Training", "SM clock", GPU},
    {"Shoal / Training", "NVLink bandwidth", LINK},
};

/* The panel's place in the list; -1: it is not there. */
static int place_in_list(const char *dashboard, const char *title)
{
    for (size_t i = 0; i < array_length(without_thresholds); i++)
        if (strcmp(without_thresholds[i].dashboard, dashboard) == 0 &&
            strcmp(without_thresholds[i].title, title) == 0)
            return (int)i;
    return -1;
}

/* Steps after the first, which is what holds below all of them, have rising values. */
static bool rise(const struct json *steps)
{
    for (size_t i = 1; i < json_array_count(steps); i++) {
        const struct json *value = json_get(json_at(steps, i), "value");
        const struct json *last = json_get(json_at(steps, i - 1), "value");
        if (!json_is_number(value) || (i > 1 && json_as_number(value) <= json_as_number(last)))
            return false;
    }
    return true;
}

/* A chart over time draws its thresholds only where it is told to. */
static bool is_drawn(const struct json *panel, const struct json *defaults)
{
    const struct json *style = json_get(json_get(defaults, "custom"), "thresholdsStyle");
    const char *mode = json_as_text(json_get(style, "mode"));
    return strcmp(monitoring_text(panel, "type"), "timeseries") != 0 ||
           (mode && strcmp(mode, "off") != 0);
}

/* What is wrong with it; NULL: nothing. *listed: its place in the list. */
static const char *fault_of(const struct json *panel, const char *dashboard, int *listed)
{
    const struct json *defaults = json_get(json_get(panel, "fieldConfig"), "defaults");
    const struct json *steps = json_get(json_get(defaults, "thresholds"), "steps");
    *listed = place_in_list(dashboard, monitoring_text(panel, "title"));
    if (!*monitoring_text(defaults, "unit"))
        return "no unit";
    if (strlen(monitoring_text(panel, "description")) < strlen("Last step."))
        return "no description";
    if (json_array_count(steps) == 0)
        return "no color";
    if (*listed >= 0)
        return json_array_count(steps) > 1 ? "thresholds, so it has no place in the list" : NULL;
    if (json_array_count(steps) < 2)
        return "neither thresholds nor a reason in tests/cli/test_panels.c why it has none";
    if (!rise(steps))
        return "thresholds that do not rise";
    return is_drawn(panel, defaults) ? NULL : "thresholds that are not drawn: no thresholdsStyle";
}

static void panels_explain_themselves(void **state)
{
    (void)state;
    bool found[array_length(without_thresholds)] = {false};
    for (const char *const *path = monitoring_dashboards; *path; path++) {
        struct json *dashboard = monitoring_document(*path), *panel;
        json_each_item(panel, json_get(dashboard, "panels")) {
            int listed;
            if (strcmp(monitoring_text(panel, "type"), "row") == 0)
                continue;
            const char *fault = fault_of(panel, monitoring_text(dashboard, "title"), &listed);
            if (fault)
                fail_msg("%s: %s has %s", *path, monitoring_text(panel, "title"), fault);
            if (listed >= 0)
                found[listed] = true;
        }
        json_free(dashboard);
    }
    for (size_t i = 0; i < array_length(without_thresholds); i++)
        if (!found[i])
            fail_msg("%s has no panel %s: take it from the list", without_thresholds[i].dashboard,
                     without_thresholds[i].title);
}

/* ---- errors of memory ---- */

static bool asks_for(const struct json *panel, const char *const metrics[2])
{
    const struct json *target;
    json_each_item(target, json_get(panel, "targets")) {
        const char *asked = monitoring_text(target, "expr");
        if (strstr(asked, metrics[0]) || strstr(asked, metrics[1]))
            return true;
    }
    return false;
}

/* The color of one of what the panel shows. */
static const char *color_of_one(const struct json *panel)
{
    const struct json *step, *defaults = json_get(json_get(panel, "fieldConfig"), "defaults");
    const char *color = "";
    json_each_item(step, json_get(json_get(defaults, "thresholds"), "steps")) {
        const struct json *value = json_get(step, "value");
        if (!json_is_number(value) || json_as_number(value) <= 1)
            color = monitoring_text(step, "color");
    }
    return color;
}

/* An error that ECC corrects harms nobody, and one that it does not ends the job; so with the rows
 * that are replaced after them, until one is not. A chart has one line for all that it shows, so
 * that each has a chart. */
static void each_kind_of_memory_error_has_its_color(void **state)
{
    (void)state;
    static const struct {
        const char *metrics[2], *color;
    } kinds[] = {
        {{"_ecc_corrected_", "_ECC_SBE_"}, "green"},
        {{"_ecc_uncorrected_", "_ECC_DBE_"}, "red"},
        {{"_rows_remapped_correctable_", "_CORRECTABLE_REMAPPED_ROWS"}, "green"},
        {{"_rows_remapped_uncorrectable_", "_UNCORRECTABLE_REMAPPED_ROWS"}, "orange"},
        {{"_row_remap_failure", "_ROW_REMAP_FAILURE"}, "red"},
    };
    for (size_t i = 0; i < array_length(kinds); i++) {
        int charts = 0;
        for (const char *const *path = monitoring_dashboards; *path; path++) {
            struct json *dashboard = monitoring_document(*path), *panel;
            json_each_item(panel, json_get(dashboard, "panels")) {
                if (!asks_for(panel, kinds[i].metrics))
                    continue;
                charts++;
                if (strcmp(color_of_one(panel), kinds[i].color) != 0)
                    fail_msg("%s: %s: one %s is %s", *path, monitoring_text(panel, "title"),
                             kinds[i].metrics[0], color_of_one(panel));
            }
            json_free(dashboard);
        }
        assert_in_range(charts, 1, 8);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(panels_have_places_of_their_own),
        cmocka_unit_test(panels_explain_themselves),
        cmocka_unit_test(each_kind_of_memory_error_has_its_color),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
