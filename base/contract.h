/* What the operator side and the agent agree on, and nothing else: names of variables, labels,
 * ports, exit codes and the fields of a progress report. They meet here and on the wire. Constants
 * only. */
#ifndef SHOAL_BASE_CONTRACT_H
#define SHOAL_BASE_CONTRACT_H

/* What --version says, in every program. */
#define SHOAL_VERSION "0.1.0"

/* API (kubeflow.org/v1 PyTorchJob). */
#define API_GROUP          "kubeflow.org"
#define API_VERSION        "v1"
#define API_GROUP_VERSION  API_GROUP "/" API_VERSION
#define API_KIND           "PyTorchJob"
#define API_MANAGED_BY     "kubeflow.org/training-operator" /* runPolicy.managedBy that means us */
#define API_CONTAINER_NAME "pytorch"                        /* the container whose exit decides */
#define API_PORT_NAME      "pytorchjob-port"                /* its port for the rendezvous */
#define API_DEFAULT_PORT   23456

/* Labels on pods and services. */
#define LABEL_OPERATOR_NAME "training.kubeflow.org/operator-name"
#define LABEL_JOB_NAME      "training.kubeflow.org/job-name"
#define LABEL_REPLICA_TYPE  "training.kubeflow.org/replica-type"
#define LABEL_REPLICA_INDEX "training.kubeflow.org/replica-index"
#define LABEL_JOB_ROLE      "training.kubeflow.org/job-role"
#define OPERATOR_NAME       "pytorchjob-controller"

/* Environment of a pod, in torchrun's and the peer operator's words. RANK and PET_NODE_RANK are the
 * node's rank; only together with LOCAL_RANK is RANK a process rank. */
#define ENV_UNBUFFERED         "PYTHONUNBUFFERED"
#define ENV_MASTER_ADDR        "MASTER_ADDR"
#define ENV_MASTER_PORT        "MASTER_PORT"
#define ENV_WORLD_SIZE         "WORLD_SIZE"
#define ENV_RANK               "RANK"
#define ENV_LOCAL_RANK         "LOCAL_RANK"
#define ENV_LOCAL_WORLD_SIZE   "LOCAL_WORLD_SIZE"
#define ENV_PET_MASTER_ADDR    "PET_MASTER_ADDR"
#define ENV_PET_MASTER_PORT    "PET_MASTER_PORT"
#define ENV_PET_NODE_RANK      "PET_NODE_RANK"
#define ENV_PET_NNODES         "PET_NNODES"
#define ENV_PET_NPROC_PER_NODE "PET_NPROC_PER_NODE"
#define ENV_PET_RDZV_ENDPOINT  "PET_RDZV_ENDPOINT"
#define ENV_PET_RDZV_BACKEND   "PET_RDZV_BACKEND"
#define ENV_PET_RDZV_ID        "PET_RDZV_ID"
#define ENV_PET_RDZV_CONF      "PET_RDZV_CONF"
#define ENV_PET_MAX_RESTARTS   "PET_MAX_RESTARTS"
#define ENV_PET_STANDALONE     "PET_STANDALONE"
/* How often the launcher has started ranks again, and may; from torchrun and from our launcher. */
#define ENV_TORCHELASTIC_RESTART_COUNT "TORCHELASTIC_RESTART_COUNT"
#define ENV_TORCHELASTIC_MAX_RESTARTS  "TORCHELASTIC_MAX_RESTARTS"
/* Ours: how often this replica was started before (0 at first), so that an agent
 * knows a restart. */
#define ENV_RESTART_COUNT "SHOAL_RESTART_COUNT"
/* Ours: which run this is: the same for all of its processes and restarts, another for the next. */
#define ENV_RUN_ID "SHOAL_RUN_ID"
/* Ours: "NAMESPACE/NAME" of the job, as people call it. */
#define ENV_JOB "SHOAL_JOB"
/* Ours: what the processes of a run know and nobody else, to tell each other from strangers; not
 * set: the run's id. Empty: nothing. */
#define ENV_RUN_SECRET "SHOAL_RUN_SECRET"
/* Ours: path of a Unix datagram socket that takes progress reports; absent: nobody listens. */
#define ENV_PROGRESS_SOCKET "SHOAL_PROGRESS_SOCKET"
/* Ours: folders with NVIDIA's libraries, separated by colons, before all others
 * (base/library.h). */
#define ENV_LIBRARY_PATH "SHOAL_CUDA_LIBRARY_PATH"
/* Ours: whose attention a GPU gets (kernels/attention_choice.h). */
#define ENV_ATTENTION "SHOAL_ATTENTION"

