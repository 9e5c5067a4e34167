package lead

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// quotaWrite is one change of what bounds tenants.
type quotaWrite struct {
	op  record.Op
	rev resource.Revision // at which the key must be; 0: absent
	uid string            // of the object
	// landed takes the change over, once it is durable.
	landed func(rev resource.Revision)
	// result is the answer to the client, once it is.
	result func() any
	// also are writes of the same Txn, whose op, rev and landed alone are set.
	also []quotaWrite
	// failed, where not nil, undoes what was done before it was sent.
	failed func()
	// wakesNobody: no unit that waits may run because of the change.
	wakesNobody bool
}

// changeInTurn runs a change that calls done, now or when those before it are done.
func (l *Leader) changeInTurn(change func(done func())) {
	l.quotas.changes = append(l.quotas.changes, change)
	if len(l.quotas.changes) == 1 {
		l.nextChange()
	}
}

func (l *Leader) nextChange() {
	l.quotas.changes[0](func() {
		l.quotas.changes = l.quotas.changes[1:]
		if len(l.quotas.changes) > 0 {
			l.nextChange()
		}
	})
}

// writeQuota writes a change under this leader's epoch and follows it until its
// outcome is known; done runs in the loop. All that waits is tried again then,
// unless the change can help nobody.
func (l *Leader) writeQuota(w quotaWrite, done func(*api.Status)) {
	d := decision{compares: []record.Compare{record.ModRevIs(w.op.Key, w.rev)}, ops: []record.Op{w.op}}
	for _, a := range w.also {
		d.compares = append(d.compares, record.ModRevIs(a.op.Key, a.rev))
		d.ops = append(d.ops, a.op)
	}
	d.done = func(o txn.Outcome, rev resource.Revision, err error) {
		if o != txn.Landed {
			if w.failed != nil {
				w.failed()
			}
			l.out.warn(subjectOfKey(w.op.Key)+"_not_written", "key", w.op.Key, "outcome", o, "error", err)
			done(notWritten(w.op.Key, err))
			return
		}
		for _, a := range w.also {
			a.landed(rev)
		}
		w.landed(rev) // model: mutant LIMIT_TOLD_BEFORE_KNOWN
		l.out.info(subjectOfKey(w.op.Key)+"_changed", "key", w.op.Key, "revision", int64(rev), "deleted", w.op.Delete)
		if !w.wakesNobody {
			l.wakeAll()
		}
		done(nil)
	}
	if w.rev != 0 {
		l.settle(d, w.op.Key, func(value []byte, found bool) bool { return found != w.op.Delete && bytes.Equal(value, w.op.Value) })
		return
	}
	l.settleCreation(creating{w.op.Key, resource.UnitUID(w.uid), w.op.Key, func(value []byte) bool { return bytes.Equal(value, w.op.Value) }}, d)
}

// subjectOfKey begins the name of an event about a key that operators change.
func subjectOfKey(key string) string {
	switch {
	case strings.HasPrefix(key, record.TenantsPrefix):
		return "tenant"
	case strings.HasPrefix(key, record.NamespacesPrefix):
		return "namespace"
	}
	return "quota"
}

// notWritten is the answer to a change that the store did not take.
func notWritten(key string, err error) *api.Status {
	switch {
	case errors.As(err, new(*record.TooLargeError)):
		return api.Errorf(422, "%s: %v", key, err)
	case err != nil:
		return api.Errorf(503, "%s was not written: %v; ask again", key, err)
	}
	return api.Errorf(409, "%s was changed by other means than this API, or another coordinator leads now; read it again", key)
}

// checkVersion refuses an update that was made from another version than the
// object's, or for another object of the name.
func checkVersion(what string, given, kept api.ObjectMeta, rev resource.Revision) *api.Status {
	return api.Preconditions{UID: given.UID, ResourceVersion: given.ResourceVersion}.Check(what, at(kept, rev))
}

// own is what of an object's metadata an operator sets, with a new identity or
// that of the object which it replaces. A new UID begins with kind.
func (l *Leader) own(kind string, m api.ObjectMeta, before *api.ObjectMeta) api.ObjectMeta {
	o := api.ObjectMeta{Name: m.Name, Namespace: m.Namespace, Labels: m.Labels, Annotations: m.Annotations, UID: l.uid(kind), CreationTimestamp: l.stamp()}
	if before != nil {
		o.UID, o.CreationTimestamp = before.UID, before.CreationTimestamp
	}
	return o
}

// put begins to write an object in place of the one that is kept, nil for
// none: it judges the version that the update was made from, and gives the
// object its metadata.
func put[T any](l *Leader, before *kept[T], what string, given api.ObjectMeta, create bool, meta func(*T) *api.ObjectMeta, object *T) (quotaWrite, *api.Status) {
	var w quotaWrite
	kind, _, _ := strings.Cut(what, " ")
	switch {
	case before == nil && !create && given.ResourceVersion != "":
		return w, api.Errorf(409, "%s does not exist any more, the update was made from resourceVersion %s", what, given.ResourceVersion)
	case before == nil && !create && given.UID != "":
		return w, api.Errorf(409, "%s does not exist any more, the update is for the uid %s", what, Clip(given.UID))
	case before == nil:
		*meta(object) = l.own(kind, given, nil)
	case create:
		return w, api.Errorf(409, "%s already exists", what).Because(api.AlreadyExists)
	default:
		if status := checkVersion(what, given, *meta(&before.object), before.rev); status != nil {
			return w, status
		}
		*meta(object), w.rev = l.own(kind, given, meta(&before.object)), before.rev
	}
	w.uid = meta(object).UID
	return w, nil
}

// recordOf is how an object is stored: its document is what the operator set.
func recordOf[T api.QuotaDocument](m api.ObjectMeta, object T) *record.Quota {
	return &record.Quota{UID: m.UID, Namespace: m.Namespace, Name: m.Name, Created: m.CreationTimestamp, Document: encodeDocument(object)}
}

// encodeDocument writes an object without what is the server's.
func encodeDocument[T api.QuotaDocument](object T) json.RawMessage {
	var m *api.ObjectMeta
	switch o := any(&object).(type) {
	case *api.ResourceQuota:
		m, o.Status = &o.Metadata, api.ResourceQuotaStatus{}
	case *api.QuotaTree:
		m, o.Status = &o.Metadata, api.QuotaTreeStatus{}
	case *api.QuotaForest:
		m = &o.Metadata
	case *api.QuotaBinding:
		m = &o.Metadata
	case *api.Tenant:
		m = &o.Metadata
	case *api.Namespace:
		m = &o.Metadata
	}
	*m = api.ObjectMeta{Name: m.Name, Namespace: m.Namespace, Labels: m.Labels, Annotations: m.Annotations}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // documents are kept as they were written
	if err := e.Encode(object); err != nil {
		panic("coordinator: encode a quota object: " + err.Error()) // it was decoded
	}
	return bytes.TrimSpace(b.Bytes())
}
