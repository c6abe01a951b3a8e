/* For LD_PRELOAD: libcurl gives up a connection that was idle for a second; else it does after two
 * minutes (118 s). */
#include <curl/curl.h>
#include <dlfcn.h>
#include <stddef.h>

CURL *curl_easy_init(void)
{
    CURL *(*init)(void) = (CURL * (*)(void)) dlsym(RTLD_NEXT, "curl_easy_init");
    CURL *easy = init();
    if (easy)
        curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN, 1L);
    return easy;
}
