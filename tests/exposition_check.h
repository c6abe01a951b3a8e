/* A strict reader of Prometheus' text format: what `promtool check metrics` refuses or warns of,
 * this does too. */
#ifndef SHOAL_TESTS_EXPOSITION_CHECK_H
#define SHOAL_TESTS_EXPOSITION_CHECK_H

/* Fails the test, naming the line, unless the page is well formed: every sample below its HELP and
 * TYPE, metrics not interleaved, no sample twice, names and labels legal, values numbers;
 * histograms complete and cumulative; counters end in _total and nothing else does; base units
 * only. */
void exposition_check(const char *page);

/* The value of the sample that begins like this, labels included: "up" or "up{a=\"b\"}"; fails the
 * test if there is none. */
double exposition_check_value(const char *page, const char *sample);
#endif
