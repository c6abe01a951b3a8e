/* Weights that are there and not read: so that nobody trains from random values in their place. */
#ifndef SHOAL_AGENT_CHECKPOINT_PRETRAINED_UNREAD_H
#define SHOAL_AGENT_CHECKPOINT_PRETRAINED_UNREAD_H

/* The path of a file of weights in another format (PyTorch's pickles, TensorFlow's, GGUF), or of a
 * part whose index is missing; the caller frees it. NULL: the directory has none. */
char *pretrained_unread(const char *dir);
#endif
