package lead

import (
	"fmt"
	"maps"
	"slices"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/edit"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/registry"
)

// Warned is the result of a change that was made, with what its client should know
// of it.
type Warned[T any] struct {
	Object   T
	Warnings []string
}

// resources are the resources that Muster has built in, that a registered node
// declares, or that an operator created. Its time is in proportion to the nodes.
func (l *Leader) resources() *registry.Registry {
	var capacities []resource.Vector
	for _, n := range l.nodes {
		if n.specRev != 0 {
			capacities = append(capacities, registry.WithModels(n.spec.Capacity, n.spec.Topology.GPUModels))
		}
	}
	known := registry.New(capacities...)
	known.AddDeclared(l.declared.agreement)
	for _, name := range l.objects.Resources.Names() {
		known.Create(edit.ResourceEntryOver(l.declared.describe(resource.Name(name)), &l.objects.Resources.Get(name).Object))
	}
	return known
}

// judgeNames refuses a request for a resource with a domain that the cluster does not
// have. path is the field of the specification.
func (l *Leader) judgeNames(path string, spec api.AllocationSpec) *api.Status {
	wanted := api.ForeignRequest(spec)
	if len(wanted) == 0 {
		return nil
	}
	known := l.resources()
	for _, name := range wanted.Names() {
		e, found := known.Find(name)
		at := fmt.Sprintf("%s.resources.requests[%q]", path, string(name))
		switch near := known.Nearest(name); {
		case !found && near != "":
			return api.Errorf(422, "%s: unknown resource; is %q meant?", at, near)
		case !found:
			return api.Errorf(422, "%s: unknown resource: muster get resources lists the names; a node may declare one, and an operator may create one of scope cluster", at)
		case e.Kind == registry.Unique:
			return api.Errorf(422, "%s: the resource is of kind %s; this version charges resources of kind count and bytes", at, e.Kind)
		}
	}
	return nil
}

// resourceNames are the rules for names of resources in documents of quota.
func (l *Leader) resourceNames(allowUnknown bool) api.ResourceNames {
	names := api.ResourceNames{Known: l.resources()}
	if allowUnknown {
		names.Keeps = func(resource.Name) bool { return true }
	}
	return names
}

// keeping keeps the names that an object has already.
func keeping(names map[resource.Name]bool) func(resource.Name) bool {
	return func(name resource.Name) bool { return names[name] }
}

// misspelt refuses a demand on a tree for a resource that the tree does not count
// and whose name is near to another.
func (l *Leader) misspelt(spec quota.ConsumerSpec) *api.Status {
	known := l.resources()
	for i, d := range spec.Demands {
		counted := l.quotas.Tree(d.Tree).Counts()
		for _, name := range slices.Sorted(maps.Keys(d.Request)) {
			if slices.Contains(counted, name) {
				continue
			}
			if v := known.Judge(name); v.Code == registry.Misspelt {
				return api.Errorf(422, "spec.trees[%d].request[%s]: no resource is named %q; is %q meant?", i, fmt.Sprintf("%q", name), name, v.Near)
			}
		}
	}
	return nil
}
