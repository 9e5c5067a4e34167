package api

import (
	"maps"
	"strings"
)

// MaxNodeTaints is the most taints that operators may set on one node.
const MaxNodeTaints = 64

// HostnameLabel and NodeLabel have a node's registered id, AssumeDeadLabel its
// limit without contact, where it has opted in.
const (
	HostnameLabel   = "kubernetes.io/hostname"
	NodeLabel       = "muster.dev/node"
	AssumeDeadLabel = "muster.dev/assume-dead-after"
)

// ReservedLabel reports whether a node's label is the coordinator's alone, so
// that no agent and no operator may set it: kubernetes.io/hostname, every key
// with a prefix muster.* and every key of nvidia.com.
func ReservedLabel(key string) bool {
	prefix, _, qualified := strings.Cut(key, "/")
	switch {
	case key == HostnameLabel:
		return true
	case !qualified:
		return false
	}
	return prefix == "nvidia.com" || strings.HasPrefix(prefix, "muster.")
}

// MapPatch is a merge patch of labels or annotations. The zero value changes
// nothing.
type MapPatch struct {
	// Clear removes every key: the patch was null. Set is empty then.
	Clear bool
	// Set has the new values; nil stands for the removal of a key.
	Set map[string]*string
}

// IsZero reports whether the patch changes nothing.
func (p MapPatch) IsZero() bool { return !p.Clear && len(p.Set) == 0 }

// Apply returns the patched map, nil where it has no key; m stays as it is.
func (p MapPatch) Apply(m map[string]string) map[string]string {
	out := maps.Clone(m)
	if p.Clear || out == nil {
		out = make(map[string]string, len(p.Set))
	}
	for k, v := range p.Set {
		if v == nil {
			delete(out, k)
		} else {
			out[k] = *v
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// CheckNodeLabels validates labels that an operator gives to nodes: their
// syntax, their number, and that none of them is reserved. The path names them
// in the refusal.
func CheckNodeLabels(path string, labels map[string]string) *Status {
	var faults faults
	for _, k := range sortedKeys(labels) {
		faults.add(checkUnreserved(path, k))
	}
	faults.add(checkLabels(path, labels))
	return faults.status()
}

func checkUnreserved(path, label string) *Status {
	if ReservedLabel(label) {
		return invalid(key(path, label), "the label is reserved: kubernetes.io/hostname, muster.*/* and nvidia.com/* follow from a node's registration")
	}
	return nil
}

// CheckAnnotations validates annotations: their number, the syntax of their
// keys, and that all of them together have at most 256 KiB.
func CheckAnnotations(path string, annotations map[string]string) *Status {
	var faults faults
	faults.add(atMost(path, len(annotations), MaxAnnotations))
	size := 0
	for _, k := range sortedKeys(annotations) {
		if !IsLabelKey(k) {
			faults.add(invalid(key(path, k), "%q is not an annotation key: %s", clip(k), labelKeyRule))
		}
		size += len(k) + len(annotations[k])
	}
	if size > maxAnnotations {
		faults.add(invalid(path, "%d bytes in all, the limit is %d", size, maxAnnotations))
	}
	return faults.status()
}
