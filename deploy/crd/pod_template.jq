# From the OpenAPI 2 description of an API server to the schema of a pod template in deploy/crd/pytorchjobs.yaml, as YAML
# indented by $indent: jq --raw-output --argjson indent 26 --from-file deploy/crd/pod_template.jq swagger.json
# deploy/crd/pod_template.sh says where the description comes from, and puts the result into its place.
def core: "io.k8s.api.core.v1.";
def meta: "io.k8s.apimachinery.pkg.";
# a text of this form, or a number: core/v1 takes 0.5, too, which int-or-string would refuse
def quantity: {"x-kubernetes-preserve-unknown-fields": true,
    pattern: "^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$"};
def int_or_string: {"x-kubernetes-int-or-string": true, anyOf: [{type: "integer"}, {type: "string"}]};

# ---- what a CustomResourceDefinition may hold of a definition: its references are written out, its words left out
def structural($definitions):
    if ."$ref" then
        (."$ref" | ltrimstr("#/definitions/")) as $name
        | if $name == meta + "util.intstr.IntOrString" then int_or_string
          elif $name == meta + "api.resource.Quantity" then quantity
          else $definitions[$name] | structural($definitions) end
    else
        del(select(."x-kubernetes-list-type" == "atomic")."x-kubernetes-list-type") # which lists are anyway
        | with_entries(select(.key | IN("type", "format", "required", "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type"))) as $kept
        | $kept + if .properties then {properties: .properties | map_values(structural($definitions))} else {} end
        + if .additionalProperties then {additionalProperties: .additionalProperties | structural($definitions)} else {} end
        + if .items then {items: .items | structural($definitions)} else {} end
    end;

# An entry of a list is known by its keys, which therefore have values, also where core/v1 demands none. (A default of "" is
# one that Debian's build of Kubernetes 1.20 takes for null.)
def keyed:
    walk(if type == "object" and ."x-kubernetes-list-map-keys" then
        reduce (."x-kubernetes-list-map-keys" - (.items.required // []))[] as $key (.;
            if $key == "protocol" then .items.properties.protocol.default = "TCP" else .items.required += [$key] end)
    else . end);

# ---- what the operator asks for beyond core/v1 (operator/job/validate.c), or itself leaves out
def container:
    .items.required = ["name", "image"]
    | .items.properties |= (.name.minLength = 1 | .image.minLength = 1 | .env.items.properties.name.minLength = 1
        | .ports.items.properties.containerPort += {minimum: 1, maximum: 65535});
def pod_template:
    .properties.metadata |= (.properties |= with_entries(select(.key | IN("annotations", "creationTimestamp", "finalizers", "labels", "name", "namespace")))
        | .properties.creationTimestamp.nullable = true) # which typed clients write, and nobody reads
    | del(.properties.spec.properties.ephemeralContainers) # no pod can be made with them
    | .required = ["spec"]
    | .properties.spec |= (.description = "As in core/v1: kubectl explain pod.spec says what its fields mean."
        | .["x-kubernetes-validations"] = [{rule: "self.containers.exists(c, c.name == \u0027pytorch\u0027)",
            message: "must have at least one container with name pytorch"}]
        | .properties |= (.containers |= (container | .minItems = 1) | .initContainers |= container))
    | .description = "The pod of a replica, as in core/v1. One container is called pytorch.";

# ---- YAML, small things on a line of their own
def plain: if type == "string" and test("^[A-Za-z][-A-Za-z0-9_/]*$") and (IN("null", "true", "false", "yes", "no", "on", "off", "y", "n") | not) then . else tojson end;
def entries: to_entries | sort_by({type: 0, description: 1, format: 2, default: 3, required: 4}[.key] // 9, .key);
def flow:
    if type == "array" then "[" + (map(flow) | join(", ")) + "]"
    elif type == "object" then "{" + (entries | map("\(.key): \(.value | flow)") | join(", ")) + "}"
    else plain end;
def block($indent):
    entries[] | ((" " * $indent) + .key + ":") as $head | .value
    | flow as $flow
    | if type == "object" and ($head + $flow | length) > 125 then $head, block($indent + 2) else "\($head) \($flow)" end;

.definitions as $definitions
| $definitions[core + "PodTemplateSpec"] | structural($definitions) | keyed | pod_template | block($indent)
