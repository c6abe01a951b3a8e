/* How a rank that a launcher has started meets the others, and what it tells its launcher of that
 * (last_words.h). Reads what the launcher has put into the environment. */
#ifndef SHOAL_AGENT_RANK_MEETING_H
#define SHOAL_AGENT_RANK_MEETING_H

#include "agent/comm/rendezvous.h"

/* For so long ranks that have met before wait for one that was lost. Longer is nobody's wish: the
 * job is forgotten. */
enum { RANK_MEETING_PARK_S = 24 * 3600 };
/* Of those that have met in the same number of rounds, new launchers are counted up to here: all of
 * a job's are new at its first start, and stay so until they have asked. */
enum { RANK_MEETING_NEW_MOST = 8 };

/* A number that the launcher has set; 0 without one. */
int rank_meeting_number(const char *variable);

/* rendezvous_open(). Ranks that have met in an earlier round wait on when the time is up: a pod is
 * made again when there is a node for it, and what the launchers hold in memory would go with them.
 * tells: log that, once. Errors: those of rendezvous_open(). */
int rank_meeting_open(const struct rendezvous_options *options, bool tells,
                      struct rendezvous **ret_rendezvous, struct error *err);

/* For the first rank of each launcher. One that has met in fewer rounds than this rank's launcher
 * since that one last asked, the round of that question included, has taken the place of one that
 * was lost. Announce, pass a point that all ranks pass, then ask: so each launcher learns how many
 * there are. Who is new announces itself until a rank of its own has asked: a round may break
 * before the others have. It does so under the number of rounds in which it has met: where the old
 * ones have not asked yet, they are many, and take no place from one that has met in fewer. */
void rank_meeting_announce(struct store *store);
void rank_meeting_ask(struct store *store);
#endif
