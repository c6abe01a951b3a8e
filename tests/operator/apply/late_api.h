/* An API server that answers when the test says so: takes the place of kube_send and kube_cancel.
 * It keeps what is in flight, in order, and writes down what it was asked. */
#ifndef SHOAL_TESTS_OPERATOR_APPLY_LATE_API_H
#define SHOAL_TESTS_OPERATOR_APPLY_LATE_API_H

#include "base/str.h"
#include "operator/apply/executor.h"

#define LATE_API_MAX 256

/* The server, in kube's place. */
struct kube {
    struct kube_request *in_flight[LATE_API_MAX];
    size_t count;
    struct str said; /* a line for each request: METHOD, the path's end and the object's name, of a
                        list the one it is about; an event is its reason in brackets */
    int cancelled, events;
    bool put_foreign;  /* the last status that was put has a field "foreign" */
    size_t body_bytes; /* what it says that bodies take */
    /* Of the history of a status (the last: of its training, too), by its CustomResourceDefinition:
     * this version's, Shoal 0.1's, somebody else's. */
    enum { LATE_API_KEEPS_ALL, LATE_API_KEEPS_A_PART, LATE_API_KEEPS_NOTHING } keeps;
    const char *drops; /* a field that it does not name, there or in a record; NULL: none */
    const char *drops_of_training; /* ... or of status.training: "training" is all of it */
    int uids; /* answers so far: the n-th has the UID "uidN", and resourceVersion 2 */
};

extern const struct executor_transport late_api_transport;

void late_api_open(struct kube *kube);
void late_api_close(struct kube *kube); /* fails the test if anything is in flight */

/* The first request in flight of this line, or, for NULL, the first that is no
 * event; NULL: none. */
struct kube_request *late_api_find(const struct kube *kube, const char *line);

/* Answers it, well with ERR_NONE. */
void late_api_answer(struct kube *kube, struct kube_request *request, enum error_code code);

/* Answers a list with this item, which is taken; NULL: with none. */
void late_api_answer_list(struct kube *kube, struct kube_request *request, struct json *item);

/* Answers that it went well without saying what it made, as kube does of a create whose first
 * answer was lost. */
void late_api_confirm(struct kube *kube, struct kube_request *request);

/* Answers all but events, well, until nothing more comes. */
void late_api_answer_all(struct kube *kube);
#endif
