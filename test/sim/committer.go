package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/lead/batch"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// This file stands for coordinator/committer.go: the batcher decides which writes
// share a Txn, and the committer carries that out.

// The waits of a committer. Here they only pass when answers come.
const (
	firstReread = 10 * time.Millisecond
	lastReread  = time.Second
)

// committer is the committer of one term.
type committer struct {
	batcher   *batch.Batcher
	submitted []queued          // not yet taken by the committer's loop
	writes    map[uint64]queued // without an answer, by token
	ownTokens uint64            // of writes that a planted bug makes
}

// queued is a write without an answer.
type queued struct {
	token post.Token
	post.Write
	what string
}

// bugsTokens are the tokens of writes that a planted bug makes, and that the
// leader does not know.
const bugsTokens = 1 << 62

func newCommitter(c *coordinator) committer {
	return committer{
		batcher: batch.New(batch.Config{Held: c.held(), MaxOps: maxOps, FirstReread: firstReread, LastReread: lastReread}),
		writes:  map[uint64]queued{},
	}
}

// held is the compare with the coordinator's own candidacy.
func (c *coordinator) held() record.Compare {
	return record.CreateRevIs(c.key, resource.Revision(c.epoch))
}

// submit queues a write of the leader.
func (t *term) submit(k post.Token, w post.Write) {
	t.underWay[k] = true
	t.noteWrite(w)
	t.enqueue(t.falsifyWrite(queued{k, w, t.sim.store.whatOf(w)}))
}

// submitOwn queues a write that the leader does not know of.
func (t *term) submitOwn(what string, w post.Write) {
	t.ownTokens++
	t.enqueue(queued{bugsTokens + post.Token(t.ownTokens), w, what})
}

// enqueue queues a write.
func (t *term) enqueue(p queued) {
	t.sim.stats["writes"]++
	t.writes[uint64(p.token)] = p
	t.submitted = append(t.submitted, p)
}

// whatOf says in words what a write does.
func (s *kvStore) whatOf(w post.Write) string {
	var words []string
	for _, o := range w.Ops {
		word := strings.TrimPrefix(o.Key, record.Root)
		if tx, err := record.ParseTxKey(o.Key); err == nil {
			word = "tx " + short(tx)
			if !o.Delete {
				word += " " + s.txs.of(record.KV{Key: o.Key, Value: o.Value}).State.String()
			}
		} else if o.Delete {
			word = "no " + word
		}
		words = append(words, word)
	}
	return strings.Join(words, ", ")
}

// flush lets the committer's loop run once: it takes some of the writes that were
// submitted, and sends what may be sent.
func (t *term) flush(n int) {
	taken := slices.Clone(t.submitted[:n])
	t.submitted = slices.Delete(t.submitted, 0, n)
	for _, p := range taken {
		w := batch.Write{Token: uint64(p.token), Compares: p.Compares, Ops: p.Ops, AnyEpoch: p.AnyEpoch, Once: p.Once}
		t.commit(t.batcher.Submit(w, nil))
	}
	t.commit(t.batcher.Next(nil))
}

// answered hands the batcher an answer, and sends what may be sent then.
func (t *term) answered(in func(out []batch.Effect) []batch.Effect) {
	if t.ended {
		return
	}
	t.commit(in(nil))
	t.commit(t.batcher.Next(nil))
	t.schedule()
}

// commit carries out what the batcher asks for.
func (t *term) commit(effects []batch.Effect) {
	for _, e := range effects {
		if t.ended {
			return
		}
		switch e.Kind {
		case batch.Send:
			t.sendTxn(e)
		case batch.ReadKey:
			t.readOwnKey(e.ID)
		case batch.Pause:
			t.sim.reply(t.name+" has paused", func() {
				t.answered(func(out []batch.Effect) []batch.Effect { return t.batcher.PauseOver(e.ID, out) })
			})
		case batch.Answer:
			p := t.writes[e.Token]
			delete(t.writes, e.Token)
			t.wrote(p, e)
		case batch.Depose:
			t.sim.stats["deposed by a conflict"]++
			t.sim.depose(t, e.Err.Error())
		}
	}
}

// sendTxn sends a Txn to the store.
func (t *term) sendTxn(e batch.Effect) {
	s := t.sim
	all := post.Write{Compares: e.Txn.If, Ops: e.Txn.Then}
	w := &write{what: t.name + ": " + t.sim.store.whatOf(all), slow: t.worstMoment(all), compares: t.falsifyCompares(all), ops: e.Txn.Then, delicate: len(t.sim.store.evictsFor(all)) > 0}
	if slices.Contains(e.Txn.If, t.coordinator.held()) {
		w.epoch = t.epoch
	}
	answer := func(a batch.StoreAnswer) {
		t.answered(func(out []batch.Effect) []batch.Effect { return t.batcher.Answered(e.ID, a, out) })
	}
	w.done = func(o txn.Outcome, rev resource.Revision) {
		switch o {
		case txn.Landed:
			answer(batch.StoreAnswer{Result: batch.Landed, Revision: rev})
		case txn.Conflict:
			answer(batch.StoreAnswer{Result: batch.CompareFailed, Revision: rev})
		default:
			answer(batch.StoreAnswer{Result: batch.Lost, Err: record.ErrUnknownOutcome})
		}
	}
	w.refused = func() {
		result := pick(s, []batch.Result{batch.Refused, batch.Full})
		answer(batch.StoreAnswer{Result: result, Err: fmt.Errorf("the store refuses it: %w", record.ErrNoSpace)})
	}
	s.stats["Txns"]++
	s.checkDisjoint(w)
	s.send(w)
}

// readOwnKey looks whether the leader's key is still held.
func (t *term) readOwnKey(id batch.ID) {
	s := t.sim
	s.ask(t.name+": its own key", func() func() {
		key, why := batch.Held, error(nil)
		switch {
		case s.mishap(8):
			key = batch.Unread
		case s.store.keys[t.key].CreateRev != resource.Revision(t.epoch):
			key, why = batch.Changed, post.ErrDeposed
		}
		return func() {
			t.answered(func(out []batch.Effect) []batch.Effect { return t.batcher.KeyRead(id, key, why, out) })
		}
	})
}

// wrote tells the leader what became of a write.
func (t *term) wrote(p queued, e batch.Effect) {
	if t.confirmAnew(p, e.Outcome) {
		return
	}
	if p.token < bugsTokens {
		t.apply(lead.WriteAnswer{Token: p.token, Outcome: t.falsifyOutcome(p, e.Outcome), Revision: e.Revision, Err: e.Err})
		t.settled(p.token)
	}
	t.afterWrite(p, e.Outcome)
}
