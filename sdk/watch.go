package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	mathrand "math/rand/v2"
	"net/http"
	"net/url"
	"time"

	"github.com/musterd/muster/api"
)

// Bounds of a watch.
const (
	// watchSilence is how long a server may send nothing before another one is
	// asked: a live one sends a bookmark every 10 s.
	watchSilence = 25 * time.Second
	// watchAway is how long a watch looks for a server that answers.
	watchAway = time.Minute
)

// WatchOptions select the objects of a watch.
type WatchOptions struct {
	LabelSelector string
	FieldSelector string
	// After is the place to go on from: the ID of the last event, or the
	// resourceVersion of a list. "" begins with ADDED for each object that is there.
	After string
}

// Event is one change of an object.
type Event struct {
	Type   string // ADDED, MODIFIED or DELETED
	Object Object // for DELETED the last one
	// ID is the place behind the event, "" for the objects that were there when the
	// watch began.
	ID string
	// Present: the object was there when the watch began.
	Present bool
}

// watchLine is a line of a watch as the server sends it.
type watchLine struct {
	Type   string          `json:"type"`
	Object json.RawMessage `json:"object"`
	ID     string          `json:"id"`
}

// Watch yields the changes of the objects of a kind until ctx ends. It goes on
// at another server, without a gap or a duplicate, where one does not answer.
// The objects that are there come first; they are yielded once all of them have
// arrived. The last pair has an error, an *api.Status with 410 where the changes
// after a place are kept no more: list or watch anew then.
func (r Resource) Watch(ctx context.Context, o WatchOptions) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		w := &watching[Event]{
			client: r.at.client, path: r.at.path, query: ListOptions{LabelSelector: o.LabelSelector, FieldSelector: o.FieldSelector}.query(), after: o.After,
			yield: func(e Event) bool { return yield(e, nil) },
			read:  r.event,
		}
		if err := w.run(ctx); err != nil {
			yield(Event{}, err)
		}
	}
}

// event reads a line of a watch that is an event; the last result is false for a
// line of a newer server.
func (r Resource) event(text json.RawMessage) (e Event, id string, known bool, err error) {
	var line watchLine
	if err := json.Unmarshal(text, &line); err != nil {
		return e, "", false, err
	}
	if line.Type != "ADDED" && line.Type != "MODIFIED" && line.Type != "DELETED" {
		return e, "", false, nil
	}
	value, err := r.kind.parse(line.Object)
	if err != nil {
		return e, "", false, err
	}
	return Event{Type: line.Type, Object: Object{Kind: r.kind, Value: value}, ID: line.ID, Present: line.ID == ""}, line.ID, true, nil
}

// watching is a watch over all of the servers, of events E.
type watching[E any] struct {
	client *Client
	path   string
	query  url.Values
	after  string // the place to go on from; "" begins with the objects that exist
	yield  func(E) bool
	// read reads a line that is neither a bookmark nor an error: its event, its
	// place, "" for an object that existed when the watch began, and whether it is known.
	read func(json.RawMessage) (E, string, bool, error)
	// line, where not nil, takes all lines in place of the above.
	line func(json.RawMessage) error

	stopped  bool
	progress bool      // something has arrived since the last failure
	heard    time.Time // when something arrived last
	present  []E       // the objects that are there, as long as they are not all here
}

// run takes events until the caller has enough, or for an error.
func (w *watching[E]) run(ctx context.Context) error {
	w.heard = time.Now()
	for attempt := 0; ; attempt++ {
		err := w.follow(ctx)
		if w.stopped {
			return nil
		}
		if w.progress {
			attempt, w.progress = 0, false
		}
		if final := w.final(ctx, err); final != nil {
			return final
		}
		w.next()
		wait := min(50*time.Millisecond<<min(attempt, 8), longestPause)
		select {
		case <-ctx.Done():
		case <-time.After(wait/2 + mathrand.N(wait/2)):
		}
	}
}

// next chooses the server that is asked next.
func (w *watching[E]) next() {
	c := w.client
	c.last.Store((c.last.Load() + 1) % int32(len(c.endpoints)))
}

// final is the error that ends a watch, nil where another server is asked.
func (w *watching[E]) final(ctx context.Context, err error) error {
	var status *api.Status
	var malformed *malformedError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &malformed):
		return err
	case errors.As(err, &status) && status.Code != http.StatusServiceUnavailable && status.Code != http.StatusBadGateway && status.Code != http.StatusTooManyRequests:
		return status
	case time.Since(w.heard) > watchAway:
		return err
	}
	return nil
}

// follow takes the changes that one server sends.
func (w *watching[E]) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	silence := time.AfterFunc(watchSilence, cancel)
	defer silence.Stop()
	w.present = nil
	answer, err := w.open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	lines := json.NewDecoder(answer.Body)
	for {
		var line json.RawMessage
		if err := lines.Decode(&line); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return fmt.Errorf("watch %s: %w", w.path, err)
		}
		silence.Reset(watchSilence)
		w.heard, w.progress = time.Now(), true
		if err := w.take(line); err != nil || w.stopped {
			return err
		}
	}
}

// malformedError is an answer that no watch sends.
type malformedError struct{ error }

// take takes one line.
func (w *watching[E]) take(text json.RawMessage) error {
	if w.line != nil {
		return w.line(text)
	}
	var line watchLine
	if err := json.Unmarshal(text, &line); err != nil {
		return &malformedError{fmt.Errorf("watch %s: a line that cannot be read: %w", w.path, err)}
	}
	switch line.Type {
	case "ERROR":
		status := new(api.Status)
		if err := json.Unmarshal(line.Object, status); err != nil {
			return &malformedError{fmt.Errorf("watch %s: an error that cannot be read: %w", w.path, err)}
		}
		return status
	case "BOOKMARK":
		for _, e := range w.present {
			w.give(e)
		}
		w.present, w.after = nil, line.ID
		return nil
	}
	e, id, known, err := w.read(text)
	switch {
	case err != nil:
		return &malformedError{fmt.Errorf("watch %s: the object of an event cannot be read: %w", w.path, err)}
	case !known:
	case id == "":
		w.present = append(w.present, e)
	default:
		w.after = id
		w.give(e)
	}
	return nil
}

// give yields an event, unless the caller has ended the loop.
func (w *watching[E]) give(e E) {
	if !w.stopped && !w.yield(e) {
		w.stopped = true
	}
}

// open asks the present server.
func (w *watching[E]) open(ctx context.Context) (*http.Response, error) {
	c := w.client
	query := maps.Clone(w.query)
	if w.line == nil {
		query.Set("watch", "true")
	}
	if w.after != "" {
		query.Set("resourceVersion", w.after)
	}
	target := c.Endpoint() + w.path + "?" + query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return nil, &malformedError{err}
	}
	request.Header.Set("Accept", "application/json")
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	answer, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode == http.StatusOK {
		return answer, nil
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err != nil {
		return nil, &url.Error{Op: http.MethodGet, URL: target, Err: err}
	}
	return nil, statusOf(answer, body)
}
