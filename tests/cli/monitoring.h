/* What the tests of deploy/monitoring read its files with. */
#ifndef SHOAL_TESTS_CLI_MONITORING_H
#define SHOAL_TESTS_CLI_MONITORING_H

#include <stdint.h>

#define MONITORING_FOLDER "deploy/monitoring/"

struct json;

/* The first document of a file; the caller frees it with json_free. JSON is YAML, too. */
struct json *monitoring_document(const char *path);

/* A member of an object; the test fails where there is none of that kind. */
const char *monitoring_text(const struct json *object, const char *key);
int64_t monitoring_whole(const struct json *object, const char *key);

/* The paths of all dashboards, ended by NULL. */
extern const char *const monitoring_dashboards[];
#endif
