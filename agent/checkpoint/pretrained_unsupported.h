/* Weights that are there and not read: so that nobody trains from random values in their place. */
#ifndef SHOAL_AGENT_CHECKPOINT_PRETRAINED_UNSUPPORTED_H
#define SHOAL_AGENT_CHECKPOINT_PRETRAINED_UNSUPPORTED_H

/* The path of a file of weights in another format (PyTorch's pickles, TensorFlow's, GGUF), or of a
 * part whose index is missing; the caller frees it. NULL: the directory has none. */
char *pretrained_find_unsupported(const char *dir);
#endif
