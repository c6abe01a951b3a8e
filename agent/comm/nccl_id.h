/* NCCL's ncclUniqueId as texts for the store: one id takes two values, in hexadecimal. Pure. */
#ifndef SHOAL_AGENT_COMM_NCCL_ID_H
#define SHOAL_AGENT_COMM_NCCL_ID_H

#include "agent/comm/nccl_api.h"
#include "agent/comm/store.h"

enum { NCCL_ID_PARTS = 2 };

void nccl_id_encode(const struct nccl_id *id, int part, char ret_text[STORE_VALUE_MAX]);
/* Fills the part of *ret_id. ERR_INPUT if the text is not just such digits. */
int nccl_id_decode(const char *text, int part, struct nccl_id *ret_id, struct error *err);
#endif
