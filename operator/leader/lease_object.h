/* Reads and writes coordination.k8s.io/v1 Lease objects. Pure. */
#ifndef SHOAL_OPERATOR_LEADER_LEASE_OBJECT_H
#define SHOAL_OPERATOR_LEADER_LEASE_OBJECT_H

#include "base/error.h"
#include "operator/leader/lease.h"

struct json;

/* ERR_INPUT names the malformed field. Absent fields are empty or 0. */
int lease_object_read(const struct json *object, struct lease_record *ret_record,
                      struct error *err);

/* The object to write; the caller releases it. seen: the object that was read, whose labels, owners
 * and other fields are kept; NULL: a new one. */
struct json *lease_object_write(const struct json *seen, const char *namespace_, const char *name,
                                const struct lease_record *record);
#endif
