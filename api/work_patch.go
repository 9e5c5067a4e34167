package api

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/musterd/muster/api/internal/strict"
)

// WorkPatch is a merge patch (RFC 7386) of the labels, the annotations and the
// specification of an allocation or a job. The zero value changes nothing.
type WorkPatch struct {
	// Preconditions are the uid and the resourceVersion that the change is for; an
	// object that has others refuses it with 409.
	Preconditions
	Labels      MapPatch
	Annotations MapPatch
	// Spec is the merge patch of the specification, nil for none. Which fields may
	// change is checked with the document that the patch is applied to.
	Spec json.RawMessage
}

// IsZero reports whether the patch changes nothing.
func (p WorkPatch) IsZero() bool {
	return p.Labels.IsZero() && p.Annotations.IsZero() && p.Spec == nil
}

// Suspends reports whether the patch sets spec.suspend.
func (p WorkPatch) Suspends() bool {
	var spec struct {
		Suspend bool `json:"suspend"`
	}
	return json.Unmarshal(p.Spec, &spec) == nil && spec.Suspend
}

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
		Annotations     map[string]*string `json:"annotations,omitempty" text:"lines"`
	} `json:"metadata"`
	Spec json.RawMessage `json:"spec,omitempty" text:"free"`
}

var (
	workPatchDecoder = strict.For[workPatchDocument]()
	jobChangeDecoder = strict.For[struct {
		Spec JobSpec `json:"spec"`
	}]()
	allocationChangeDecoder = strict.For[struct {
		Spec AllocationSpec `json:"spec"`
	}]()
)

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
	var faults faults
	if m := d.Metadata; m.Name != "" && m.Name != name {
		faults.add(invalid("metadata.name", "%q: the patch is for %q, a name cannot be changed", clip(m.Name), name))
	}
	if m := d.Metadata; m.Namespace != "" && m.Namespace != namespace {
		faults.add(invalid("metadata.namespace", "%q: the patch is for an object in %q, a namespace cannot be changed", clip(m.Namespace), namespace))
	}
	p.Spec, status = specPatch(kind, d.Spec)
	faults.add(status)
	if status == nil && p.IsZero() {
		faults.add(invalid("metadata", "the patch changes nothing: want metadata.labels, metadata.annotations, %s", patchable(kind)))
	}
	faults.add(checkLabels("metadata.labels", p.Labels.Apply(nil)))
	faults.add(CheckAnnotations("metadata.annotations", p.Annotations.Apply(nil)))
	return p, faults.status()
}

// specPatch is the merge patch of a specification, nil where it has no field. A
// field that the kind does not have is refused with 400.
func specPatch(kind string, raw json.RawMessage) (json.RawMessage, *Status) {
	switch {
	case raw == nil:
		return nil, nil
	case isNull(raw):
		return nil, invalid("spec", "null: the spec cannot be removed; %s can change", patchable(kind))
	}
	var status *Status
	change := slices.Concat([]byte(`{"spec":`), raw, []byte("}"))
	if kind == KindJob {
		_, status = decode(jobChangeDecoder, change)
	} else {
		_, status = decode(allocationChangeDecoder, change)
	}
	if status != nil {
		return nil, status
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, Errorf(http.StatusBadRequest, "spec: %v", err)
	}
	if len(fields) == 0 {
		return nil, nil
	}
	return raw, nil
}

// patchable names the fields of a kind's specification that a patch may change.
func patchable(kind string) string {
	fields := patchableFields(kind)
	for i, f := range fields {
		fields[i] = "spec." + f
	}
	last := len(fields) - 1
	return strings.Join(fields[:last], ", ") + " or " + fields[last]
}

func patchableFields(kind string) []string {
	if kind == KindJob {
		return []string{"suspend", "queue", "parallelism"}
	}
	return []string{"suspend", "queue"}
}

// PatchedAllocation returns an allocation's document with the patch, raw and read. fill
// completes a specification by the values that the allocation got at its submission.
// It is refused with 422 where a field changes that is fixed, or where the result
// is no valid allocation.
func (p WorkPatch) PatchedAllocation(doc []byte, current *Allocation, fill FillPriority) ([]byte, *Allocation, *Status) {
	raw, status := p.Apply(doc, current.Metadata)
	if status != nil {
		return nil, nil, status
	}
	check := (*Allocation).check
	if p.Spec == nil { // an earlier version may have accepted more
		check = (*Allocation).settle
	}
	a, status := decodeValid(allocationDecoder.Sharing().Stored(), raw, check)
	if status == nil {
		a.Spec.CompleteBy(fill)
	}
	if status == nil && p.Spec != nil {
		status = checkFixed(KindAllocation, current.Spec, a.Spec)
	}
	if status == nil && a.Group() != current.Group() {
		status = invalid("metadata.annotations", "gang-size and max-wait are minMembers and timeout of gangScheduling, which cannot be changed; submit the allocation anew")
	}
	return raw, a, status
}

// PatchedJob is PatchedAllocation of a job.
func (p WorkPatch) PatchedJob(doc []byte, current *Job, fill FillPriority) ([]byte, *Job, *Status) {
	raw, status := p.Apply(doc, current.Metadata)
	if status != nil {
		return nil, nil, status
	}
	check := (*Job).check
	if p.Spec == nil {
		check = (*Job).settle
	}
	j, status := decodeValid(jobDecoder.Sharing().Stored(), raw, check)
	if status == nil {
		j.Spec.CompleteBy(fill)
	}
	if status == nil && p.Spec != nil {
		status = checkFixed(KindJob, current.Spec, j.Spec)
	}
	return raw, j, status
}

// Apply returns the submitted document of an object of the metadata with the
// patch: every value that the patch does not name is as it was written. It is
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
	if p.Spec != nil {
		spec := all["spec"]
		if spec == nil {
			spec = json.RawMessage("{}")
		}
		merged, err := strict.Merge(spec, p.Spec)
		if err != nil {
			return nil, Errorf(http.StatusBadRequest, "spec: %v", err)
		}
		all["spec"] = merged
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
