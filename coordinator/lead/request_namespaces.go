package lead

import (
	"slices"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// This file serves changes of tenants and namespaces, in turn with the changes of
// quota: a namespace and the quotas in it are judged one after the other. No change
// lets a unit run that waits, so none wakes a unit: rules count for new work, and
// deviceLost is read every second.

type (
	// PutTenant and PutNamespace write an object that is valid by itself. Create:
	// there must be none of its name.
	PutTenant struct {
		Object *api.Tenant
		Create bool
	}
	PutNamespace struct {
		Object *api.Namespace
		Create bool
	}
	DeleteTenant struct {
		Name    string
		Require api.Preconditions
	}
	DeleteNamespace struct {
		Name    string
		Require api.Preconditions
	}
)

func (r PutTenant) serve(l *Leader, c *call)       { l.changeQuotas(c, r.judge) }
func (r PutNamespace) serve(l *Leader, c *call)    { l.changeQuotas(c, r.judge) }
func (r DeleteTenant) serve(l *Leader, c *call)    { l.changeQuotas(c, r.judge) }
func (r DeleteNamespace) serve(l *Leader, c *call) { l.changeQuotas(c, r.judge) }

func (r PutTenant) judge(l *Leader) (quotaWrite, *api.Status) {
	name := r.Object.Metadata.Name
	object := api.Tenant{APIVersion: api.APIVersion, Kind: api.KindTenant, Spec: r.Object.Spec}
	object.Spec.Contacts = slices.Clone(object.Spec.Contacts)
	w, status := put(l, l.spaces.tenants[name], "tenant "+name, r.Object.Metadata, r.Create, func(o *api.Tenant) *api.ObjectMeta { return &o.Metadata }, &object)
	if status != nil {
		return w, status
	}
	return l.writeTenant(w, object), nil
}

// writeTenant completes the change that writes a tenant.
func (l *Leader) writeTenant(w quotaWrite, object api.Tenant) quotaWrite {
	name := object.Metadata.Name
	w.op = record.Put(record.TenantKey(name), record.MustEncode(objectRecord(object.Metadata, object)))
	w.wakesNobody = true
	w.landed = func(rev resource.Revision) {
		object.Metadata = at(object.Metadata, rev)
		l.spaces.tenants[name] = &kept[api.Tenant]{object, rev}
	}
	w.result = func() any { return l.spaces.tenants[name].copy() }
	return w
}

func (r PutNamespace) judge(l *Leader) (quotaWrite, *api.Status) {
	name := r.Object.Metadata.Name
	object := api.Namespace{APIVersion: api.APIVersion, Kind: api.KindNamespace, Spec: r.Object.Spec}
	w, status := put(l, l.spaces.namespaces[name], "namespace "+name, r.Object.Metadata, r.Create, func(o *api.Namespace) *api.ObjectMeta { return &o.Metadata }, &object)
	if status == nil {
		status = l.judgeNamespace(&object)
	}
	if status != nil {
		return w, status
	}
	moves := l.namespace(name).Tenant != ownerOf(&object)
	if w = l.writeNamespace(w, object); moves {
		w = l.pauseWork(name, w)
	}
	return w, nil
}

// writeNamespace completes the change that writes a namespace.
func (l *Leader) writeNamespace(w quotaWrite, object api.Namespace) quotaWrite {
	name := object.Metadata.Name
	w.op = record.Put(record.NamespaceKey(name), record.MustEncode(objectRecord(object.Metadata, object)))
	w.wakesNobody = true
	w.landed = func(rev resource.Revision) {
		object.Metadata = at(object.Metadata, rev)
		l.spaces.namespaces[name] = &kept[api.Namespace]{object, rev}
	}
	w.result = func() any { return l.spaces.namespaces[name].copy() }
	return w
}

func (r DeleteTenant) judge(l *Leader) (quotaWrite, *api.Status) {
	t := l.spaces.tenants[r.Name]
	if t == nil {
		return quotaWrite{}, NoTenant(r.Name)
	}
	if status := r.Require.Check("tenant "+r.Name, at(t.object.Metadata, t.rev)); status != nil {
		return quotaWrite{}, status
	}
	if owned := l.namespacesOf(r.Name); len(owned) > 0 {
		count := counted(nil, len(owned), "namespace", 0, "")
		return quotaWrite{}, api.Errorf(409, "tenant %s owns %s, the first is %s: delete them or give them another tenant first",
			r.Name, listed(count), owned[0]).Because(api.FailedPrecondition)
	}
	was := t.copy()
	return quotaWrite{
		op: record.Delete(record.TenantKey(r.Name)), rev: t.rev, wakesNobody: true,
		landed: func(resource.Revision) { delete(l.spaces.tenants, r.Name) },
		result: func() any { return was },
	}, nil
}

func (r DeleteNamespace) judge(l *Leader) (quotaWrite, *api.Status) {
	n := l.spaces.namespaces[r.Name]
	if n == nil {
		return quotaWrite{}, NoNamespace(r.Name)
	}
	if status := r.Require.Check("namespace "+r.Name, at(n.object.Metadata, n.rev)); status != nil {
		return quotaWrite{}, status
	}
	if contents := l.contentsOf(r.Name); len(contents) > 0 {
		return quotaWrite{}, api.Errorf(409, "namespace %s has %s: delete them first", r.Name, listed(contents)).Because(api.FailedPrecondition)
	}
	was := n.copy()
	return l.pauseWork(r.Name, quotaWrite{
		op: record.Delete(record.NamespaceKey(r.Name)), rev: n.rev, wakesNobody: true,
		landed: func(resource.Revision) { delete(l.spaces.namespaces, r.Name) },
		result: func() any { return was },
	}), nil
}

// objectRecord is the record of a tenant or a namespace: its document is what the
// operator set.
func objectRecord[T api.QuotaDocument](m api.ObjectMeta, object T) record.Object {
	return record.Object{UID: m.UID, Name: m.Name, Created: m.CreationTimestamp, Document: encodeDocument(object)}
}

func NoTenant(name string) *api.Status { return api.Errorf(404, "tenant %s not found", name) }

func NoNamespace(name string) *api.Status {
	return api.Errorf(404, "namespace %s has no object: it belongs to the tenant %s, and its rules are the defaults", name, name)
}
