#!/bin/bash
# Training in real pods: what README and docs/install.md say, on a node of this machine, and through kills.
# shellcheck source=tests/pods/node.sh
. "$(dirname "$0")/node.sh"
image_mib() { echo $(($(stat -c %s "build/image/$1.tar") >> 20)); }
check "the operator's image is small ($(image_mib shoal-operator) MiB)" test "$(image_mib shoal-operator)" -le 25

# overlay NAME POLICY: the MNIST overlay as a job of this name on a part of the data, with a folder of its own. By jq: no
# patch of a kustomization works with every kubectl since 1.20.
overlay() {
    mkdir -p "$work/$1-checkpoints"
    kubectl kustomize kustomize/overlays/mnist | kubectl create --dry-run=client -o json -f - |
        jq --arg name "$1" --arg policy "$2" --arg folder "$work/$1-checkpoints" '
            .metadata.name = $name | .spec.runPolicy.backoffLimit = 20 |
            .spec.pytorchReplicaSpecs |= map_values(.restartPolicy = $policy |
                .template.spec.volumes[1].hostPath.path = $folder |
                .template.spec.containers[0].args += ["--train_size=1024", "--eval_size=256", "--batch_size=32",
                    "--epochs=2", "--save_steps=3", "--save-model=/checkpoints/mnist_cnn.safetensors"])' |
        kubectl apply -f -
}
logs() { kubectl logs "$1-master-0" | grep -qE -- "$2"; }

# ---- a whole life
check "kubectl apply -k of the MNIST overlay" overlay whole OnFailure
waits() { kubectl get pod whole-worker-0 -o jsonpath='{.spec.initContainers[0].args}{.spec.initContainers[0].command}' | grep whole-master-0; }
check "a worker waits for its master's name" wait_for 60 waits
headless() { kubectl get service whole-master-0 --no-headers | grep -qE 'ClusterIP +None .*23456/TCP'; }
check "services are headless" wait_for 60 headless
check "the job succeeds" ends whole Succeeded
check "the master's log has the tutorial's lines" logs whole $'^Train Epoch: 2 \tLoss: '
check "kubectl get shows NAME STATE AGE" bash -c "kubectl get pytorchjob whole --no-headers | grep -qE '^whole +Succeeded +[0-9]+'"
check "kubectl describe tells the story" bash -c "kubectl describe pytorchjob whole | grep -q 'Created pod: whole-worker-2'"
same() { cmp "$work/whole-checkpoints/mnist_cnn.safetensors" "$work/$1-checkpoints/mnist_cnn.safetensors"; }

# ---- kills
saved() { find "$work/$1-checkpoints" -name COMPLETE | grep -q .; }
killed() { # JOB POLICY COMMAND...: does that once there is a checkpoint
    local name=$1
    check "$name: apply" overlay "$name" "$2"
    check "$name: a checkpoint appears" wait_for 120 saved "$name"
    check "$name: ${*:3}" "${@:3}"
    check "$name: the job succeeds all the same" ends "$name" Succeeded
    check "$name: it resumed" logs "$name" 'Resumed at step'
    check "$name: the weights are those of the uninterrupted run" same "$name"
}
kill_agent() { kill -KILL "$(agent "$1")"; }
killed worker-killed OnFailure kill_agent worker-killed-worker-1
killed master-killed ExitCode kill_agent master-killed-master-0
killed pod-deleted OnFailure kubectl delete pod pod-deleted-worker-0 --wait=false
operator_killed() { pkill -KILL -f '^shoal-operator .*--leader-elect' && kill_agent operator-killed-worker-2; }
killed operator-killed OnFailure operator_killed

# ---- a pause, and an API server that goes away meanwhile
suspend() { kubectl patch pytorchjob "$1" --type merge -p "{\"spec\": {\"runPolicy\": {\"suspend\": $2}}}"; }
no_pods() { [ -z "$(kubectl get pods -l "training.kubeflow.org/job-name=$1" -o name)" ]; }
check "paused: apply" overlay paused OnFailure
check "paused: a checkpoint appears" wait_for 120 saved paused
check "paused: suspend" suspend paused true
cluster_stop kube-apiserver KILL
cluster_start kube-apiserver
check "paused: the API server is back" cluster_wait 60 kube-apiserver kubectl get --raw /readyz
check "paused: its pods go" wait_for 90 no_pods paused
check "paused: resume" suspend paused false
check "paused: the job succeeds all the same" ends paused Succeeded
check "paused: it resumed" logs paused 'Resumed at step'
check "paused: the weights are those of the uninterrupted run" same paused

# ---- ends
check "kubectl delete" kubectl delete pytorchjob --all
none() { [ -z "$(kubectl get pods,services -l training.kubeflow.org/operator-name -o name)" ]; }
check "removes all pods and services" wait_for 90 none
tap_done
