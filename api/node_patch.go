package api

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"

	"github.com/musterd/muster/api/internal/strict"
)

// NodePatch is a merge patch (RFC 7386) of a node. The zero value changes
// nothing.
type NodePatch struct {
	// ResourceVersion, where not empty, is the version that the change is for;
	// a node that has another one refuses it with 409.
	ResourceVersion string
	// UID, where not empty, is the uid that the node must have.
	UID string
	// Labels are the operators' labels: a key that is removed shows the agent's
	// label again, where the agent has one.
	Labels      MapPatch
	Annotations MapPatch
	// Taints, where not nil, are all taints of the node from now on.
	Taints *[]Taint
	// MergeTaints are taints that are set beside the others: each replaces the taint of
	// its key and effect. Only a strategic merge patch has them.
	MergeTaints   []Taint
	Unschedulable *bool
	// Kubelet changes the operators' part of the kubelet's pool.
	Kubelet KubeletPatch
}

// IsZero reports whether the patch changes nothing.
func (p NodePatch) IsZero() bool {
	return p.Labels.IsZero() && p.Annotations.IsZero() && p.Taints == nil && len(p.MergeTaints) == 0 && p.Unschedulable == nil && p.Kubelet.IsZero()
}

// MarshalJSON is the patch as DecodeNodePatch reads it.
func (p NodePatch) MarshalJSON() ([]byte, error) {
	metadata, spec := map[string]any{}, map[string]any{}
	for field, value := range map[string]string{"resourceVersion": p.ResourceVersion, "uid": p.UID} {
		if value != "" {
			metadata[field] = value
		}
	}
	for field, m := range map[string]MapPatch{"labels": p.Labels, "annotations": p.Annotations} {
		if m.Clear {
			metadata[field] = nil
		} else if len(m.Set) > 0 {
			metadata[field] = m.Set
		}
	}
	if p.Taints != nil {
		spec["taints"] = *p.Taints
	}
	if p.Unschedulable != nil {
		spec["unschedulable"] = *p.Unschedulable
	}
	if !p.Kubelet.IsZero() {
		spec["kubelet"] = p.Kubelet.spec()
	}
	return json.Marshal(map[string]any{"metadata": metadata, "spec": spec})
}

// nodePatchDocument is a NodePatch as it is written. A null that is written and
// a field that is absent look alike in it; nodePatchNulls distinguishes them.
type nodePatchDocument struct {
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`
	Metadata   struct {
		Name            string             `json:"name,omitempty"`
		UID             string             `json:"uid,omitempty"`
		ResourceVersion string             `json:"resourceVersion,omitempty"`
		Labels          map[string]*string `json:"labels,omitempty"`
		Annotations     map[string]*string `json:"annotations,omitempty" text:"lines"`
	} `json:"metadata"`
	Spec struct {
		Taints        []Taint `json:"taints,omitempty"`
		Unschedulable *bool   `json:"unschedulable,omitempty"`
		Kubelet       struct {
			Add    []string `json:"add,omitempty"`
			Remove []string `json:"remove,omitempty"`
		} `json:"kubelet"`
	} `json:"spec"`
}

type nodePatchNulls struct {
	Metadata struct {
		Labels      json.RawMessage `json:"labels"`
		Annotations json.RawMessage `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		Taints        json.RawMessage `json:"taints"`
		Unschedulable json.RawMessage `json:"unschedulable"`
		Kubelet       json.RawMessage `json:"kubelet"`
	} `json:"spec"`
}

// kubeletPatch is the part about the kubelet's pool. null removes a list, or both.
func (n *nodePatchNulls) kubeletPatch(add, remove []string) KubeletPatch {
	if n.Spec.Kubelet == nil {
		return KubeletPatch{}
	}
	if isNull(n.Spec.Kubelet) {
		return KubeletPatch{new([]string), new([]string)}
	}
	var lists struct {
		Add    json.RawMessage `json:"add"`
		Remove json.RawMessage `json:"remove"`
	}
	_ = json.Unmarshal(n.Spec.Kubelet, &lists) // the document was decoded already
	var p KubeletPatch
	if lists.Add != nil {
		p.Add = &add
	}
	if lists.Remove != nil {
		p.Remove = &remove
	}
	return p
}

var nodePatchDecoder = strict.For[nodePatchDocument]()

