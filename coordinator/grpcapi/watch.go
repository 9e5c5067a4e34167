package grpcapi

import (
	"context"
	"encoding/json"
	"math"
	"net/http"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/gate"
	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/coordinator/service"
	apiv1 "github.com/musterd/muster/proto/muster/api/v1"
	"github.com/musterd/muster/resource"
)

const (
	// mostWatches bounds the open watches of a coordinator over gRPC.
	mostWatches = 1024
	// watchWrite is how long a client may take for one message. The watch of a
	// slower client ends, and the client goes on where it was.
	watchWrite = gate.ReaderTime
	// mostSelector bounds a selector, in bytes: a watch keeps its selectors.
	mostSelector = 16 << 10
)

// watched describes the watch of one kind: its documents T, their messages M and
// its events E.
type watched[T any, M proto.Message, E any] struct {
	kind   objects.Kind
	listed service.Listed[T]
	empty  func() M
	event  func(of apiv1.WatchEventType, id *apiv1.WatchID, object M) *E
}

// serve answers a watch. narrow, where not nil, restricts the selection to the
// objects that the caller may see.
func (w watched[T, M, E]) serve(a *API, allowed *api.Status, r *apiv1.WatchRequest, narrow func(*service.Selection), out grpc.ServerStreamingServer[E]) error {
	if allowed != nil {
		return allowed
	}
	s, refused := selectors(w.listed, r)
	if refused != nil {
		return refused
	}
	if narrow != nil {
		narrow(s)
	}
	o, refused := place(w.kind, r)
	if refused != nil {
		return refused
	}
	matches := w.listed.PageOf(s).Match
	selects := func(o any) bool { return matches == nil || matches(o.(*T)) }
	return a.follow(out.Context(), o, func(e *objects.Event) (any, error) {
		of, object := objects.Selected(e, selects)
		if of == "" {
			return nil, nil
		}
		if object == e.Object && e.JSON != nil {
			object = json.RawMessage(e.JSON)
		}
		m, err := toMessage(object, w.empty())
		if err != nil {
			return nil, err
		}
		return w.event(eventType(of), watchID(e.ID), m), nil
	}, func(id *apiv1.WatchID) any {
		var none M
		return w.event(apiv1.WatchEventType_BOOKMARK, id, none)
	}, out.SendMsg)
}

// follow opens a watch and sends its events until the client goes away, the
// coordinator stops, or the watch ends. message makes the message of an event,
// nil for none.
func (a *API) follow(ctx context.Context, o objects.WatchOptions, message func(*objects.Event) (any, error), bookmark func(*apiv1.WatchID) any, send func(any) error) error {
	if a.Watches == nil {
		return api.Errorf(http.StatusUnprocessableEntity, "this coordinator serves no watches: get again, or wait with wait")
	}
	select {
	case a.watches <- struct{}{}:
		defer func() { <-a.watches }()
	default:
		return busy("%d watches are open at this coordinator; ask another one, or again", mostWatches)
	}
	w, err := a.Watches.Watch(ctx, o)
	gate.TurnOf(ctx).End()
	if err != nil {
		return err
	}
	defer w.Close()
	to := a.beginWatch(ctx, o.Kind.String(), send)
	defer to.end()
	for {
		changes, err := w.Next(ctx)
		if err != nil {
			return err
		}
		for _, e := range changes.Events {
			m, err := message(e)
			if err == nil && m != nil {
				err = to.send(m)
			}
			if err != nil {
				return err
			}
		}
		if changes.Bookmark.Revision > 0 {
			if err := to.send(bookmark(watchID(changes.Bookmark))); err != nil {
				return err
			}
		}
	}
}

// reader is the client of a watch.
type reader struct {
	a       *API
	ctx     context.Context
	kind    string
	message func(any) error
	slow    *time.Timer // fires while a message waits for the client
}

// beginWatch takes the bound on the time of an answer away: each message has a
// bound of its own.
func (a *API) beginWatch(ctx context.Context, kind string, send func(any) error) *reader {
	r := &reader{a: a, ctx: ctx, kind: kind, message: send}
	r.slow = time.AfterFunc(math.MaxInt64, func() { a.answerBy(ctx, time.Unix(1, 0)) })
	a.answerBy(ctx, time.Time{})
	return r
}

// send returns once the client has taken all messages before this message, so
// that at most this one waits.
func (r *reader) send(m any) error {
	r.slow.Reset(watchWrite)
	defer r.slow.Stop()
	bytes := 0
	if m, is := m.(proto.Message); is {
		bytes = proto.Size(m)
	}
	sending := r.a.Gate.Send(caller(r.ctx), "grpc", r.kind, int64(bytes), func() { r.a.answerBy(r.ctx, time.Unix(1, 0)) })
	err := r.message(m)
	if slow := sending.End(err); slow != nil {
		return slow
	}
	if status.Code(err) == codes.Unavailable {
		return api.Errorf(http.StatusServiceUnavailable, "the client has gone, or took a message of the watch for longer than %s", watchWrite)
	}
	return err
}

// end bounds the time of the status that ends the watch.
func (r *reader) end() {
	r.slow.Stop()
	r.a.answerBy(r.ctx, time.Now().Add(watchWrite))
}

func (a *API) answerBy(ctx context.Context, deadline time.Time) {
	if a.AnswerBy != nil {
		a.AnswerBy(ctx, deadline)
	}
}

// selectors reads the selectors of a watch.
func selectors[T any](l service.Listed[T], r *apiv1.WatchRequest) (*service.Selection, *api.Status) {
	return selection(l, &apiv1.ListRequest{LabelSelector: r.GetLabelSelector(), FieldSelector: r.GetFieldSelector()})
}

// place is the place that a watch goes on from.
func place(kind objects.Kind, r *apiv1.WatchRequest) (o objects.WatchOptions, refused *api.Status) {
	o = objects.WatchOptions{Kind: kind, Namespace: r.GetNamespace(), Cached: r.GetCached()}
	if r.GetAfter() == nil {
		return o, nil
	}
	if r.GetCached() {
		return o, api.Errorf(http.StatusBadRequest, "cached: a watch that goes on after an id does not begin with objects; leave cached out")
	}
	o.After, refused = placeOf(r.GetAfter())
	return o, refused
}

// placeOf reads the id of an event.
func placeOf(id *apiv1.WatchID) (objects.ID, *api.Status) {
	switch {
	case id.GetRevision() <= 0:
		return objects.ID{}, api.Errorf(http.StatusBadRequest, "after.revision: %d: want the revision of an event's id, from 1", id.GetRevision())
	case id.Index == nil:
		return objects.AllOf(resource.Revision(id.GetRevision())), nil
	case id.GetIndex() < 0:
		return objects.ID{}, api.Errorf(http.StatusBadRequest, "after.index: %d: want the index of an event's id, from 0", id.GetIndex())
	}
	return objects.ID{Revision: resource.Revision(id.GetRevision()), Index: int(id.GetIndex())}, nil
}

// watchID is the message of an id; nil for none.
func watchID(id objects.ID) *apiv1.WatchID {
	if id.Revision == 0 {
		return nil
	}
	m := &apiv1.WatchID{Revision: int64(id.Revision)}
	if id != objects.AllOf(id.Revision) {
		index := int32(id.Index)
		m.Index = &index
	}
	return m
}

func eventType(of objects.EventType) apiv1.WatchEventType {
	return apiv1.WatchEventType(apiv1.WatchEventType_value[string(of)])
}
