#include "base/json_real.h"

#include <assert.h>
#include <locale.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* strtod and printf take the decimal point of the process's locale, which may be a comma. */
static locale_t with_point;

static void make_locale(void)
{
    with_point = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    assert(with_point != (locale_t)0); /* it is built in, and takes no memory */
}

static locale_t locale_with_point(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_locale);
    return with_point;
}

double json_real_value(const char *text)
{
    return strtod_l(text, NULL, locale_with_point());
}

void json_real_format(double number, int digits, char out[JSON_REAL_BYTES])
{
    assert(digits > 0 && digits <= 17);
    locale_t before = uselocale(locale_with_point());
    snprintf(out, JSON_REAL_BYTES, "%.*g", digits, number);
    uselocale(before);
}

/* C writes 1e+05 where JSON's readers are used to 1e5, and 1 where a reader must see that it is a
 * real. */
static void tidy(char *text)
{
    char *power = strchr(text, 'e');
    if (!power) {
        if (!strchr(text, '.'))
            memcpy(text + strlen(text), ".0", sizeof ".0");
        return;
    }
    char *digits = power + 1;
    bool negative = *digits == '-';
    digits += *digits == '-' || *digits == '+';
    digits += strspn(digits, "0");
    char *out = power + 1;
    if (negative)
        *out++ = '-';
    memmove(out, digits, strlen(digits) + 1);
}

void json_real_print(double number, int digits, char out[JSON_REAL_BYTES])
{
    json_real_format(number, digits, out);
    tidy(out);
}