/* Ours, in the pods of an elastic job: how many pods it had when this one was made, and after how
 * many seconds it goes on without one that is gone. */
#define ENV_NNODES       "SHOAL_NNODES"
#define ENV_SHRINK_AFTER "SHOAL_SHRINK_AFTER"
#define SHRINK_AFTER_S   30 /* unless it is set */

/* Ours, from the launcher to its ranks: the fewest that may be next time; 0: all of them. */
#define ENV_MIN_RANKS "SHOAL_MIN_RANKS"
/* Likewise: the elastic run's reduction slots (0: none). Whether the launcher is new: no rank of
 * its has asked the others yet which launchers are. And in how many rounds its ranks have met the
 * others' since they last asked, that round included; 0 where those that are lost do not come back
 * to the same place. */
#define ENV_SLOTS      "SHOAL_SLOTS"
#define ENV_IS_NEW     "SHOAL_IS_NEW"
#define ENV_ROUNDS_MET "SHOAL_ROUNDS_MET"

/* Exit codes of the agent. 1..127 are permanent, 128 and above retryable
 * (restartPolicy ExitCode). */
#define EXIT_DONE       0
#define EXIT_FAILED     1   /* training failed */
#define EXIT_CONFIG     2   /* configuration or data wrong: trying again is useless */
#define EXIT_RETRYABLE  138 /* a peer is lost, a collective was aborted, the device failed */
#define EXIT_TERMINATED 143 /* stopped by SIGTERM after saving */
#define EXIT_HARDWARE   144 /* this node's hardware is bad: trying again there is useless */
/* How the termination message of a container begins that ended with EXIT_HARDWARE; what is wrong
 * follows. An image that uses this code for its own purposes has no such message. */
#define HARDWARE_MESSAGE "bad hardware: "

/* The agent's program; an image whose last name is this has it as its entry point. */
#define AGENT_PROGRAM "shoal-agent"
/* The launchers whose command lines the agent takes: it has these names in its image. */
#define AGENT_LAUNCHERS "torchrun", "hyperpodrun", "accelerate"
/* All names it has there, in /usr/local/bin: it also takes python's command lines, and stands in
 * for what manifests run before them. */
#define AGENT_IMAGE_NAMES AGENT_LAUNCHERS, "python", "python3", "git", "pip", "pip3"
/* The operator's program; such an image waits for names as an init container. */
#define OPERATOR_PROGRAM "shoal-operator"

/* A progress report: one JSON object per datagram, at most PROGRESS_MAX_BYTES, sent by rank 0 of
 * the job. Reports may be lost; each is complete in itself. The first, before any step, has only
 * the last two members. Every few seconds, and at the end of a process, there is one more datagram:
 * what the run tells the operator (below), of TRAINING_MAX_BYTES at most. */
#define PROGRESS_MAX_BYTES     1024
#define PROGRESS_EPOCH         "epoch" /* 1-based */
#define PROGRESS_EPOCHS        "epochs"
#define PROGRESS_STEP          "step"  /* optimizer steps done in the whole run */
#define PROGRESS_STEPS         "steps" /* of the whole run */
#define PROGRESS_LOSS          "loss"  /* mean per sample of the last step, rank 0's own batch */
#define PROGRESS_SAMPLES_PER_S "samplesPerSecond" /* all ranks together */
#define PROGRESS_SECONDS_LEFT  "secondsLeft"
#define PROGRESS_WORLD_SIZE    "worldSize"
#define PROGRESS_URL           "url" /* where rank 0 serves the run over HTTP */

/* Each second, where there are several ranks, one datagram more: an object with these. */
#define PROGRESS_RANKS_MAX_BYTES (64 * 1024)
#define PROGRESS_RANKS           "ranks" /* an array with an object for each rank that was heard: */
#define PROGRESS_RANK            "rank"
#define PROGRESS_RANK_STATE      "state" /* one of the next two, or another word */
#define PROGRESS_RANK_STRAGGLING "straggling"
#define PROGRESS_RANK_HUNG       "hung"
#define PROGRESS_RANK_PHASE      "phase"
#define PROGRESS_RANK_WAITS      "waits"         /* a boolean: it is in a collective */
#define PROGRESS_RANK_COMPUTE    "compute_ratio" /* of its step's compute time to the middle one's */

/* What a run tells the operator: a JSON object of at most TRAINING_MAX_BYTES with these members,
 * those that are known. Each node's first rank answers GET with it at TRAINING_PATH on the port of
 * its container that is named TRAINING_PORT_NAME, else TRAINING_PORT; rank 0 also leaves it as the
 * last line of its container's termination message. They have the same names in status.training of
 * the job. Numbers are JSON numbers, times RFC 3339. */
