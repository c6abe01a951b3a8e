# shellcheck shell=bash disable=SC2154
# Jobs in real pods, and what may be known of them: `. tests/pods/jobs.sh` after tests/pods/node.sh.

# Made of the MNIST overlay by jq: no patch of a kustomization works with every kubectl since 1.20
kubectl kustomize kustomize/overlays/mnist | kubectl create --dry-run=client -o json -f - >"$work/mnist.json" || exit
# shellcheck disable=SC2016 # the variables are jq's
words='
def replicas(f): .spec.pytorchReplicaSpecs |= map_values(f);
def containers(f): replicas(.template.spec.containers[0] |= f);
def policy($name): replicas(.restartPolicy = $name);
def scope($name): .spec.runPolicy.restartScope = $name;
def workers($n): .spec.pytorchReplicaSpecs.Worker.replicas = $n;
def held: containers(.env += [{name: "LD_PRELOAD", value: "/workspace/checkpoints/hold.so"}, {name: "HOLD_UNTIL", value: "/workspace/checkpoints/go"}]);
def alone: containers(.env += [{name: "PET_MAX_RESTARTS", value: "0"}]);
def runs($script): containers(.command = ["bash", "-c", $script] | del(.args));
'
few_images
let_go() { touch "$work/$1/go"; }
# apply JOB [CHANGES [JQ_FLAGS]]: on a part of the data, with folders of this machine in the place of the claim; the job's own,
# which its user may write to, has the checkpoints. Of all pods together the node could not keep what the overlay requests;
# without a limit each would take all cores for its threads, which spin.
apply() {
    mkdir -p "$work/$1" && chmod 777 "$work/$1" && cp "$work/hold.so" "$work/$1"
    jq "${@:3}" --arg name "$1" --arg folder "$work/$1" --arg data "$data" "$words"'
        del(.metadata.namespace) | .metadata.name = $name | .spec.runPolicy.backoffLimit = 20 |
        replicas(.template.spec.volumes = [{name: "fsx", hostPath: {path: $folder}}, {name: "data", hostPath: {path: $data}}]) |
        containers(.volumeMounts[0] |= (.name = "data" | del(.subPath)) | .volumeMounts[1] |= del(.subPath)) |
        containers(del(.resources) | .args += ["--train_size=192", "--eval_size=64", "--batch_size=4",
            "--threads=1", "--epochs=6", "--save_steps=4", "--save-model=/workspace/checkpoints/mnist_cnn.safetensors"]) |
        '"${2:-.}" "$work/mnist.json" | kubectl apply -f -
}
saved() { compgen -G "$work/$1/*/*steps/COMPLETE"; }
resumed() { logs "$1" 'Resumed at step'; }
same() { cmp "$work/$1/mnist_cnn.safetensors" "$work/$2/mnist_cnn.safetensors"; } # JOB OTHER
count() { [ "$(uids "$1" | wc -l)" -eq "$2" ]; } # JOB PODS
uid() { kubectl get pod "$1" -o jsonpath='{.metadata.uid}'; }                                            # POD
is_killed() { kubectl get events --field-selector "reason=Killing,involvedObject.uid=$1" -o name | grep .; } # UID: the kubelet asks it to end
victim() { # UID WHO: the launcher, a rank, or who is alone. Not by the order of PIDs, which begin anew at pid_max.
    local pid who
    for pid in $(processes_of shoal-agent "$1"); do
        who=launcher
        ! grep -qsz '^LOCAL_RANK=' "/proc/$pid/environ" || who=rank
        [ "$2" = alone ] || [ "$2" = "$who" ] || continue
        echo "$pid"
        return
    done
    return 1
}
