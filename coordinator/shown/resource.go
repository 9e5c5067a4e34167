package shown

import (
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/registry"
)

// Resource shows a resource: its description, and the object that an operator wrote,
// nil for none. The number of nodes is not a part of it.
func Resource(e registry.Entry, written *api.Resource, declared bool) api.Resource {
	r := api.Resource{APIVersion: api.APIVersion, Kind: api.KindResource}
	r.Metadata.Name = string(e.Name)
	if written != nil {
		r.Metadata = written.Metadata
	}
	r.Spec = api.ResourceSpec{DisplayName: e.DisplayName, Unit: e.Unit, Kind: string(e.Kind), Scope: string(e.Scope), Rank: int32(e.Rank)}
	if e.BuiltIn {
		r.Status.Sources = append(r.Status.Sources, api.SourceBuiltIn)
	}
	if declared {
		r.Status.Sources = append(r.Status.Sources, api.SourceNode)
	}
	if written != nil {
		r.Status.Sources = append(r.Status.Sources, api.SourceOperator)
	}
	return r
}

// DeclarationOf is the declaration of a node: the names with a domain.
func DeclarationOf(id resource.NodeID, spec *record.NodeSpec) registry.Declaration {
	d := registry.Declaration{Node: string(id), Since: spec.Created}
	for _, c := range spec.Counts {
		if resource.IsExtended(c.Name) {
			d.Declared = append(d.Declared, registry.Declared{Name: c.Name, Kind: registry.Kind(c.Kind), Unit: c.Unit})
		}
	}
	return d
}
