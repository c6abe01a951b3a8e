/* The alerts of deploy/monitoring/rules.yaml, for whom they wake: each has a runbook, which is a
 * section of docs/troubleshooting.md with steps, and is tried in tests/deploy/alerts.yaml. */
#include "tests/support.h"

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "tests/cli/monitoring.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define RULES   MONITORING_FOLDER "rules.yaml"
#define PAGE    "docs/troubleshooting.md"
#define TRIALS  "tests/deploy/alerts.yaml"
#define HEADING "\n### Alert "

enum { PAGE_MAX_BYTES = 1 << 20, ALERTS_MAX = 64 };

struct world {
    struct json *rules, *trials;
    char *page;
};

static int open_world(void **state)
{
    struct error err;
    struct world *world = xcalloc(1, sizeof *world);
    size_t bytes;
    world->rules = monitoring_document(RULES);
    world->trials = monitoring_document(TRIALS);
    assert_ok(file_read(PAGE, PAGE_MAX_BYTES, &world->page, &bytes, &err), &err);
    *state = world;
    return 0;
}

static int close_world(void **state)
{
    struct world *world = *state;
    json_free(world->rules);
    json_free(world->trials);
    free(world->page);
    free(world);
    return 0;
}

/* Calls the function with each alert's name and rule; returns how many there are. */
static size_t each_alert(const struct world *world,
                         void (*look)(const struct world *, const char *, const struct json *))
{
    const struct json *group, *rule;
    size_t count = 0;
    json_each_item(group, json_get(json_get(world->rules, "spec"), "groups")) {
        json_each_item(rule, json_get(group, "rules")) {
            look(world, monitoring_text(rule, "alert"), rule);
            count++;
        }
    }
    return count;
}

/* The anchor that a heading gets on a page: small letters, "-" for a space. */
static char *anchor_of(const char *alert)
{
    char *anchor = xasprintf(PAGE "#alert-%s", alert);
    for (char *c = anchor + strlen(PAGE); *c; c++)
        *c = (char)tolower((unsigned char)*c);
    return anchor;
}

/* The section's text; NULL: there is none. The caller frees it. */
static char *section_of(const char *page, const char *alert)
{
    auto_free char *heading = xasprintf(HEADING "%s\n", alert);
    const char *start = strstr(page, heading);
    if (!start)
        return NULL;
    start += strlen(heading);
    const char *end = strstr(start, "\n##");
    return strndup(start, end ? (size_t)(end - start) : strlen(start));
}

static void has_runbook(const struct world *world, const char *alert, const struct json *rule)
{
    const struct json *annotations = json_get(rule, "annotations");
    const char *runbook = json_as_text(json_get(annotations, "runbook"));
    auto_free char *anchor = anchor_of(alert);
    auto_free char *section = section_of(world->page, alert);
    if (!runbook || strcmp(runbook, anchor) != 0)
        fail_msg("%s: %s has the runbook %s, not %s", RULES, alert, runbook ? runbook : "none",
                 anchor);
    if (!section)
        fail_msg("%s has no section \"Alert %s\"", PAGE, alert);
    /* What it means, then what to look at and to do, in order. */
    const char *steps = strstr(section, "\n\n1. ");
    if (!steps || steps < section + strlen("It is bad.") || !strstr(steps, "\n2. "))
        fail_msg("%s: Alert %s lacks its meaning, or steps", PAGE, alert);
    assert_true(*monitoring_text(annotations, "summary"));
    assert_true(*monitoring_text(json_get(rule, "labels"), "severity"));
}

static void each_has_a_runbook(void **state)
{
    assert_true(each_alert(*state, has_runbook) > 20);
}

/* ---- the other way round ---- */

static struct {
    const char *names[ALERTS_MAX];
    size_t count;
} known;

static void remember(const struct world *world, const char *alert, const struct json *rule)
{
    (void)world;
    (void)rule;
    assert_true(known.count < ALERTS_MAX);
    known.names[known.count++] = alert;
}

static bool is_known(const char *name, size_t length)
{
    for (size_t i = 0; i < known.count; i++)
        if (strlen(known.names[i]) == length && strncmp(known.names[i], name, length) == 0)
            return true;
    return false;
}

static void no_section_is_left_over(void **state)
{
    const struct world *world = *state;
    known.count = 0;
    each_alert(world, remember);
    for (const char *at = strstr(world->page, HEADING); at; at = strstr(at, HEADING)) {
        at += strlen(HEADING);
        int length = (int)strcspn(at, "\n");
        if (!is_known(at, (size_t)length))
            fail_msg("%s: %s has no alert %.*s", PAGE, RULES, length, at);
    }
}

/* ---- trials ---- */

/* Whether it is seen to fire with this severity: one name may have a rule for each. */
static bool fires(const struct world *world, const char *alert, const char *severity)
{
    const struct json *test, *trial, *expected;
    json_each_item(test, json_get(world->trials, "tests")) {
        json_each_item(trial, json_get(test, "alert_rule_test")) {
            if (strcmp(monitoring_text(trial, "alertname"), alert) != 0)
                continue;
            json_each_item(expected, json_get(trial, "exp_alerts")) {
                if (!strcmp(monitoring_text(json_get(expected, "exp_labels"), "severity"),
                            severity))
                    return true;
            }
        }
    }
    return false;
}

/* Whether there is a time at which it is seen not to. */
static bool rests(const struct world *world, const char *alert)
{
    const struct json *test, *trial;
    json_each_item(test, json_get(world->trials, "tests")) {
        json_each_item(trial, json_get(test, "alert_rule_test")) {
            if (strcmp(monitoring_text(trial, "alertname"), alert) == 0 &&
                json_array_count(json_get(trial, "exp_alerts")) == 0)
                return true;
        }
    }
    return false;
}

static void is_tried(const struct world *world, const char *alert, const struct json *rule)
{
    if (!fires(world, alert, monitoring_text(json_get(rule, "labels"), "severity")))
        fail_msg("%s: %s never fires", TRIALS, alert);
    if (!rests(world, alert))
        fail_msg("%s: nothing shows that %s does not always fire", TRIALS, alert);
}

static void each_is_tried(void **state)
{
    each_alert(*state, is_tried);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_has_a_runbook),
        cmocka_unit_test(no_section_is_left_over),
        cmocka_unit_test(each_is_tried),
    };
    return cmocka_run_group_tests(tests, open_world, close_world);
}
