package doctor

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/spelling"
)

// judgeQuotas finds limits of resources that no node hands out: most are
// misspelt, and such a limit has no effect. A resource of the whole cluster is on no
// node, and is charged all the same.
func (f Facts) judgeQuotas(time.Time) (list []Finding) {
	handed := map[resource.Name]bool{resource.Pods: true}
	for _, n := range f.nodes {
		for name := range n.Status.Capacity {
			handed[name] = true
		}
		for name := range n.Status.Allocatable {
			handed[name] = true
		}
	}
	if len(f.nodes) == 0 {
		return nil
	}
	for _, r := range f.resources {
		if r.Spec.Scope == api.ResourceCluster {
			handed[resource.Name(r.Metadata.Name)] = true
		}
	}
	if handed[resource.CPU] {
		handed[resource.Cores] = true // a view of the CPUs
	}
	judge := func(subject, verb string, name resource.Name, remedy string) {
		if handed[name] {
			return
		}
		message := fmt.Sprintf("%s %q, which none of %d nodes hands out", verb, name, len(f.nodes))
		severity := Note
		if !isFamily(name) {
			severity = Warning
			if near := nearest(name, handed); near != "" {
				message += fmt.Sprintf("; is %q meant?", near)
			}
		}
		list = append(list, Finding{severity, checkQuotas, subject, message, remedy})
	}
	for _, q := range f.quotas {
		names := maps.Clone(q.Spec.Hard)
		if names == nil {
			names = map[resource.Name]string{}
		}
		maps.Copy(names, q.Spec.Soft)
		for _, name := range slices.Sorted(maps.Keys(names)) {
			judge(fmt.Sprintf("resourcequota %s/%s", q.Metadata.Namespace, q.Metadata.Name), "it limits", name,
				fmt.Sprintf("muster get resourcequota %s -n %s -o yaml > q.yaml; correct the name; muster apply -f q.yaml", q.Metadata.Name, q.Metadata.Namespace))
		}
	}
	for _, t := range f.trees {
		var spec api.QuotaTreeSpec
		if err := json.Unmarshal(t.Spec, &spec); err != nil {
			continue // the server has checked it
		}
		for _, name := range spec.ResourceNames {
			judge("quotatree "+t.Metadata.Name, "it counts", name, fmt.Sprintf("muster get quotatree %s -o yaml > t.yaml; correct spec.resourceNames; muster quota apply -f t.yaml", t.Metadata.Name))
		}
	}
	return list
}

// isFamily reports whether Muster can hand out the named resource on some host:
// no node may have such a resource yet.
func isFamily(name resource.Name) bool {
	switch name {
	case resource.CPU, resource.Cores, resource.Memory, resource.GPU:
		return true
	}
	_, page, pageErr := name.HugepageSize()
	_, mig, migErr := name.MIGProfile()
	return page && pageErr == nil || mig && migErr == nil || resource.IsGPUModel(name)
}

// nearest is the name that is at most three letters away, or a third of the
// name's length; "" where none is. Names are at most 317 bytes.
func nearest(name resource.Name, among map[resource.Name]bool) resource.Name {
	var names []string
	for _, other := range slices.Sorted(maps.Keys(among)) {
		names = append(names, string(other))
	}
	return resource.Name(spelling.Nearest(string(name), names, min(3, len(name)/3)))
}
