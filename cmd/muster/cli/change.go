package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
)

// workFields are the fields of the specification of an allocation or a job that may
// change.
var workFields = []string{"suspend", "queue", "parallelism"}

// patch is a merge patch.
type patch struct {
	Metadata map[string]any `json:"metadata"`
	Spec     map[string]any `json:"spec,omitempty"`
}

// workChange returns the merge patch of an allocation or a job: the labels and
// annotations become those of the document, and so do workFields. A document whose
// spec differs otherwise is refused by its first field that does, with both values.
func workChange(o, current object) (*patch, error) {
	completeBy(o, current)
	want, err := plain(o.kind().entry().spec(o))
	if err != nil {
		return nil, err
	}
	have, err := plain(current.kind().entry().spec(current))
	if err != nil {
		return nil, err
	}
	spec := specChangeOf(want, have)
	if d := firstDifference("spec", want, have); d != nil {
		return nil, fmt.Errorf("%s: %s cannot become %s: the field is fixed once it is submitted; delete the %s and submit it anew, or submit it under another name",
			d.path, inWords(d.have), inWords(d.want), o.kind())
	}
	metadata := map[string]any{}
	if m := mapChange(o.meta().Labels, current.meta().Labels); m != nil {
		metadata["labels"] = m
	}
	if m := mapChange(o.meta().Annotations, current.meta().Annotations); m != nil {
		metadata["annotations"] = m
	}
	if len(metadata)+len(spec) == 0 {
		return nil, nil
	}
	return &patch{metadata, spec}, nil
}

// specChangeOf takes workFields out of two specifications and returns those that
// differ, as the first has them. A field missing in the document stays as it is: its
// value may be the server's.
func specChangeOf(want, have any) map[string]any {
	w, _ := want.(map[string]any)
	h, _ := have.(map[string]any)
	spec := map[string]any{}
	for _, field := range workFields {
		if value, is := w[field]; is && value != h[field] {
			spec[field] = value
		}
		delete(w, field)
		delete(h, field)
	}
	return spec
}

// completeBy gives a document the object's priority, class and preemption policy, where the
// document leaves them out: the server had them from a class.
func completeBy(o, current object) {
	var number *int32
	var class, policy string
	specOf(current).CompleteBy(func(n **int32, c, p *string) { number, class, policy = *n, *c, *p })
	specOf(o).CompleteBy(func(n **int32, c, p *string) { *n, *c, *p = cmp.Or(*n, number), cmp.Or(*c, class), cmp.Or(*p, policy) })
}

// specOf is the specification of an allocation or a job.
func specOf(o object) interface{ CompleteBy(api.FillPriority) } {
	if j := as[api.Job](o); j != nil {
		return &j.Spec
	}
	return &as[api.Allocation](o).Spec
}

// mapChange is the merge patch that makes one map of another, nil for none.
func mapChange(want, have map[string]string) map[string]*string {
	change := map[string]*string{}
	for key, value := range want {
		if has, is := have[key]; !is || has != value {
			change[key] = &value
		}
	}
	for key := range have {
		if _, stays := want[key]; !stays {
			change[key] = nil
		}
	}
	if len(change) == 0 {
		return nil
	}
	return change
}

// nodeChange returns the merge patch of a node: the labels, annotations, taints
// and unschedulable that the document has are set, the others stay.
func nodeChange(o object, current *api.Node) (*patch, error) {
	wanted := as[api.Node](o)
	metadata, spec := map[string]any{}, map[string]any{}
	labels := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(wanted.Metadata.Labels)) {
		value := wanted.Metadata.Labels[key]
		has, is := current.Metadata.Labels[key]
		switch {
		case is && has == value:
		case api.ReservedLabel(key):
			return nil, fmt.Errorf("metadata.labels[%q]: %s cannot become %q: the label follows from the node's registration", key, inWords(valueOrNil(has, is)), value)
		default:
			labels[key] = value
		}
	}
	annotations := map[string]string{}
	for key, value := range wanted.Metadata.Annotations {
		if has, is := current.Metadata.Annotations[key]; !is || has != value {
			annotations[key] = value
		}
	}
	has := specFields(o.raw)
	if len(labels) > 0 {
		metadata["labels"] = labels
	}
	if len(annotations) > 0 {
		metadata["annotations"] = annotations
	}
	if has["taints"] != nil && !slices.Equal(wanted.Spec.Taints, current.Spec.Taints) {
		spec["taints"] = append([]api.Taint{}, wanted.Spec.Taints...)
	}
	if has["unschedulable"] != nil && wanted.Spec.Unschedulable != current.Spec.Unschedulable {
		spec["unschedulable"] = wanted.Spec.Unschedulable
	}
	if len(metadata)+len(spec) == 0 {
		return nil, nil
	}
	return &patch{metadata, spec}, nil
}

func valueOrNil(value string, is bool) any {
	if !is {
		return nil
	}
	return value
}

// specFields are the fields in the spec of a document.
func specFields(doc []byte) map[string]json.RawMessage {
	var d struct {
		Spec map[string]json.RawMessage `json:"spec"`
	}
	_ = json.Unmarshal(doc, &d) // it was decoded already
	return d.Spec
}

// fieldChange is the first field, in order of the names, that two documents do
// not have alike. A value that is absent is nil.
type fieldChange struct {
	path       string
	want, have any
}

func firstDifference(path string, want, have any) *fieldChange {
	switch w := want.(type) {
	case map[string]any:
		h, is := have.(map[string]any)
		if !is {
			break
		}
		keys := slices.Sorted(maps.Keys(w))
		for key := range h {
			if _, both := w[key]; !both {
				keys = append(keys, key)
			}
		}
		slices.Sort(keys)
		for _, key := range keys {
			if isAmount(path) && sameAmount(key, w[key], h[key]) {
				continue
			}
			if d := firstDifference(member(path, key), w[key], h[key]); d != nil {
				return d
			}
		}
		return nil
	case []any:
		h, is := have.([]any)
		if !is || len(h) != len(w) {
			break
		}
		for i := range w {
			if d := firstDifference(path+"["+strconv.Itoa(i)+"]", w[i], h[i]); d != nil {
				return d
			}
		}
		return nil
	case nil:
		if have == nil {
			return nil
		}
	default:
		if want == have {
			return nil
		}
	}
	return &fieldChange{path, want, have}
}

// member is the path of a field, or of a key that is no plain word.
func member(path, key string) string {
	for _, r := range key {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-' {
			return path + "[" + strconv.Quote(key) + "]"
		}
	}
	return path + "." + key
}

// isAmount reports whether the values at a path are amounts of resources.
func isAmount(path string) bool {
	return strings.HasSuffix(path, ".requests") || strings.HasSuffix(path, ".limits")
}

// sameAmount reports whether two amounts of a resource are equal, such as 1 and
// 1000m CPUs.
func sameAmount(name string, x, y any) bool {
	if x == nil || y == nil {
		return false
	}
	a, errA := resource.ParseAmount(resource.Name(name), fmt.Sprint(x))
	b, errB := resource.ParseAmount(resource.Name(name), fmt.Sprint(y))
	return errA == nil && errB == nil && a == b
}

// inWords shows a value of a document, in JSON and not without end.
func inWords(v any) string {
	if v == nil {
		return "nothing"
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return clip(string(raw), 80)
}
