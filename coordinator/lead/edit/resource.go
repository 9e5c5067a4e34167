package edit

import (
	"cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/registry"
)

// Resources is the kind Resource. An object adds a name to those that Muster has built
// in and that nodes declare, or describes one of them. No unit waits for a name.
var Resources = Kind[api.Resource]{
	Noun: "resource", Prefix: record.ResourcesPrefix, Decode: api.DecodeResource, Codec: AsObject, WakesNobody: true,
	Meta: func(r *api.Resource) *api.ObjectMeta { return &r.Metadata },
	Typed: func(r *api.Resource) api.Resource {
		return api.Resource{APIVersion: api.APIVersion, Kind: api.KindResource, Spec: r.Spec}
	},
	Judge: judgeResource,
	Used: func(v View, r *api.Resource, _ *Write) *api.Status {
		name := resource.Name(r.Metadata.Name)
		if registry.Describe(name).BuiltIn {
			return nil // the deletion gives the name its own description back
		}
		if user := v.userOf(name); user != "" {
			return api.Errorf(409, "resource %s is in use: %s names it", name, user).Because(api.FailedPrecondition)
		}
		return nil
	},
	Undeletable: func(v View, name string) *api.Status {
		switch node := v.Cluster.DeclaredBy(resource.Name(name)); {
		case registry.Describe(resource.Name(name)).BuiltIn:
			return api.Errorf(409, "resource %s is built in, and no operator has changed it", name).Because(api.FailedPrecondition)
		case node != "":
			return api.Errorf(409, "resource %s is in use: node %s declares it", name, node).Because(api.FailedPrecondition)
		}
		return nil
	},
}

// userOf names an object that names a resource, "" for none.
func (v View) userOf(name resource.Name) string {
	if node := v.Cluster.DeclaredBy(name); node != "" {
		return "node " + string(node)
	}
	return v.Cluster.UserOf(name)
}

// judgeResource refuses another way to count a resource, or another scope, than Muster
// or a node has for the name, and a change of either while something names it.
func judgeResource(v View, before *Kept[api.Resource], r *api.Resource, _ *Write) *api.Status {
	name := resource.Name(r.Metadata.Name)
	base := v.Cluster.Describe(name)
	now := ResourceEntryOver(base, r)
	switch {
	case base.BuiltIn && (now.Kind != base.Kind || now.Scope != base.Scope):
		return fixed(now, base, "it is built in")
	case !base.BuiltIn && v.Cluster.DeclaredBy(name) != "" && (now.Kind != base.Kind || now.Scope != base.Scope):
		return fixed(now, base, "node "+string(v.Cluster.DeclaredBy(name))+" declares it")
	case isFamily(name) && (now.Kind != base.Kind || now.Scope != base.Scope):
		return fixed(now, base, "it is a name of a known family")
	}
	if before == nil {
		return nil
	}
	if was := ResourceEntryOver(base, &before.Object); was.Kind != now.Kind || was.Scope != now.Scope {
		if user := v.userOf(name); user != "" {
			return api.Errorf(409, "resource %s is in use: %s names it, so it stays %s per %s", name, user, was.Kind, was.Scope).Because(api.FailedPrecondition)
		}
	}
	return nil
}

func isFamily(name resource.Name) bool {
	_, huge, _ := name.HugepageSize()
	_, mig, _ := name.MIGProfile()
	return huge || mig || resource.IsGPUModel(name)
}

func fixed(now, base registry.Entry, why string) *api.Status {
	field, got, want := "spec.kind", string(now.Kind), string(base.Kind)
	if now.Kind == base.Kind {
		field, got, want = "spec.scope", string(now.Scope), string(base.Scope)
	}
	return api.Errorf(422, "%s: %s cannot be %s, for %s: want %s, or leave the field out", field, now.Name, got, why, want)
}

// ResourceEntry is the entry of a resource that an operator wrote: a field that is left
// out has the value of the name, else its default.
func ResourceEntry(r *api.Resource) registry.Entry {
	return ResourceEntryOver(registry.Describe(resource.Name(r.Metadata.Name)), r)
}

// GivenEntry is the part of an entry that an operator wrote: a field that is left out is
// zero.
func GivenEntry(r *api.Resource) registry.Entry {
	return ResourceEntryOver(registry.Entry{Name: resource.Name(r.Metadata.Name)}, r)
}

// ResourceEntryOver is the entry of a resource that an operator wrote over the entry that
// the name has without the operator.
func ResourceEntryOver(e registry.Entry, r *api.Resource) registry.Entry {
	e.DisplayName, e.Unit = cmp.Or(r.Spec.DisplayName, e.DisplayName), cmp.Or(r.Spec.Unit, e.Unit)
	e.Kind = cmp.Or(registry.Kind(r.Spec.Kind), e.Kind)
	e.Scope = cmp.Or(registry.Scope(r.Spec.Scope), e.Scope)
	e.Rank = cmp.Or(int(r.Spec.Rank), e.Rank)
	e.Created = true
	return e
}
