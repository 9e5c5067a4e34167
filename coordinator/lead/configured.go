package lead

import (
	"cmp"
	"maps"
	"slices"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/edit"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// This file makes the namespaces of the configuration objects, once in the life of a
// store, and says afterwards where the two differ.

// configNamespaces are the changes that make tenants and namespaces of the
// configuration, where there are no such objects yet, and note that it is done. The
// note comes last: a leader that ends before it leaves the rest to the next one.
func (l *Leader) configNamespaces() []edit.Write {
	if len(l.rules.Namespaces) == 0 {
		return nil
	}
	l.reportConfiguration()
	if l.spaces.configured {
		return nil
	}
	tenants := map[string]bool{}
	var changes, namespaces []edit.Write
	for _, name := range slices.Sorted(maps.Keys(l.rules.Namespaces)) {
		if l.objects.Namespaces.Get(name) != nil {
			continue
		}
		n := l.rules.Namespaces[name]
		if tenant := string(n.Tenant); tenant != "" && tenant != name && l.objects.Tenants.Get(tenant) == nil && !tenants[tenant] {
			tenants[tenant] = true
			object := api.Tenant{APIVersion: api.APIVersion, Kind: api.KindTenant, Metadata: edit.Own(l.editView(), "tenant", api.ObjectMeta{Name: tenant}, nil)}
			changes = append(changes, l.objects.Tenants.Write(edit.Write{}, object))
		}
		object := api.Namespace{APIVersion: api.APIVersion, Kind: api.KindNamespace, Metadata: edit.Own(l.editView(), "namespace", api.ObjectMeta{Name: name}, nil)}
		object.Spec = api.NamespaceSpec{
			Tenant: string(n.Tenant), Admission: n.Admission, Unsatisfiable: n.Unsatisfiable, DeviceLost: n.DeviceLost,
			PriorityCeiling: n.PriorityCeiling, DefaultQueue: n.DefaultQueue,
		}
		namespaces = append(namespaces, l.objects.Namespaces.Write(edit.Write{}, object))
	}
	return append(append(changes, namespaces...), edit.Write{
		Op:     record.Put(record.ConfiguredKey, record.MustEncode(record.Configured{By: cmp.Or(l.rules.Id, "coordinator"), At: l.post.Stamp()})),
		Landed: func(resource.Revision) { l.spaces.configured = true },
	})
}

// reportConfiguration logs each key of the configuration whose value is not the one
// in force. A key without a value is no opinion.
func (l *Leader) reportConfiguration() {
	for _, name := range slices.Sorted(maps.Keys(l.rules.Namespaces)) {
		n, inForce := l.rules.Namespaces[name], l.namespace(name)
		differs := func(key, configured, now string) {
			if configured != "" && configured != now {
				l.post.Warn("configuration_not_in_force", "key", "namespaces."+name+"."+key, "configured", configured, "in_force", now,
					"do", "change the Namespace object, or take the key out of the configuration")
			}
		}
		differs("tenant", string(n.Tenant), string(inForce.Tenant))
		differs("admission", n.Admission, cmp.Or(inForce.Admission, "reject"))
	}
}
