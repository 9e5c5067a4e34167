package etcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/resource"
)

// Watch delivers every revision that touches the prefix. etcd never splits a
// revision over responses (fragments are not asked for), so a response is cut
// into revisions and each is whole.
func (s *Store) Watch(ctx context.Context, prefix string, o store.WatchOptions) <-chan record.Batch {
	out := make(chan record.Batch)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		close(out)
		return out
	}
	if prefix == "" || o.From < 1 {
		out = make(chan record.Batch, 1) // so that no goroutine must wait for the receiver
		out <- record.Batch{Err: fmt.Errorf("watch %q from revision %d: want a prefix and at least 1", prefix, o.From)}
		close(out)
		return out
	}
	era := s.history.present()
	s.wg.Add(1)
	go func() {
		defer s.wg.Done()
		defer close(out)
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(s.ctx, cancel)()
		w := watch{store: s, prefix: prefix, prev: o.Prev, next: o.From, out: out, era: era, patience: minPatience}
		w.run(ctx)
	}()
	return out
}

// watch is one Watch; its goroutine owns it. It has a stream of its own, so
// that it sees every new connection: by then the store may have been restored.
type watch struct {
	store  *Store
	prefix string
	prev   bool
	next   resource.Revision // first one not yet delivered
	out    chan<- record.Batch
	era    *era // a watch ends with it
	// patience is how many signs of life may be missed. It grows while streams
	// end without having brought anything: a member may have much to read.
	patience int
}

const (
	minPatience = 2
	maxPatience = 64
)

// run follows until ctx ends or history is lost, however often etcd ends the
// stream in between.
func (w *watch) run(ctx context.Context) {
	pause := minPause
	for ctx.Err() == nil {
		if w.era.over() {
			w.send(ctx, record.Batch{Err: w.era.err})
			return
		}
		before := w.next
		if err := w.follow(ctx); err != nil {
			if ctx.Err() == nil {
				w.send(ctx, record.Batch{Err: err})
			}
			return
		}
		if w.next != before {
			pause = minPause
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
			pause = min(2*pause, maxPause)
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

// follow opens a stream and delivers its changes until it ends. Its error is
// one that watching again would not mend.
func (w *watch) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := w.store.verify(ctx); err != nil {
		return w.fatal(err)
	}
	// A member that has lost its cluster ends the stream instead of going silent.
	stream, err := w.store.watches.Watch(clientv3.WithRequireLeader(ctx), calls...)
	if err != nil {
		return nil
	}
	answers := make(chan *pb.WatchResponse)
	received := make(chan struct{})
	go func() {
		defer close(received)
		defer close(answers)
		for {
			answer, err := stream.Recv()
			if err != nil {
				return
			}
			select {
			case answers <- answer:
			case <-ctx.Done():
				return
			}
		}
	}()
	defer func() { cancel(); <-received }()
	if err := stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: &pb.WatchCreateRequest{
		Key: []byte(w.prefix), RangeEnd: []byte(clientv3.GetPrefixRangeEnd(w.prefix)),
		StartRevision: int64(w.next), PrevKv: w.prev, ProgressNotify: true,
	}}}); err != nil {
		return nil
	}
	return w.deliver(ctx, stream, answers)
}

// deliver hands over the changes of a stream. A member that is silent is asked
// for a sign of life; without one the stream is given up, and the next one goes
// to another member.
func (w *watch) deliver(ctx context.Context, stream pb.Watch_WatchClient, answers <-chan *pb.WatchResponse) error {
	var quiet <-chan time.Time
	if w.store.requestTimeout > 0 {
		tick := time.NewTicker(w.store.requestTimeout)
		defer tick.Stop()
		quiet = tick.C
	}
	for missed := 0; ; {
		select {
		case answer, open := <-answers:
			if !open {
				return nil
			}
			missed = 0
			if goOn, err := w.take(ctx, answer); !goOn {
				return err
			}
		case <-quiet:
			if missed++; missed >= w.patience {
				w.patience = min(2*w.patience, maxPatience)
				w.store.look()
				return nil
			}
			if err := stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_ProgressRequest{ProgressRequest: &pb.WatchProgressRequest{}}}); err != nil {
				return nil
			}
		case <-w.era.ended:
			return w.era.err
		case <-ctx.Done():
			return nil
		}
	}
}

// take handles one response and reports whether the stream goes on.
func (w *watch) take(ctx context.Context, answer *pb.WatchResponse) (goOn bool, err error) {
	switch {
	case answer.CompactRevision != 0:
		return false, &record.CompactedError{Asked: w.next, Floor: resource.Revision(answer.CompactRevision)}
	case answer.Canceled:
		w.store.log.Warn("watch_refused", "prefix", w.prefix, "reason", answer.CancelReason)
		return false, nil
	case answer.Created:
		// The connection may be a new one, and the store behind it a restored
		// one that does not reach w.next yet and would be silent until it does.
		if err := w.store.verify(ctx); err != nil {
			return false, w.fatal(err)
		}
		return true, nil
	case answer.WatchId < 0:
		// A sign of life. It is no progress: etcd before 3.5.8 may send it
		// ahead of older events.
		w.patience = minPatience
		return true, nil
	}
	w.patience = minPatience
	if rev := resource.Revision(answer.Header.Revision); len(answer.Events) == 0 && rev >= w.next {
		if !w.send(ctx, record.Batch{Revision: rev}) {
			return false, nil
		}
		w.next = rev + 1
	}
	for events := answer.Events; len(events) > 0; {
		n := 1
		for n < len(events) && events[n].Kv.ModRevision == events[0].Kv.ModRevision {
			n++
		}
		batch := record.Batch{Revision: resource.Revision(events[0].Kv.ModRevision), Events: make([]record.Event, n)}
		for i, e := range events[:n] {
			batch.Events[i] = event(e)
		}
		w.store.history.saw(w.era, newest(batch))
		if !w.send(ctx, batch) {
			return false, nil
		}
		w.next = batch.Revision + 1
		events = events[n:]
	}
	return true, nil
}

// newest is the version of a key in a batch, or only its revision.
func newest(b record.Batch) version {
	for i := range b.Events {
		if kv := &b.Events[i].KV; b.Events[i].Type == record.EventPut {
			return versionOf(kv.Key, kv.Value, kv.ModRev)
		}
	}
	return version{rev: b.Revision}
}

// fatal is the error if it ends the watch; an error that another attempt may
// mend does not end it.
func (w *watch) fatal(err error) error {
	if w.era.over() && errors.Is(err, record.ErrWentBack) {
		return w.era.err
	}
	return nil
}

func (w *watch) send(ctx context.Context, b record.Batch) bool {
	select {
	case w.out <- b:
		return true
	case <-ctx.Done():
		return false
	}
}

func event(e *mvccpb.Event) record.Event {
	out := record.Event{KV: convert(e.Kv)}
	if e.Type == mvccpb.Event_DELETE {
		out.Type = record.EventDelete
		out.KV = record.KV{Key: out.KV.Key, ModRev: out.KV.ModRev}
	}
	if e.PrevKv != nil {
		prev := convert(e.PrevKv)
		out.Prev = &prev
	}
	return out
}

func convert(kv *mvccpb.KeyValue) record.KV {
	return record.KV{
		Key:       string(kv.Key),
		Value:     kv.Value,
		CreateRev: resource.Revision(kv.CreateRevision),
		ModRev:    resource.Revision(kv.ModRevision),
		Lease:     record.LeaseID(kv.Lease),
	}
}
