package lead

import (
	"maps"
	"slices"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/edit"
	"github.com/musterd/muster/coordinator/shown"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/registry"
)

// This file compares the resources that nodes declare. A name means one thing: the
// amount of a node that declares it otherwise than an earlier node is not handed out.

// declarations are those of all nodes that declare a name with a domain.
type declarations struct {
	of        map[resource.NodeID]registry.Declaration
	agreement registry.Agreement
}

// declare takes over the declaration of a node's specification, or forgets that of a node
// that is gone.
func (v *view) declare(id resource.NodeID) {
	var d registry.Declaration
	n := v.nodes[id]
	if n != nil && n.specRev != 0 {
		d = shown.DeclarationOf(id, &n.spec)
	}
	before, had := v.declared.of[id]
	switch {
	case len(d.Declared) == 0 && !had:
		return
	case len(d.Declared) == 0:
		delete(v.declared.of, id)
	case had && before.Since == d.Since && slices.Equal(before.Declared, d.Declared):
		n.closeCounts(v.declared.agreement)
		return
	default:
		if v.declared.of == nil {
			v.declared.of = map[resource.NodeID]registry.Declaration{}
		}
		v.declared.of[id] = d
	}
	if had || len(d.Declared) == 0 || !v.declared.agreement.Add(d, v.createdResources()) {
		v.agree()
	}
	if n != nil {
		n.closeCounts(v.declared.agreement)
	}
}

// declareAll takes over the declarations of all nodes.
func (v *view) declareAll() {
	for id, n := range v.nodes {
		if d := shown.DeclarationOf(id, &n.spec); len(d.Declared) > 0 {
			if v.declared.of == nil {
				v.declared.of = map[resource.NodeID]registry.Declaration{}
			}
			v.declared.of[id] = d
		}
	}
	v.agree()
}

// agree compares all declarations with each other and with the operators' resources.
func (v *view) agree() {
	if len(v.declared.of) == 0 && len(v.declared.agreement.Entries) == 0 {
		return
	}
	v.declared.agreement = registry.Agree(slices.Collect(maps.Values(v.declared.of)), v.createdResources())
	for id := range v.declared.of {
		if n := v.nodes[id]; n != nil {
			n.closeCounts(v.declared.agreement)
		}
	}
}

// createdResources are the resources that operators have written, with the fields that
// they gave.
func (v *view) createdResources() map[resource.Name]registry.Entry {
	created := map[resource.Name]registry.Entry{}
	for _, name := range v.objects.Resources.Names() {
		created[resource.Name(name)] = edit.GivenEntry(&v.objects.Resources.Get(name).Object)
	}
	return created
}

// describe is the entry of a name without the operators' object.
func (d *declarations) describe(name resource.Name) registry.Entry {
	if e, declared := d.agreement.Entries[name]; declared {
		return e
	}
	return registry.Describe(name)
}

// nodeResources are the names with a domain that specifications, or alternatives of them, ask nodes for: all but
// those that an operator has created for the whole cluster.
func (v *view) nodeResources(specs ...api.AllocationSpec) []resource.Name {
	wanted := resource.Vector{}
	for i := range specs {
		for _, form := range specs[i].Forms() {
			wanted.Add(api.ForeignRequest(form))
		}
	}
	var names []resource.Name
	for _, name := range wanted.Names() {
		if o := v.objects.Resources.Get(string(name)); o == nil || edit.ResourceEntry(&o.Object).Scope != registry.PerCluster {
			names = append(names, name)
		}
	}
	return names
}

// namesOf are the names with a domain of an assignment.
func namesOf(counts []resource.CountGrant) []resource.Name {
	var names []resource.Name
	for _, c := range counts {
		if resource.IsExtended(c.Name) && !slices.Contains(names, c.Name) {
			names = append(names, c.Name)
		}
	}
	return names
}
