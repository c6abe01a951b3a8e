/* Which known name somebody may have meant by one that nobody knows. */
#ifndef SHOAL_BASE_NEAREST_H
#define SHOAL_BASE_NEAREST_H

/* How many characters must be changed, put in, left out or swapped with their neighbour to make one
 * name of the other (optimal string alignment). Upper and lower case are alike, and so are '-' and
 * '_'. Of b only the first 64 bytes count. */
int nearest_distance(const char *a, const char *b);

/* The greatest distance at which another name is a help: a third of the name, at most 3. */
int nearest_limit(const char *name);
#endif
