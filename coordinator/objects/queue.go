package objects

import (
	"cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/edit"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/shown"
)

// cachedQueues are the queues: the default one, those that live units name, and those
// that operators wrote.
type cachedQueues struct {
	written map[string]shown.Versioned[api.Queue]
	members map[string]queueMembers
}

// queueMembers counts the members of the live units of a queue.
type queueMembers struct{ waiting, running int }

func newCachedQueues() cachedQueues {
	return cachedQueues{written: map[string]shown.Versioned[api.Queue]{}, members: map[string]queueMembers{}}
}

// remakeQueue makes a queue from its key.
func (c *Cache) remakeQueue(key string, kvs map[string]record.KV) error {
	name, err := edit.Queues.NameIn(key)
	if err != nil {
		return err
	}
	c.stale[Name{Queues, "", name}] = true
	return remakeObject(c.queues.written, edit.Queues, name, key, kvs)
}

// countQueued counts the members of a unit that comes, with sign 1, or goes, with -1. A
// queue that comes or goes with it makes an event; the numbers make none.
func (c *Cache) countQueued(u *cachedUnit, sign int) {
	var more queueMembers
	switch p := u.Phase(); {
	case p == api.Pending:
		more.waiting = sign * u.record.Held()
	case !p.Ended():
		more.running = sign * u.record.Held()
	default:
		return
	}
	name := u.record.Queue
	was := c.queues.members[name]
	now := queueMembers{was.waiting + more.waiting, was.running + more.running}
	if c.queues.members[name] = now; now == (queueMembers{}) {
		delete(c.queues.members, name)
	}
	n := Name{Queues, "", name}
	if was == (queueMembers{}) || now == (queueMembers{}) || c.stale[n] {
		c.stale[n] = true
		return
	}
	c.tables[Queues].Set(n.position(), c.queues.entry(name))
	c.view = nil
}

// entry makes the entry of a queue, nil where nothing has the name.
func (q *cachedQueues) entry(name string) entry {
	w, written := q.written[name]
	members, used := q.members[name]
	if !written && !used && name != api.DefaultQueue {
		return nil
	}
	if !written {
		w.Object.Metadata.Name = name
	}
	w.Object.APIVersion, w.Object.Kind = api.APIVersion, api.KindQueue
	w.Object.Spec.State = cmp.Or(w.Object.Spec.State, api.QueueOpen)
	w.Object.Spec.Order = cmp.Or(w.Object.Spec.Order, api.QueueBestEffort)
	return &queueEntry{w, members}
}

// queueEntry is a queue. Its figures are the numbers of members.
type queueEntry struct {
	shown.Versioned[api.Queue]
	members queueMembers
}

func (e *queueEntry) base() any { return e.Copy() }
func (e *queueEntry) figures(object any, _ *View) {
	object.(*api.Queue).Status = e.show().Object.Status
}
func (e *queueEntry) size() int { return 2 << 10 }

func (e *queueEntry) show() shown.Versioned[api.Queue] {
	v := e.Versioned
	v.Object.Status = api.QueueStatus{WaitingMembers: e.members.waiting, RunningMembers: e.members.running}
	return v
}
