package edit

import (
	"cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// Namespaces is the kind Namespace. No change of a namespace lets a unit run that
// waits: its rules count for new work, and deviceLost is read every second.
var Namespaces = Kind[api.Namespace]{
	Noun: "namespace", Prefix: record.NamespacesPrefix, Decode: api.DecodeNamespace, Codec: AsObject, WakesNobody: true,
	Meta: func(n *api.Namespace) *api.ObjectMeta { return &n.Metadata },
	Typed: func(n *api.Namespace) api.Namespace {
		return api.Namespace{APIVersion: api.APIVersion, Kind: api.KindNamespace, Spec: n.Spec}
	},
	Judge: judgeNamespace,
	Used: func(v View, n *api.Namespace, w *Write) *api.Status {
		name := n.Metadata.Name
		if contents := v.contentsOf(name); len(contents) > 0 {
			return api.Errorf(409, "namespace %s has %s: delete them first", name, listed(contents)).Because(api.FailedPrecondition)
		}
		w.Pauses = name
		return nil
	},
	Missing: func(name string) *api.Status {
		return api.Errorf(404, "namespace %s has no object: it belongs to the tenant %s, and its rules are the defaults", name, name)
	},
}

// OwnerOf is the tenant of a namespace with an object.
func OwnerOf(n *api.Namespace) resource.TenantID {
	return resource.TenantID(cmp.Or(n.Spec.Tenant, n.Metadata.Name))
}

// judgeNamespace refuses a namespace whose tenant does not exist, and another owner
// for a namespace with work: the work was charged and shown to the owner before.
// Submissions wait for a change of the owner.
func judgeNamespace(v View, _ *Kept[api.Namespace], n *api.Namespace, w *Write) *api.Status {
	name, tenant := n.Metadata.Name, n.Spec.Tenant
	if tenant != "" && tenant != name && v.Objects.Tenants.Get(tenant) == nil {
		return api.Errorf(422, "spec.tenant: tenant %s does not exist: create it first, or leave the field out for the tenant %s", tenant, name)
	}
	before, after := v.Cluster.Owner(name), OwnerOf(n)
	if before == after {
		return nil
	}
	if work := v.workIn(name); len(work) > 0 {
		return api.Errorf(409, "spec.tenant: namespace %s cannot go from tenant %s to tenant %s while it has %s: delete them first",
			name, before, after, listed(work)).Because(api.FailedPrecondition)
	}
	w.Pauses = name
	return nil
}

// workIn counts the allocations and the jobs of a namespace in words; none for an
// empty one.
func (v View) workIn(namespace string) []string {
	c := v.Cluster.Contents(namespace)
	return counted(counted(nil, c.Allocations, "allocation"), c.Jobs, "job")
}

// contentsOf counts all objects of a namespace in words.
func (v View) contentsOf(namespace string) []string {
	words := counted(v.workIn(namespace), v.Cluster.Contents(namespace).ResourceQuotas, "resource quota")
	if v.Objects.Bindings.Get(namespace) != nil {
		words = counted(words, 1, "quota binding")
	}
	return words
}
