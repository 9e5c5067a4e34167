package lead

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
	// PutResourceQuota writes a valid quota, as a new one if create is set, else
	// in place of one.
	// Its result is a Warned.
	PutResourceQuota struct {
		Object *api.ResourceQuota
		Create bool
		// AllowUnknown keeps misspelt names of resources.
		AllowUnknown bool
	}
	// DeleteResourceQuota and the other deletions are refused with 409 where the
	// object does not have the required values.
	DeleteResourceQuota struct {
		Namespace, Name string
		Require         api.Preconditions
	}
	// PutQuotaTree, putQuotaForest and putQuotaBinding write an object that is
	// valid by itself. create: there must be none of its name.
	PutQuotaTree struct {
		Object       *api.QuotaTree
		Create       bool
		Spec         quota.TreeSpec // that of object
		AllowUnknown bool           // as of PutResourceQuota; the result is a Warned
	}
	PutQuotaForest struct {
		Object *api.QuotaForest
		Create bool
	}
	PutQuotaBinding struct {
		Object *api.QuotaBinding
		Create bool
	}
	DeleteQuotaTree struct {
		Name    string
		Require api.Preconditions
	}
	DeleteQuotaForest struct {
		Name    string
		Require api.Preconditions
	}
	DeleteQuotaBinding struct {
		Namespace string
		Require   api.Preconditions
	}
)

func (r PutResourceQuota) serve(l *Leader, c *call)    { l.changeQuotas(c, r.judge) }
func (r DeleteResourceQuota) serve(l *Leader, c *call) { l.changeQuotas(c, r.judge) }
func (r PutQuotaTree) serve(l *Leader, c *call)        { l.changeQuotas(c, r.judge) }
func (r PutQuotaForest) serve(l *Leader, c *call)      { l.changeQuotas(c, r.judge) }
func (r PutQuotaBinding) serve(l *Leader, c *call)     { l.changeQuotas(c, r.judge) }
func (r DeleteQuotaTree) serve(l *Leader, c *call)     { l.changeQuotas(c, r.judge) }
func (r DeleteQuotaForest) serve(l *Leader, c *call)   { l.changeQuotas(c, r.judge) }
func (r DeleteQuotaBinding) serve(l *Leader, c *call)  { l.changeQuotas(c, r.judge) }

