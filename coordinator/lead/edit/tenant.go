package edit

import (
	"slices"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
)

// Tenants is the kind Tenant. No change of a tenant lets a unit run that waits: its
// rules count for new work.
var Tenants = Kind[api.Tenant]{
	Noun: "tenant", Prefix: record.TenantsPrefix, Decode: api.DecodeTenant, Codec: AsObject, WakesNobody: true,
	Meta: func(t *api.Tenant) *api.ObjectMeta { return &t.Metadata },
	Typed: func(t *api.Tenant) api.Tenant {
		object := api.Tenant{APIVersion: api.APIVersion, Kind: api.KindTenant, Spec: t.Spec}
		object.Spec.Contacts = slices.Clone(t.Spec.Contacts)
		return object
	},
	Used: func(v View, t *api.Tenant, _ *Write) *api.Status {
		name := t.Metadata.Name
		owned := v.namespacesOf(name)
		if len(owned) == 0 {
			return nil
		}
		return api.Errorf(409, "tenant %s owns %s, the first is %s: delete them or give them another tenant first",
			name, listed(counted(nil, len(owned), "namespace")), owned[0]).Because(api.FailedPrecondition)
	},
}

// namespacesOf are the namespaces with an object that a tenant owns, by name.
func (v View) namespacesOf(tenant string) []string {
	var names []string
	for _, name := range v.Objects.Namespaces.Names() {
		if string(v.Cluster.Owner(name)) == tenant {
			names = append(names, name)
		}
	}
	return names
}