#define TRAINING_PATH      "/progress"
#define TRAINING_PORT      9401
#define TRAINING_PORT_NAME "metrics"
#define TRAINING_MAX_BYTES 4096 /* the kubelet's limit of a termination message */
/* run_digest() of ENV_RUN_ID, in a pod that has ENV_JOB, too; or not there. Never the id itself: it
 * may be the secret that ranks join by. */
#define TRAINING_RUN             "runDigest"
#define TRAINING_STEP            "step"  /* optimizer steps done in the whole run */
#define TRAINING_STEPS           "steps" /* of the whole run */
#define TRAINING_EPOCH           "epoch" /* passes over the data done, with a fraction */
#define TRAINING_LOSS            "loss"
#define TRAINING_EVAL_LOSS       "evalLoss"
#define TRAINING_TOKENS_PER_S    "tokensPerSecond" /* this and the next: of all ranks */
#define TRAINING_SAMPLES_PER_S   "samplesPerSecond"
#define TRAINING_MFU             "mfu" /* 0..1 */
#define TRAINING_SECONDS_LEFT    "secondsLeft"
#define TRAINING_WORLD_SIZE      "worldSize" /* ranks; always there */
#define TRAINING_RESTARTS        "restarts"  /* how often rank 0 was started again */
#define TRAINING_GOODPUT         "goodput"   /* 0..1; the operator's, of all the job's time */
#define TRAINING_CHECKPOINT_STEP "lastCheckpointStep" /* durable */
#define TRAINING_CHECKPOINT_TIME "lastCheckpointTime"
#define TRAINING_LAST_PROGRESS   "lastProgressTime" /* a step, evaluation or save ended */
/* While a rank hangs: which, and its pod's node rank. */
#define TRAINING_HUNG_RANK "hungRank"
#define TRAINING_HUNG_NODE "hungNode"
/* The last rank that hung, also when it does so no more: an object with PROGRESS_RANK, step and
 * time, and if they are known PROGRESS_RANK_PHASE, host, pod, its last collective's number, op and
 * unit. Ranks that start again in place still tell it. */
#define TRAINING_LAST_HANG   "lastHang"
#define LAST_HANG_STEP       "step"
#define LAST_HANG_TIME       "time" /* when it was named */
#define LAST_HANG_HOST       "host"
#define LAST_HANG_POD        "pod"
#define LAST_HANG_COLLECTIVE "collective"
#define LAST_HANG_OP         "op"
#define LAST_HANG_UNIT       "unit"
/* In status.training of it only numbers are kept. */
#define TRAINING_LAST_HANG_RANK       "lastHangRank"
#define TRAINING_LAST_HANG_STEP       "lastHangStep"
#define TRAINING_LAST_HANG_COLLECTIVE "lastHangCollective"
#define TRAINING_LAST_HANG_TIME       "lastHangTime"
/* Of the process that tells: when it started; and an object, where its time went since then, in
 * seconds by kind, which add up. */
#define TRAINING_PROCESS_START "processStartTime"
#define TRAINING_RESUMED_STEP  "resumedStep" /* the steps that were done when it began */
#define TRAINING_SECONDS       "seconds"
/* The kinds within a process. */
#define TIME_NAME_INITIALIZATION "initialization"
#define TIME_NAME_PEER_WAIT      "peerWait"
#define TIME_NAME_RESTORE        "checkpointRestore"
#define TIME_NAME_DATA           "dataLoading"
#define TIME_NAME_STEP           "step"
#define TIME_NAME_LOST_WORK      "lostWork"
#define TIME_NAME_EVALUATION     "evaluation"
#define TIME_NAME_SAVE           "checkpointSave"
#define TIME_NAME_OTHER          "other"
/* The kind between two: from the last that one told to the start of the next. */
#define TIME_NAME_RECOVERY "recovery"
/* What only who looks at the run wants to know: rank 0 answers GET at this path of the same port
 * with an object of at most so many bytes. docs/page.md says what its members have. */
#define TRAINING_DETAIL_PATH         "/progress/detail"
#define TRAINING_DETAIL_MAX_BYTES    (64 * 1024)
#define TRAINING_DETAIL_RANKS        "ranks"
#define TRAINING_DETAIL_RANKS_HIDDEN "ranksHidden"
#define TRAINING_DETAIL_PHASES       "phases"
#define TRAINING_DETAIL_MEMORY       "memory"
#define TRAINING_DETAIL_RUN          "run"

#endif
