/* Which known name somebody may have meant by one that nobody knows. */
#ifndef SHOAL_BASE_NEAREST_H
#define SHOAL_BASE_NEAREST_H

#include <stdbool.h>

enum { NEAREST_MOST = 8 };

/* How many characters must be changed, put in, left out or swapped with their neighbour to make one
 * name of the other (optimal string alignment), up to `most` and NEAREST_MOST; one more than that
 * where they are farther apart. Upper and lower case are alike, and so are '-' and '_'. Of b only
 * the first 64 bytes count. most: -1 or more. */
int nearest_distance(const char *a, const char *b, int most);

/* The greatest distance at which another name is a help: a third of the name, at most 3. */
int nearest_limit(const char *name);

/* Whether only a slip of the keys parts the two, so that nothing else can have been meant: one
 * change, from 5 characters on. Names of different things can be nearer to each other than
 * nearest_limit() ("num_layers", "num_labels"). Numbers are meant: "fsdp2" is not "fsdp". */
bool nearest_is_slip(const char *name, const char *known);

/* The word of a list that is nearest to a name, at most a quarter of the name and nearest_limit()
 * away: words of one list are often alike ("FULL_SHARD", "NO_SHARD"). */
struct nearest_word {
    char text[64]; /* "": none is near; longer ones are not looked at */
    bool is_slip;
};
/* separators: the characters between the words, and around them. Of equals the first. */
struct nearest_word nearest_word(const char *name, const char *words, const char *separators);

/* " (the nearest is WORD)", to stand behind the name in a message; "": none is near. */
struct nearest_note {
    char text[96];
};
struct nearest_note nearest_note(const char *name, const char *words, const char *separators);
#endif
