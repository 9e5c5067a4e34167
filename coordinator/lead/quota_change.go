package lead

import (
	"bytes"
	"strings"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/edit"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/lead/refusal"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// changeInTurn runs a change that calls done, now or when those before it are done.
func (l *Leader) changeInTurn(change func(done func())) {
	l.turns = append(l.turns, change)
	if len(l.turns) == 1 {
		l.nextChange()
	}
}

func (l *Leader) nextChange() {
	l.turns[0](func() {
		l.turns = l.turns[1:]
		if len(l.turns) > 0 {
			l.nextChange()
		}
	})
}

// writeQuota writes a change under this leader's epoch and follows it until its
// outcome is known; done runs in the loop. All that waits is tried again then,
// unless the change can help nobody.
func (l *Leader) writeQuota(w edit.Write, done func(*api.Status)) {
	d := post.Decision{Compares: []record.Compare{record.ModRevIs(w.Op.Key, w.Rev)}, Ops: []record.Op{w.Op}, Once: true}
	for _, a := range w.Also {
		d.Compares = append(d.Compares, record.ModRevIs(a.Op.Key, a.Rev))
		d.Ops = append(d.Ops, a.Op)
	}
	d.Done = func(o txn.Outcome, rev resource.Revision, err error) {
		if o != txn.Landed {
			if w.Failed != nil {
				w.Failed()
			}
			l.post.Warn(strings.ReplaceAll(edit.KindOf(w.Op.Key), " ", "_")+"_not_written", "key", w.Op.Key, "outcome", o, "error", err)
			done(notWritten(w.Op.Key, err))
			return
		}
		for _, a := range w.Also {
			a.Landed(rev)
		}
		w.Landed(rev) // model: mutant LIMIT_TOLD_BEFORE_KNOWN
		l.post.Info(strings.ReplaceAll(edit.KindOf(w.Op.Key), " ", "_")+"_changed", "key", w.Op.Key, "revision", int64(rev), "deleted", w.Op.Delete)
		if strings.HasPrefix(w.Op.Key, record.ResourcesPrefix) {
			l.agree()
		}
		if !w.WakesNobody {
			l.wakeAll()
		}
		done(nil)
	}
	if w.Rev != 0 {
		l.post.Settle(d, w.Op.Key, func(value []byte, found bool) bool { return found != w.Op.Delete && bytes.Equal(value, w.Op.Value) })
		return
	}
	l.post.SettleCreation(post.Creating{What: w.Op.Key, UID: resource.UnitUID(w.UID), Key: w.Op.Key, Mine: func(value []byte) bool { return bytes.Equal(value, w.Op.Value) }}, d)
}

// notWritten is the answer to a change that the store did not take.
func notWritten(key string, err error) *api.Status {
	if err != nil {
		return refusal.NotTaken(edit.Object(key), "change", err)
	}
	return api.Errorf(409, "%s was changed by other means than this API, or another coordinator leads now; read it again", edit.Object(key))
}
