package etcd

import (
	"context"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/resource"
)

// Pauses between attempts to open a watch again.
const (
	minRewatch = 20 * time.Millisecond
	maxRewatch = 2 * time.Second
)

// Watch delivers every revision that touches the prefix. etcd never splits a
// revision over responses (fragments are not asked for), so a response is cut
// into revisions and each is whole.
func (s *Store) Watch(ctx context.Context, prefix string, o store.WatchOptions) <-chan store.Batch {
	out := make(chan store.Batch)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		close(out)
		return out
	}
	if prefix == "" || o.From < 1 {
		out = make(chan store.Batch, 1) // so that no goroutine must wait for the receiver
		out <- store.Batch{Err: fmt.Errorf("watch %q from revision %d: want a prefix and at least 1", prefix, o.From)}
		close(out)
		return out
	}
	s.wg.Add(1)
	go func() {
		defer s.wg.Done()
		defer close(out)
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(s.ctx, cancel)()
		w := watch{prefix: prefix, prev: o.Prev, next: o.From, out: out}
		w.run(ctx, s.client)
	}()
	return out
}

// watch is one Watch; its goroutine owns it.
type watch struct {
	prefix string
	prev   bool
	next   resource.Revision // first one not yet delivered
	out    chan<- store.Batch
}

// run follows until ctx ends or history is lost, however often etcd ends the
// watch in between.
func (w *watch) run(ctx context.Context, client *clientv3.Client) {
	pause := minRewatch
	for ctx.Err() == nil {
		before := w.next
		if err := w.follow(ctx, client); err != nil {
			w.send(ctx, store.Batch{Err: err})
			return
		}
		if w.next != before {
			pause = minRewatch
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
			pause = min(2*pause, maxRewatch)
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

// follow watches until etcd ends the watch. Its error is one that watching
// again would not mend.
func (w *watch) follow(ctx context.Context, client *clientv3.Client) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	opts := []clientv3.OpOption{clientv3.WithPrefix(), clientv3.WithRev(int64(w.next)), clientv3.WithProgressNotify()}
	if w.prev {
		opts = append(opts, clientv3.WithPrevKV())
	}
	// A member that has lost its cluster ends the watch instead of going silent.
	for answer := range client.Watch(clientv3.WithRequireLeader(ctx), w.prefix, opts...) {
		if answer.CompactRevision != 0 {
			return &store.CompactedError{Asked: w.next, Floor: resource.Revision(answer.CompactRevision)}
		}
		if answer.Err() != nil {
			return nil
		}
		if rev := resource.Revision(answer.Header.Revision); answer.IsProgressNotify() && rev >= w.next {
			if !w.send(ctx, store.Batch{Revision: rev}) {
				return nil
			}
			w.next = rev + 1
		}
		for events := answer.Events; len(events) > 0; {
			n := 1
			for n < len(events) && events[n].Kv.ModRevision == events[0].Kv.ModRevision {
				n++
			}
			batch := store.Batch{Revision: resource.Revision(events[0].Kv.ModRevision), Events: make([]store.Event, n)}
			for i, e := range events[:n] {
				batch.Events[i] = event(e)
			}
			if !w.send(ctx, batch) {
				return nil
			}
			w.next = batch.Revision + 1
			events = events[n:]
		}
	}
	return nil
}

func (w *watch) send(ctx context.Context, b store.Batch) bool {
	select {
	case w.out <- b:
		return true
	case <-ctx.Done():
		return false
	}
}

func event(e *clientv3.Event) store.Event {
	out := store.Event{KV: convert(e.Kv)}
	if e.Type == clientv3.EventTypeDelete {
		out.Type = store.EventDelete
		out.KV = store.KV{Key: out.KV.Key, ModRev: out.KV.ModRev}
	}
	if e.PrevKv != nil {
		prev := convert(e.PrevKv)
		out.Prev = &prev
	}
	return out
}

func convert(kv *mvccpb.KeyValue) store.KV {
	return store.KV{
		Key:       string(kv.Key),
		Value:     kv.Value,
		CreateRev: resource.Revision(kv.CreateRevision),
		ModRev:    resource.Revision(kv.ModRevision),
		Lease:     store.LeaseID(kv.Lease),
	}
}
