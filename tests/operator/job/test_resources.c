/* Each kind of object in the version by which the operator asks for it, against the versions of
 * Kubernetes that serve it: 1.20 to 1.36, and all between, must know it. From Kubernetes'
 * "Deprecated API Migration Guide" and the lifecycles in k8s.io/api 0.36. */
#include "tests/support.h"

#include "base/mem.h"
#include "operator/job/resources.h"

#include <string.h>

enum { OLDEST = 20, NEWEST = 36, STILL = 999 }; /* minor versions */

static const struct {
    const char *api_version, *plural;
    int since, until; /* the first and the last that serve it */
} served[] = {
    {"v1", "pods", 0, STILL},
    {"v1", "services", 0, STILL},
    {"v1", "events", 0, STILL}, /* unlike events.k8s.io/v1beta1, which 1.25 dropped */
    {"coordination.k8s.io/v1", "leases", 14, STILL},
    {"autoscaling/v2beta2", "horizontalpodautoscalers", 12, 25},
    {"autoscaling/v2", "horizontalpodautoscalers", 23, STILL},
};

static bool serves(int minor, const struct resource *r)
{
    for (size_t i = 0; i < array_length(served); i++)
        if (!strcmp(served[i].api_version, r->api_version) && !strcmp(served[i].plural, r->plural))
            return served[i].since <= minor && minor <= served[i].until;
    return false;
}

static void every_version_serves_what_is_asked_for(void **state)
{
    (void)state;
    const struct resource *always[] = {&resource_pod, &resource_service, &resource_event,
                                       &resource_lease};
    for (int minor = OLDEST; minor <= NEWEST; minor++) {
        for (size_t i = 0; i < array_length(always); i++)
            if (!serves(minor, always[i]))
                fail_msg("1.%d serves no %s in %s", minor, always[i]->plural,
                         always[i]->api_version);
        /* one of these is found by asking (informers.h) */
        assert_true(serves(minor, resource_autoscaler("v2")) ||
                    serves(minor, resource_autoscaler("v2beta2")));
    }
}

static void names_are_consistent(void **state)
{
    (void)state;
    const struct resource *all[] = {&resource_job,
                                    &resource_pod,
                                    &resource_service,
                                    &resource_event,
                                    &resource_lease,
                                    resource_autoscaler("v2"),
                                    resource_autoscaler("v2beta2"),
                                    resource_pod_group(GANG_VOLCANO),
                                    resource_pod_group(GANG_PLUGINS)};
    for (size_t i = 0; i < array_length(all); i++) {
        const struct resource *r = all[i];
        auto_free char *both = xasprintf("%s/%s", r->group, r->version);
        assert_string_equal(r->api_version, r->group[0] ? both : r->version);
    }
    assert_null(resource_autoscaler("v2beta1"));
    assert_null(resource_pod_group(GANG_NONE));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_version_serves_what_is_asked_for),
        cmocka_unit_test(names_are_consistent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
