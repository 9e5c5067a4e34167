package coordinator

import (
	"maps"
	"slices"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// This file serves changes of quota objects: each is judged by the objects that
// it will meet, since changes are made one after the other. The result is the
// object with the change, or as it was before its deletion.

type (
	// putResourceQuota writes a valid quota, as a new one if create is set, else
	// in place of one.
	putResourceQuota struct {
		object *api.ResourceQuota
		create bool
	}
	deleteResourceQuota struct{ namespace, name string }
	// putQuotaTree, putQuotaForest and putQuotaBinding write an object that is
	// valid by itself. create: there must be none of its name.
	putQuotaTree struct {
		object *api.QuotaTree
		create bool
		spec   quota.TreeSpec // that of object
	}
	putQuotaForest struct {
		object *api.QuotaForest
		create bool
	}
	putQuotaBinding struct {
		object *api.QuotaBinding
		create bool
	}
	deleteQuotaTree    struct{ name string }
	deleteQuotaForest  struct{ name string }
	deleteQuotaBinding struct{ namespace string }
)

func (r putResourceQuota) serve(l *leader, c *call)    { l.changeQuotas(c, r.judge) }
func (r deleteResourceQuota) serve(l *leader, c *call) { l.changeQuotas(c, r.judge) }
func (r putQuotaTree) serve(l *leader, c *call)        { l.changeQuotas(c, r.judge) }
func (r putQuotaForest) serve(l *leader, c *call)      { l.changeQuotas(c, r.judge) }
func (r putQuotaBinding) serve(l *leader, c *call)     { l.changeQuotas(c, r.judge) }
func (r deleteQuotaTree) serve(l *leader, c *call)     { l.changeQuotas(c, r.judge) }
func (r deleteQuotaForest) serve(l *leader, c *call)   { l.changeQuotas(c, r.judge) }
func (r deleteQuotaBinding) serve(l *leader, c *call)  { l.changeQuotas(c, r.judge) }

// changeQuotas makes one change when those before it are done: judge says what to
// write, or refuses.
func (l *leader) changeQuotas(c *call, judge func(l *leader) (quotaWrite, *api.Status)) {
	l.inTurn(func(done func()) {
		w, status := judge(l)
		if status != nil {
			c.answer(nil, status)
			done()
			return
		}
		l.writeQuota(w, func(status *api.Status) {
			if status != nil {
				c.answer(nil, status)
			} else {
				c.answer(w.result(), nil)
			}
			done()
		})
	})
}

func (r putResourceQuota) judge(l *leader) (w quotaWrite, status *api.Status) {
	m := r.object.Metadata
	namespace, name := m.Namespace, m.Name
	if status := notConfigured(namespace, name); status != nil {
		return w, status
	}
	object := api.ResourceQuota{APIVersion: api.APIVersion, Kind: api.KindResourceQuota, Spec: r.object.Spec}
	before, status := l.resourceQuota(namespace, name)
	switch {
	case r.create && before != nil:
		return w, api.Errorf(409, "%s already exists", resourceQuotaName(namespace, name))
	case r.create:
		object.Metadata = l.own(m, nil)
	case status != nil:
		return w, status
	default:
		if status := checkVersion(resourceQuotaName(namespace, name), m.ResourceVersion, before.rev); status != nil {
			return w, status
		}
		object.Metadata, w.rev = l.own(m, &before.object.Metadata), before.rev
	}
	w.uid = object.Metadata.UID
	w.op = record.Put(resourceQuotaKey(namespace, name).Key(), record.MustEncode(*recordOf(object.Metadata, object)))
	w.landed = func(rev resource.Revision) {
		object.Metadata = at(object.Metadata, rev)
		l.quotas.setResourceQuota(object, rev, l.now)
	}
	w.result = func() any { return l.resourceQuotaObject(l.quotas.resources[namespace+"/"+name], l.now) }
	return w, nil
}

func (r deleteResourceQuota) judge(l *leader) (quotaWrite, *api.Status) {
	q, status := l.resourceQuota(r.namespace, r.name)
	if status == nil {
		status = notConfigured(r.namespace, r.name)
	}
	if status != nil {
		return quotaWrite{}, status
	}
	was := l.resourceQuotaObject(q, l.now)
	return quotaWrite{
		op: record.Delete(resourceQuotaKey(r.namespace, r.name).Key()), rev: q.rev,
		landed: func(resource.Revision) { l.quotas.removeResourceQuota(r.namespace, r.name) },
		result: func() any { return was },
	}, nil
}

func (r putQuotaTree) judge(l *leader) (quotaWrite, *api.Status) {
	name := r.object.Metadata.Name
	object := api.QuotaTree{APIVersion: api.APIVersion, Kind: api.KindQuotaTree, Spec: r.object.Spec}
	var before *kept[api.QuotaTree]
	if planted := l.quotas.planted[name]; planted != nil {
		before = &planted.kept
	}
	w, status := put(l, before, "quota tree "+name, r.object.Metadata, r.create, func(o *api.QuotaTree) *api.ObjectMeta { return &o.Metadata }, &object)
	if status != nil {
		return w, status
	}
	w.op = record.Put(record.QuotaKey{Kind: record.QuotaTrees, Name: name}.Key(), record.MustEncode(*recordOf(object.Metadata, object)))
	w.landed = func(rev resource.Revision) {
		object.Metadata = at(object.Metadata, rev)
		again, err := l.quotas.plant(object, rev, r.spec)
		must(err) // it was judged
		l.seatAgain(name, again)
		l.reportShape(name)
	}
	w.result = func() any { return l.quotaTreeObject(l.quotas.planted[name]) }
	return w, nil
}

func (r deleteQuotaTree) judge(l *leader) (quotaWrite, *api.Status) {
	t, status := l.quotaTree(r.name)
	if status == nil {
		status = l.unused(r.name)
	}
	if status != nil {
		return quotaWrite{}, status
	}
	was := l.quotaTreeObject(t)
	t.closed = true
	return quotaWrite{
		op: record.Delete(record.QuotaKey{Kind: record.QuotaTrees, Name: r.name}.Key()), rev: t.rev,
		landed: func(resource.Revision) { l.quotas.fell(r.name) },
		failed: func() { t.closed = false },
		result: func() any { return was },
	}, nil
}

func (r putQuotaForest) judge(l *leader) (quotaWrite, *api.Status) {
	name := r.object.Metadata.Name
	object := api.QuotaForest{APIVersion: api.APIVersion, Kind: api.KindQuotaForest, Spec: r.object.Spec}
	w, status := put(l, l.quotas.forests[name], "quota forest "+name, r.object.Metadata, r.create, func(o *api.QuotaForest) *api.ObjectMeta { return &o.Metadata }, &object)
	if status == nil {
		status = l.judgeForest(&object)
	}
	if status != nil {
		return w, status
	}
	w.op = record.Put(record.QuotaKey{Kind: record.QuotaForests, Name: name}.Key(), record.MustEncode(*recordOf(object.Metadata, object)))
	w.landed = func(rev resource.Revision) {
		object.Metadata = at(object.Metadata, rev)
		l.quotas.forests[name] = &kept[api.QuotaForest]{object, rev}
	}
	w.result = func() any { return l.quotas.forests[name].copy() }
	return w, nil
}

func (r deleteQuotaForest) judge(l *leader) (quotaWrite, *api.Status) {
	f, status := l.quotaForest(r.name)
	if status != nil {
		return quotaWrite{}, status
	}
	for _, namespace := range slices.Sorted(maps.Keys(l.quotas.bindings)) {
		if l.quotas.bindings[namespace].object.Spec.Forest == r.name {
			return quotaWrite{}, api.Errorf(409, "quota forest %s is in use: namespace %s is bound to it", r.name, namespace)
		}
	}
	was := f.copy()
	return quotaWrite{
		op: record.Delete(record.QuotaKey{Kind: record.QuotaForests, Name: r.name}.Key()), rev: f.rev,
		landed: func(resource.Revision) { delete(l.quotas.forests, r.name) },
		result: func() any { return was },
	}, nil
}

func (r putQuotaBinding) judge(l *leader) (quotaWrite, *api.Status) {
	namespace := r.object.Metadata.Name
	object := api.QuotaBinding{APIVersion: api.APIVersion, Kind: api.KindQuotaBinding, Spec: r.object.Spec}
	w, status := put(l, l.quotas.bindings[namespace], "quota binding "+namespace, r.object.Metadata, r.create, func(o *api.QuotaBinding) *api.ObjectMeta { return &o.Metadata }, &object)
	if status == nil {
		status = l.judgeBinding(&object)
	}
	if status != nil {
		return w, status
	}
	w.op = record.Put(record.QuotaKey{Kind: record.QuotaNamespaces, Name: namespace}.Key(), record.MustEncode(*recordOf(object.Metadata, object)))
	w.landed = func(rev resource.Revision) {
		object.Metadata = at(object.Metadata, rev)
		l.quotas.bindings[namespace] = &kept[api.QuotaBinding]{object, rev}
		l.quotas.generation++
	}
	w.result = func() any { return l.quotas.bindings[namespace].copy() }
	return w, nil
}

func (r deleteQuotaBinding) judge(l *leader) (quotaWrite, *api.Status) {
	b, status := l.quotaBinding(r.namespace)
	if status != nil {
		return quotaWrite{}, status
	}
	was := b.copy()
	return quotaWrite{
		op: record.Delete(record.QuotaKey{Kind: record.QuotaNamespaces, Name: r.namespace}.Key()), rev: b.rev,
		landed: func(resource.Revision) {
			delete(l.quotas.bindings, r.namespace)
			l.quotas.generation++
		},
		result: func() any { return was },
	}, nil
}
