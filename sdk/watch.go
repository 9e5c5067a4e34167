package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
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

// WatchOptions say what is watched.
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
		w := &watching{Resource: r, options: o, yield: yield, heard: time.Now()}
		for attempt := 0; ; attempt++ {
			err := w.follow(ctx)
			if w.stopped {
				return
			}
			if w.progress {
				attempt, w.progress = 0, false
			}
			if final := w.final(ctx, err); final != nil {
				yield(Event{}, final)
				return
			}
			w.next()
			wait := min(50*time.Millisecond<<min(attempt, 8), longestPause)
			select {
			case <-ctx.Done():
			case <-time.After(wait/2 + mathrand.N(wait/2)):
			}
		}
	}
}

// watching is a watch over all of its servers.
type watching struct {
	Resource
	options  WatchOptions
	yield    func(Event, error) bool
	stopped  bool
	progress bool      // something has arrived since the last failure
	heard    time.Time // when something arrived last
	present  []Event   // the objects that are there, as long as they are not all here
}

// next chooses the server that is asked next.
func (w *watching) next() {
	c := w.at.client
	c.last.Store((c.last.Load() + 1) % int32(len(c.endpoints)))
}

// final is the error that ends a watch, nil where another server is asked.
func (w *watching) final(ctx context.Context, err error) error {
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
func (w *watching) follow(ctx context.Context) error {
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
		var line watchLine
		if err := lines.Decode(&line); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return fmt.Errorf("watch %s: %w", w.at.path, err)
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
func (w *watching) take(line watchLine) error {
	switch line.Type {
	case "ERROR":
		status := new(api.Status)
		if err := json.Unmarshal(line.Object, status); err != nil {
			return &malformedError{fmt.Errorf("watch %s: an error that cannot be read: %w", w.at.path, err)}
		}
		return status
	case "BOOKMARK":
		for _, e := range w.present {
			w.give(e)
		}
		w.present, w.options.After = nil, line.ID
		return nil
	case "ADDED", "MODIFIED", "DELETED":
	default:
		return nil // of a newer server
	}
	value, err := w.kind.parse(line.Object)
	if err != nil {
		return &malformedError{fmt.Errorf("watch %s: the object of an event cannot be read: %w", w.at.path, err)}
	}
	e := Event{Type: line.Type, Object: Object{Kind: w.kind, Value: value}, ID: line.ID, Present: line.ID == ""}
	if e.Present {
		w.present = append(w.present, e)
		return nil
	}
	w.options.After = line.ID
	w.give(e)
	return nil
}

// give yields an event, unless the caller has ended the loop.
func (w *watching) give(e Event) {
	if !w.stopped && !w.yield(e, nil) {
		w.stopped = true
	}
}

// open asks the present server.
func (w *watching) open(ctx context.Context) (*http.Response, error) {
	c := w.at.client
	query := ListOptions{LabelSelector: w.options.LabelSelector, FieldSelector: w.options.FieldSelector}.query()
	query.Set("watch", "true")
	if w.options.After != "" {
		query.Set("resourceVersion", w.options.After)
	}
	target := c.Endpoint() + w.at.path + "?" + query.Encode()
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
