package post_test

import (
	"slices"
	"time"

	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

var start = time.UnixMilli(946_684_800_000)

// failer is a test, or a drawn case of a test.
type failer interface {
	Helper()
	Fatal(...any)
}

// office is a Post, with a naive store that answers as the test wants.
type office struct {
	*post.Post
	t     failer
	now   time.Time
	asked []post.Effect // writes and reads without an answer
	left  []post.Effect // all effects

	revision resource.Revision
	keys     map[string]record.KV
	stored   []string // values, in the order in which they landed
}

func newOffice(t failer) *office {
	return &office{Post: post.New(7, 16, start, [32]byte{}), t: t, now: start, revision: 7, keys: map[string]record.KV{}}
}

// do runs f as the handling of an input.
func (o *office) do(f func()) {
	o.t.Helper()
	o.Begin(o.now, nil)
	f()
	for _, e := range o.Take() {
		o.left = append(o.left, e)
		if e.Kind == post.WriteKeys || e.Kind == post.ReadKey {
			o.asked = append(o.asked, e)
		}
	}
	if err := o.Check(); err != nil {
		o.t.Fatal(err)
	}
}

// did reports whether there was an effect of a kind since the last call.
func (o *office) did(k post.Kind) bool {
	found := slices.ContainsFunc(o.left, func(e post.Effect) bool { return e.Kind == k })
	o.left = nil
	return found
}

// pass has time pass and the alarms ring that are due then.
func (o *office) pass(wait time.Duration) {
	o.now = o.now.Add(wait)
	o.do(o.Ring)
}

// put is a write of another program.
func (o *office) put(key, value string) {
	o.revision++
	o.keys[key] = record.KV{Key: key, Value: []byte(value), ModRev: o.revision}
}

// commit carries out a Txn, if its compares hold.
func (o *office) commit(w post.Write) bool {
	for _, c := range w.Compares {
		if o.keys[c.Key].ModRev != c.Rev {
			return false
		}
	}
	for _, op := range w.Ops {
		if op.Delete {
			o.revision++
			delete(o.keys, op.Key)
			continue
		}
		o.put(op.Key, string(op.Value))
		o.stored = append(o.stored, string(op.Value))
	}
	return true
}

// take removes the next question.
func (o *office) take() post.Effect {
	e := o.asked[0]
	o.asked = o.asked[1:]
	return e
}

// answer answers a question truly.
func (o *office) answer(e post.Effect) {
	if e.Kind == post.ReadKey {
		kv, found := o.keys[e.Key]
		o.do(func() { o.HasRead(e.Token, kv, found, o.revision) })
		return
	}
	outcome := txn.Conflict
	if o.commit(e.Write) {
		outcome = txn.Landed
	}
	o.do(func() { o.Wrote(e.Token, outcome, o.revision, nil) })
}

// answers answers all questions, and those that follow.
func (o *office) answers() {
	for len(o.asked) > 0 {
		o.answer(o.take())
	}
}

// loses has the next write stay without an answer; lands: the store has the write.
func (o *office) loses(lands bool) post.Write {
	e := o.take()
	if lands {
		o.commit(e.Write)
	}
	o.do(func() { o.Wrote(e.Token, txn.Unknown, 0, record.ErrUnknownOutcome) })
	return e.Write
}

// decision creates /k, and appends its outcome to a list.
func decision(value string, got *[]txn.Outcome) post.Decision {
	return post.Decision{
		Compares: []record.Compare{record.Absent("/k")}, Ops: []record.Op{record.Put("/k", []byte(value))},
		Done: func(o txn.Outcome, _ resource.Revision, _ error) { *got = append(*got, o) },
	}
}

func is(value string) func([]byte, bool) bool {
	return func(stored []byte, found bool) bool { return found && string(stored) == value }
}
