package lead

import (
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/charges"
	"github.com/musterd/muster/coordinator/lead/desk"
	"github.com/musterd/muster/coordinator/lead/edit"
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
	// PutQuotaTree writes a tree that is valid by itself. Create: there must be none of
	// its name.
	PutQuotaTree struct {
		Object       *api.QuotaTree
		Create       bool
		Spec         quota.TreeSpec // that of object
		AllowUnknown bool           // as of PutResourceQuota; the result is a Warned
	}
	DeleteQuotaTree struct {
		Name    string
		Require api.Preconditions
	}
)

func (r PutResourceQuota) serve(l *Leader, c *desk.Call)    { l.changeQuotas(c, r.judge) }
func (r DeleteResourceQuota) serve(l *Leader, c *desk.Call) { l.changeQuotas(c, r.judge) }
func (r PutQuotaTree) serve(l *Leader, c *desk.Call)        { l.changeQuotas(c, r.judge) }
func (r DeleteQuotaTree) serve(l *Leader, c *desk.Call)     { l.changeQuotas(c, r.judge) }

// changeQuotas makes one change when those before it are done: judge says what to
// write, or refuses.
func (l *Leader) changeQuotas(c *desk.Call, judge func(l *Leader) (edit.Write, *api.Status)) {
	l.changeInTurn(func(done func()) {
		w, status := judge(l)
		if status != nil {
			c.Answer(nil, status)
			done()
			return
		}
		l.writeQuota(l.prepare(w), func(status *api.Status) {
			if status != nil {
				c.Answer(nil, status)
			} else {
				c.Answer(w.Result(), nil)
			}
			done()
		})
	})
}

func (r PutResourceQuota) judge(l *Leader) (w edit.Write, status *api.Status) {
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
		object.Metadata = edit.Own(l.editView(), "quota", m, nil)
	case status != nil:
		return w, status
	default:
		if status := edit.CheckVersion(resourceQuotaName(namespace, name), m, before.Object.Metadata, before.Rev); status != nil {
			return w, status
		}
		object.Metadata, w.Rev = edit.Own(l.editView(), "quota", m, &before.Object.Metadata), before.Rev
	}
	names := l.resourceNames(r.AllowUnknown)
	if before != nil && !r.AllowUnknown {
		names.Keeps = keeping(before.Object.Spec.Names())
	}
	warnings, status := names.JudgeQuota(&object)
	if status != nil {
		return w, status
	}
	warnings = append(warnings, object.WarnOfClasses(l.hasClass)...)
	w.UID = object.Metadata.UID
	rec := charges.RecordOf(object.Metadata, object)
	rec.ChangedMillis = l.post.Millis()
	w.Op = record.Put(resourceQuotaKey(namespace, name).Key(), record.MustEncode(*rec))
	w.Landed = func(rev resource.Revision) {
		object.Metadata = edit.At(object.Metadata, rev)
		l.takeResourceQuota(object, rev)
	}
	w.Result = func() any {
		return Warned[*api.ResourceQuota]{l.quotas.ShowQuota(l.quotas.Quota(namespace + "/" + name)), warnings}
	}
	return w, nil
}

func (r DeleteResourceQuota) judge(l *Leader) (edit.Write, *api.Status) {
	q, status := l.resourceQuota(r.Namespace, r.Name)
	if status == nil {
		status = notConfigured(r.Namespace, r.Name)
	}
	if status == nil {
		status = r.Require.Check(resourceQuotaName(r.Namespace, r.Name), edit.At(q.Object.Metadata, q.Rev))
	}
	if status != nil {
		return edit.Write{}, status
	}
	was := l.quotas.ShowQuota(q)
	return edit.Write{
		Op: record.Delete(resourceQuotaKey(r.Namespace, r.Name).Key()), Rev: q.Rev,
		Landed: func(resource.Revision) { l.dropResourceQuota(r.Namespace, r.Name) },
		Result: func() any { return was },
	}, nil
}

func (r PutQuotaTree) judge(l *Leader) (edit.Write, *api.Status) {
	name := r.Object.Metadata.Name
	object := api.QuotaTree{APIVersion: api.APIVersion, Kind: api.KindQuotaTree, Spec: r.Object.Spec}
	var before *edit.Kept[api.QuotaTree]
	if t := l.quotas.Tree(name); t != nil {
		before = &t.Kept
	}
	w, status := edit.Begin(l.editView(), before, "quota tree "+name, r.Object.Metadata, r.Create, func(o *api.QuotaTree) *api.ObjectMeta { return &o.Metadata }, &object)
	if status != nil {
		return w, status
	}
	names := l.resourceNames(r.AllowUnknown)
	if before != nil && !r.AllowUnknown {
		names.Keeps = keeping(before.Object.Names())
	}
	warnings, status := names.JudgeTree(&object)
	var former map[string]string
	if status == nil {
		former, status = l.quotas.KeepFormer(name, r.Spec, l.chargedTo)
	}
	if status != nil {
		return w, status
	}
	rec := charges.RecordOf(object.Metadata, object)
	rec.Former = former
	w.Op = record.Put(record.QuotaKey{Kind: record.QuotaTrees, Name: name}.Key(), record.MustEncode(*rec))
	w.Landed = func(rev resource.Revision) {
		object.Metadata = edit.At(object.Metadata, rev)
		again, err := l.quotas.SetTree(object, rev, r.Spec, former)
		must(err) // it was judged
		l.rechargeUnits(name, again)
		l.reportShape(name)
	}
	w.Result = func() any {
		t := l.quotas.Tree(name)
		return Warned[*api.QuotaTree]{l.quotas.ShowTree(t), append(warnings, t.DetachedWarning()...)}
	}
	return w, nil
}

func (r DeleteQuotaTree) judge(l *Leader) (edit.Write, *api.Status) {
	t, status := l.quotaTree(r.Name)
	if status == nil {
		status = r.Require.Check("quota tree "+r.Name, edit.At(t.Object.Metadata, t.Rev))
	}
	if status == nil {
		status = l.unused(r.Name)
	}
	if status != nil {
		return edit.Write{}, status
	}
	was := l.quotas.ShowTree(t)
	l.quotas.CloseTree(r.Name)
	return edit.Write{
		Op: record.Delete(record.QuotaKey{Kind: record.QuotaTrees, Name: r.Name}.Key()), Rev: t.Rev,
		Landed: func(resource.Revision) { l.quotas.DeleteTree(r.Name) },
		Failed: func() { l.quotas.ReopenTree(r.Name) },
		Result: func() any { return was },
	}, nil
}