// DecodeNodePatch reads the merge patch of the node with a name. It is refused
// with 400 where it is malformed or has a field that cannot be patched, with 422
// where it changes nothing, sets a reserved label or a taint that placement does
// not support.
func DecodeNodePatch(name string, doc []byte) (NodePatch, *Status) {
	d, status := decode(nodePatchDecoder, doc)
	if status == nil {
		status = checkKind(d.APIVersion, d.Kind, KindNode)
	}
	if status != nil {
		return NodePatch{}, status
	}
	var nulls nodePatchNulls
	if err := json.Unmarshal(doc, &nulls); err != nil {
		return NodePatch{}, Errorf(http.StatusBadRequest, "the patch is not JSON: %v", err)
	}
	if d.Metadata.Name != "" && d.Metadata.Name != name {
		return NodePatch{}, invalid("metadata.name", "%q: the patch is for node %q, a name cannot be changed", clip(d.Metadata.Name), name)
	}
	p := NodePatch{
		ResourceVersion: d.Metadata.ResourceVersion, UID: d.Metadata.UID,
		Labels:        MapPatch{Clear: isNull(nulls.Metadata.Labels), Set: d.Metadata.Labels},
		Annotations:   MapPatch{Clear: isNull(nulls.Metadata.Annotations), Set: d.Metadata.Annotations},
		Unschedulable: d.Spec.Unschedulable,
	}
	if isNull(nulls.Spec.Unschedulable) {
		p.Unschedulable = new(bool)
	}
	if nulls.Spec.Taints != nil {
		p.Taints = &d.Spec.Taints
	}
	p.Kubelet = nulls.kubeletPatch(d.Spec.Kubelet.Add, d.Spec.Kubelet.Remove)
	if p.IsZero() {
		return NodePatch{}, invalid("spec", "the patch changes nothing: want metadata.labels, metadata.annotations, spec.taints, spec.unschedulable or spec.kubelet")
	}
	return p, p.check()
}

// DecodeNodeStrategicPatch reads the strategic merge patch of a node, as Kubernetes
// has it: a merge patch whose taints are merged by key and effect; null removes all
// of them. Directives such as $patch are refused with 400.
func DecodeNodeStrategicPatch(name string, doc []byte) (NodePatch, *Status) {
	p, status := DecodeNodePatch(name, doc)
	if status != nil || p.Taints == nil || *p.Taints == nil {
		return p, status
	}
	p.Taints, p.MergeTaints = nil, *p.Taints
	if p.IsZero() {
		return NodePatch{}, invalid("spec.taints", "an empty list changes nothing in a strategic merge patch: null removes all taints")
	}
	return p, nil
}

// MergeTaints returns a node's taints with those of a strategic merge patch, in the
// order in which they were set. The patch is refused with 422 where the taints would
// be too many.
func MergeTaints(has, set []Taint) ([]Taint, *Status) {
	merged := slices.Clone(has)
	for _, t := range set {
		same := func(o Taint) bool { return o.Key == t.Key && o.Effect == t.Effect }
		if i := slices.IndexFunc(merged, same); i >= 0 {
			merged[i] = t
		} else {
			merged = append(merged, t)
		}
	}
	if len(merged) > MaxNodeTaints {
		return nil, invalid("spec.taints", "%d taints with those of the node, the limit is %d", len(merged), MaxNodeTaints)
	}
	return merged, nil
}

func isNull(raw json.RawMessage) bool { return bytes.Equal(raw, []byte("null")) }

func (p NodePatch) check() *Status {
	var faults faults
	for _, k := range sortedKeys(p.Labels.Set) {
		if p.Labels.Set[k] == nil { // the others are judged below
			faults.add(checkUnreserved("metadata.labels", k))
		}
	}
	faults.add(CheckNodeLabels("metadata.labels", p.Labels.Apply(nil)))
	faults.add(CheckAnnotations("metadata.annotations", p.Annotations.Apply(nil)))
	faults.add(CheckKubeletPool("spec.kubelet", p.Kubelet.Apply(nil)))
	if p.Taints == nil {
		return faults.status()
	}
	faults.add(checkTaints("spec.taints", *p.Taints))
	return faults.status()
}

// checkTaints validates all taints of a node.
func checkTaints(path string, taints []Taint) *Status {
	var faults faults
	if len(taints) > MaxNodeTaints {
		faults.add(invalid(path, "%d taints, the limit is %d", len(taints), MaxNodeTaints))
	}
	type id struct{ key, effect string }
	seen := map[id]bool{}
	for i, t := range taints {
		at := path + "[" + strconv.Itoa(i) + "]"
		switch {
		case !IsLabelKey(t.Key):
			faults.add(invalid(at+".key", "%q is not a taint's key: %s", clip(t.Key), labelKeyRule))
		case !IsLabelValue(t.Value):
			faults.add(invalid(at+".value", "%q is not a taint's value: %s", clip(t.Value), labelValueRule))
		case seen[id{t.Key, t.Effect}]:
			faults.add(invalid(at, "key %q with the effect %s is given twice", t.Key, t.Effect))
		}
		faults.add(checkEffect(at+".effect", t.Effect))
		seen[id{t.Key, t.Effect}] = true
	}
	return faults.status()
}

// checkEffect accepts the effects of Kubernetes.
func checkEffect(path, effect string) *Status {
	switch effect {
	case "NoSchedule", "PreferNoSchedule", "NoExecute":
		return nil
	}
	return invalid(path, "%q: want NoSchedule, PreferNoSchedule or NoExecute", clip(effect))
}

// ApproveOptions is the optional body of an approval of a node's capacity.
type ApproveOptions struct {
	// ResourceVersion is the version of the node that the operator has looked at. A
	// node that has registered anew since then refuses the approval with 409.
	ResourceVersion string `json:"resourceVersion,omitempty" example:"1042"`
}

var approveOptionsDecoder = strict.For[ApproveOptions]()

// DecodeApproveOptions reads the body of an approval; an empty body approves
// the capacity that the node has registered last.
func DecodeApproveOptions(doc []byte) (ApproveOptions, *Status) {
	return decodeOptions(approveOptionsDecoder, doc, func(*ApproveOptions) *Status { return nil })
}
