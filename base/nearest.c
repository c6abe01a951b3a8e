#include "base/nearest.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int folded(char c)
{
    return c == '-' ? '_' : tolower((unsigned char)c);
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* Whether the last two letters up to here are those of the other, swapped. */
static bool is_swapped(const char *a, int i, const char *b, int j)
{
    return i > 1 && j > 1 && folded(a[i - 1]) == folded(b[j - 2]) &&
           folded(a[i - 2]) == folded(b[j - 1]);
}

/* Damerau's and Levenshtein's distance (optimal string alignment), three rows of the table. */
int nearest_distance(const char *a, const char *b)
{
    enum { MAX = 64, FAR = 8 };
    int rows[3][MAX + 1];
    int columns = (int)strnlen(b, MAX), i = 0;
    int difference = abs((int)strnlen(a, 2 * MAX) - columns);
    if (difference > FAR) /* most pairs: an unknown flag is compared with every name there is */
        return difference;
    for (int j = 0; j <= columns; j++)
        rows[0][j] = j;
    while (a[i++]) {
        const int *before = rows[(i + 1) % 3], *above = rows[(i + 2) % 3];
        int *row = rows[i % 3];
        row[0] = i;
        for (int j = 1; j <= columns; j++) {
            row[j] = least(above[j], row[j - 1]) + 1;
            row[j] = least(row[j], above[j - 1] + (folded(a[i - 1]) != folded(b[j - 1])));
            if (is_swapped(a, i, b, j))
                row[j] = least(row[j], before[j - 2] + 1);
        }
    }
    return rows[(i - 1) % 3][columns];
}

int nearest_limit(const char *name)
{
    size_t third = strlen(name) / 3;
    return third < 3 ? (int)third : 3;
}

static char next_without_digits(const char **text)
{
    while (isdigit((unsigned char)**text))
        ++*text;
    return **text ? *(*text)++ : '\0';
}

static bool differs_in_digits(const char *a, const char *b)
{
    char x, y;
    do {
        x = next_without_digits(&a);
        y = next_without_digits(&b);
    } while (x && folded(x) == folded(y));
    return x == y;
}

bool nearest_is_slip(const char *name, const char *known)
{
    int distance = nearest_distance(name, known);
    if (distance > 0 && differs_in_digits(name, known))
        return false;
    return distance == 0 || (distance == 1 && strlen(name) >= 5);
}

struct nearest_word nearest_word(const char *name, const char *words, const char *separators)
{
    struct nearest_word best = {.text = ""};
    int least = (int)(strlen(name) / 4) + 1;
    if (least > nearest_limit(name) + 1)
        least = nearest_limit(name) + 1;
    while (*(words += strspn(words, separators))) {
        struct nearest_word one = {.text = ""};
        size_t length = strcspn(words, separators);
        if (length < sizeof one.text) {
            memcpy(one.text, words, length);
            int distance = nearest_distance(name, one.text);
            if (distance < least) {
                least = distance;
                best = one;
            }
        }
        words += length;
    }
    best.is_slip = best.text[0] && nearest_is_slip(name, best.text);
    return best;
}

struct nearest_note nearest_note(const char *name, const char *words, const char *separators)
{
    struct nearest_note note = {.text = ""};
    struct nearest_word word = nearest_word(name, words, separators);
    if (word.text[0])
        snprintf(note.text, sizeof note.text, " (the nearest is %s)", word.text);
    return note;
}
