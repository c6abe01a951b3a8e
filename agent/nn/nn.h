/* Layers, in torch.nn's words: the vocabulary that models are written in. Each function queues its
 * forward on the tape's stream and records its backward, within the borders of its module. It
 * consumes its tensor arguments (tape.h) and returns a new tensor, or NULL on a failed tape.
 *
 * Functions that end in _new declare a module below `parent`, described as PyTorch prints it.
 * *next_index counts parameters in declaration order. */
#ifndef SHOAL_AGENT_NN_NN_H
#define SHOAL_AGENT_NN_NN_H

#include "agent/nn/nn_attention.h"
#include "agent/nn/nn_conv.h"
#include "agent/nn/nn_dropout.h"
#include "agent/nn/nn_embedding.h"
#include "agent/nn/nn_linear.h"
#include "agent/nn/nn_loss.h"
#include "agent/nn/nn_norm.h"
#include "agent/nn/nn_pointwise.h"

#endif
