"""All that acto tries, from the schema of our CustomResourceDefinition."""
import fields
import metrics
import template_values
from subject import FieldSubject, TemplateSubject


def subjects(schema):
    """All: [Subject], from the schema of spec; an error if fields.py has not just its leaves."""
    template = schema["properties"]["pytorchReplicaSpecs"]["properties"]["Worker"]["properties"]["template"]
    own = {leaf.path for leaf in fields.leaves_of(schema)}
    rows = {field.path for field in fields.FIELDS}
    if own != rows:
        raise ValueError(f"fields.py lacks {sorted(own - rows)}, and has {sorted(rows - own)} for nothing")
    found = [FieldSubject(field, *way) for field in fields.FIELDS for way in field.ways]
    found += [metrics.MetricSubject(leaf, *way) for leaf in metrics.leaves_of(schema) for way in fields.IN_PLACE]
    return found + [TemplateSubject(leaf, template, rest) for leaf in template_values.leaves_of(template) for rest in ("running", "suspended")]