// changeQuotas makes one change when those before it are done: judge says what to
// write, or refuses.
func (l *Leader) changeQuotas(c *call, judge func(l *Leader) (quotaWrite, *api.Status)) {
	l.changeInTurn(func(done func()) {
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

func (r PutResourceQuota) judge(l *Leader) (w quotaWrite, status *api.Status) {
	m := r.Object.Metadata
	namespace, name := m.Namespace, m.Name
	if status := notConfigured(namespace, name); status != nil {
		return w, status
	}
	object := api.ResourceQuota{APIVersion: api.APIVersion, Kind: api.KindResourceQuota, Spec: r.Object.Spec}
	before, status := l.resourceQuota(namespace, name)
	switch {
	case r.Create && before != nil:
		return w, api.Errorf(409, "%s already exists", resourceQuotaName(namespace, name)).Because(api.AlreadyExists)
	case r.Create:
		object.Metadata = l.own("quota", m, nil)
	case status != nil:
		return w, status
	default:
		if status := checkVersion(resourceQuotaName(namespace, name), m, before.object.Metadata, before.rev); status != nil {
			return w, status
		}
		object.Metadata, w.rev = l.own("quota", m, &before.object.Metadata), before.rev
	}
	names := l.resourceNames(r.AllowUnknown)
	if before != nil && !r.AllowUnknown {
		names.Keeps = keeping(before.object.Spec.Names())
	}
	warnings, status := names.JudgeQuota(&object)
	if status != nil {
		return w, status
	}
	w.uid = object.Metadata.UID
	w.op = record.Put(resourceQuotaKey(namespace, name).Key(), record.MustEncode(*recordOf(object.Metadata, object)))
	w.landed = func(rev resource.Revision) {
		object.Metadata = at(object.Metadata, rev)
		l.quotas.setResourceQuota(object, rev, l.now)
	}
	w.result = func() any {
		return Warned[*api.ResourceQuota]{l.resourceQuotaObject(l.quotas.resources[namespace+"/"+name], l.now), warnings}
	}
	return w, nil
}

func (r DeleteResourceQuota) judge(l *Leader) (quotaWrite, *api.Status) {
	q, status := l.resourceQuota(r.Namespace, r.Name)
	if status == nil {
		status = notConfigured(r.Namespace, r.Name)
	}
	if status == nil {
		status = r.Require.Check(resourceQuotaName(r.Namespace, r.Name), at(q.object.Metadata, q.rev))
	}
	if status != nil {
		return quotaWrite{}, status
	}
	was := l.resourceQuotaObject(q, l.now)
	return quotaWrite{
		op: record.Delete(resourceQuotaKey(r.Namespace, r.Name).Key()), rev: q.rev,
		landed: func(resource.Revision) { l.quotas.removeResourceQuota(r.Namespace, r.Name) },
		result: func() any { return was },
	}, nil
}

func (r PutQuotaTree) judge(l *Leader) (quotaWrite, *api.Status) {
	name := r.Object.Metadata.Name
	object := api.QuotaTree{APIVersion: api.APIVersion, Kind: api.KindQuotaTree, Spec: r.Object.Spec}
	var before *kept[api.QuotaTree]
	if planted := l.quotas.treeObjects[name]; planted != nil {
		before = &planted.kept
	}
	w, status := put(l, before, "quota tree "+name, r.Object.Metadata, r.Create, func(o *api.QuotaTree) *api.ObjectMeta { return &o.Metadata }, &object)
	if status != nil {
		return w, status
	}
	names := l.resourceNames(r.AllowUnknown)
	if before != nil && !r.AllowUnknown {
		names.Keeps = keeping(before.object.Names())
	}
	warnings, status := names.JudgeTree(&object)
	var former map[string]string
	if status == nil {
		former, status = l.keepFormer(name, r.Spec)
	}
	if status != nil {
		return w, status
	}
	rec := recordOf(object.Metadata, object)
	rec.Former = former
	w.op = record.Put(record.QuotaKey{Kind: record.QuotaTrees, Name: name}.Key(), record.MustEncode(*rec))
	w.landed = func(rev resource.Revision) {
		object.Metadata = at(object.Metadata, rev)
		again, err := l.quotas.setTree(object, rev, r.Spec, former)
		must(err) // it was judged
		l.rechargeUnits(name, again)
		l.reportShape(name)
	}
	w.result = func() any {
		t := l.quotas.treeObjects[name]
		return Warned[*api.QuotaTree]{l.quotaTreeObject(t), append(warnings, t.detachedWarning()...)}
	}
	return w, nil
}

func (r DeleteQuotaTree) judge(l *Leader) (quotaWrite, *api.Status) {
	t, status := l.quotaTree(r.Name)
	if status == nil {
		status = r.Require.Check("quota tree "+r.Name, at(t.object.Metadata, t.rev))
	}
	if status == nil {
		status = l.unused(r.Name)
	}
	if status != nil {
		return quotaWrite{}, status
	}
	was := l.quotaTreeObject(t)
	l.quotas.closed[r.Name] = true
	return quotaWrite{
		op: record.Delete(record.QuotaKey{Kind: record.QuotaTrees, Name: r.Name}.Key()), rev: t.rev,
		landed: func(resource.Revision) { l.quotas.deleteTree(r.Name) },
		failed: func() { delete(l.quotas.closed, r.Name) },
		result: func() any { return was },
	}, nil
}

func (r PutQuotaForest) judge(l *Leader) (quotaWrite, *api.Status) {
	name := r.Object.Metadata.Name
	object := api.QuotaForest{APIVersion: api.APIVersion, Kind: api.KindQuotaForest, Spec: r.Object.Spec}
	w, status := put(l, l.quotas.forests[name], "quota forest "+name, r.Object.Metadata, r.Create, func(o *api.QuotaForest) *api.ObjectMeta { return &o.Metadata }, &object)
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

func (r DeleteQuotaForest) judge(l *Leader) (quotaWrite, *api.Status) {
	f, status := l.quotaForest(r.Name)
	if status == nil {
		status = r.Require.Check("quota forest "+r.Name, at(f.object.Metadata, f.rev))
	}
	if status != nil {
		return quotaWrite{}, status
	}
	for _, namespace := range slices.Sorted(maps.Keys(l.quotas.bindings)) {
		if l.quotas.bindings[namespace].object.Spec.Forest == r.Name {
			return quotaWrite{}, api.Errorf(409, "quota forest %s is in use: namespace %s is bound to it", r.Name, namespace).Because(api.FailedPrecondition)
		}
	}
	was := f.copy()
	return quotaWrite{
		op: record.Delete(record.QuotaKey{Kind: record.QuotaForests, Name: r.Name}.Key()), rev: f.rev,
		landed: func(resource.Revision) { delete(l.quotas.forests, r.Name) },
		result: func() any { return was },
	}, nil
}

func (r PutQuotaBinding) judge(l *Leader) (quotaWrite, *api.Status) {
	namespace := r.Object.Metadata.Name
	object := api.QuotaBinding{APIVersion: api.APIVersion, Kind: api.KindQuotaBinding, Spec: r.Object.Spec}
	w, status := put(l, l.quotas.bindings[namespace], "quota binding "+namespace, r.Object.Metadata, r.Create, func(o *api.QuotaBinding) *api.ObjectMeta { return &o.Metadata }, &object)
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

func (r DeleteQuotaBinding) judge(l *Leader) (quotaWrite, *api.Status) {
	b, status := l.quotaBinding(r.Namespace)
	if status == nil {
		status = r.Require.Check("quota binding "+r.Namespace, at(b.object.Metadata, b.rev))
	}
	if status != nil {
		return quotaWrite{}, status
	}
	was := b.copy()
	return quotaWrite{
		op: record.Delete(record.QuotaKey{Kind: record.QuotaNamespaces, Name: r.Namespace}.Key()), rev: b.rev,
		landed: func(resource.Revision) {
			delete(l.quotas.bindings, r.Namespace)
			l.quotas.generation++
		},
		result: func() any { return was },
	}, nil
}
