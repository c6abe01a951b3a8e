/* Manifests as people write them, in parts, and what comes of one. */
#ifndef SHOAL_TESTS_OPERATOR_DECODE_MANIFEST_TEXT_H
#define SHOAL_TESTS_OPERATOR_DECODE_MANIFEST_TEXT_H

#include "operator/decode/decode.h"

#define HEAD     "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: j}\nspec:\n"
#define TEMPLATE "template: {spec: {containers: [{name: pytorch, image: i}]}}"
#define MASTER   "Master: {replicas: 1, " TEMPLATE "}"
#define WORKER   "Worker: {" TEMPLATE "}"
#define SPECS    "  pytorchReplicaSpecs: "

/* Of a file "t.yaml", for an operator whose default backoffLimit is 6; the caller closes it. */
struct manifest *decode_text(const char *text, int *ret_result, struct error *err);
#endif
