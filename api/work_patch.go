package api

import (
	"encoding/json"
	"net/http"

	"github.com/musterd/muster/api/internal/strict"
)

// WorkPatch is a merge patch (RFC 7386) of the labels and annotations of an
// allocation or a job. The zero value changes nothing.
type WorkPatch struct {
	// Preconditions are the uid and the resourceVersion that the change is for; an
	// object that has others refuses it with 409.
	Preconditions
	Labels      MapPatch
	Annotations MapPatch
}

// IsZero reports whether the patch changes nothing.
func (p WorkPatch) IsZero() bool { return p.Labels.IsZero() && p.Annotations.IsZero() }

// workPatchDocument is a WorkPatch as it is written; nodePatchNulls
// distinguishes null from absent in it as well.
type workPatchDocument struct {
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`
	Metadata   struct {
		Name            string             `json:"name,omitempty"`
		Namespace       string             `json:"namespace,omitempty"`
		UID             string             `json:"uid,omitempty"`
		ResourceVersion string             `json:"resourceVersion,omitempty"`
		Labels          map[string]*string `json:"labels,omitempty"`
		Annotations     map[string]*string `json:"annotations,omitempty"`
	} `json:"metadata"`
	Spec json.RawMessage `json:"spec,omitempty"`
}

var workPatchDecoder = strict.For[workPatchDocument]()

// DecodeWorkPatch reads the merge patch of an object of a kind, with a
// namespace and a name. It is refused with 400 where it is malformed or has an
// unknown field, with 422 where it changes nothing, or a field that cannot be
// changed.
func DecodeWorkPatch(kind, namespace, name string, doc []byte) (WorkPatch, *Status) {
	d, status := decode(workPatchDecoder, doc)
	if status == nil {
		status = checkKind(d.APIVersion, d.Kind, kind)
	}
	if status != nil {
		return WorkPatch{}, status
	}
	var nulls nodePatchNulls
	if err := json.Unmarshal(doc, &nulls); err != nil {
		return WorkPatch{}, Errorf(http.StatusBadRequest, "the patch is not JSON: %v", err)
	}
	p := WorkPatch{
		Preconditions: Preconditions{UID: d.Metadata.UID, ResourceVersion: d.Metadata.ResourceVersion},
		Labels:        MapPatch{Clear: isNull(nulls.Metadata.Labels), Set: d.Metadata.Labels},
		Annotations:   MapPatch{Clear: isNull(nulls.Metadata.Annotations), Set: d.Metadata.Annotations},
	}
	switch m := d.Metadata; {
	case m.Name != "" && m.Name != name:
		return p, invalid("metadata.name", "%q: the patch is for %q, a name cannot be changed", clip(m.Name), name)
	case m.Namespace != "" && m.Namespace != namespace:
		return p, invalid("metadata.namespace", "%q: the patch is for an object in %q, a namespace cannot be changed", clip(m.Namespace), namespace)
	case d.Spec != nil:
		return p, invalid("spec", "the spec is fixed once it is submitted: want metadata.labels or metadata.annotations")
	case p.IsZero():
		return p, invalid("metadata", "the patch changes nothing: want metadata.labels or metadata.annotations")
	}
	if status := checkLabels("metadata.labels", p.Labels.Apply(nil)); status != nil {
		return p, status
	}
	return p, CheckAnnotations("metadata.annotations", p.Annotations.Apply(nil))
}

// Apply returns the submitted document of an object of the metadata with the
// patch: every value but the labels and annotations is as it was written. It is
// refused with 422 where the labels or annotations would be too many.
func (p WorkPatch) Apply(doc []byte, m ObjectMeta) ([]byte, *Status) {
	labels, annotations := p.Labels.Apply(m.Labels), p.Annotations.Apply(m.Annotations)
	if status := checkLabels("metadata.labels", labels); status != nil {
		return nil, status
	}
	if status := CheckAnnotations("metadata.annotations", annotations); status != nil {
		return nil, status
	}
	var all, metadata map[string]json.RawMessage
	if err := json.Unmarshal(doc, &all); err != nil {
		return nil, Errorf(http.StatusInternalServerError, "the stored document is not JSON: %v", err)
	}
	if raw := all["metadata"]; raw != nil {
		if err := json.Unmarshal(raw, &metadata); err != nil {
			return nil, Errorf(http.StatusInternalServerError, "the stored document's metadata is not JSON: %v", err)
		}
	}
	if metadata == nil {
		metadata = map[string]json.RawMessage{}
	}
	for field, values := range map[string]map[string]string{"labels": labels, "annotations": annotations} {
		delete(metadata, field)
		if len(values) > 0 {
			metadata[field], _ = json.Marshal(values) // strings always encode
		}
	}
	var err error
	if all["metadata"], err = json.Marshal(metadata); err == nil {
		doc, err = json.Marshal(all)
	}
	if err != nil {
		return nil, Errorf(http.StatusInternalServerError, "encode the document: %v", err)
	}
	return doc, nil
}
