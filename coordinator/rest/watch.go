package rest

import (
	"bufio"
	"context"
	"errors"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/gate"
	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/coordinator/service"
)

const (
	// mostWatches bounds the open watches of a coordinator: half of its
	// connections are left for others.
	mostWatches = 2048
	// watchWrite is how long a reader may take for the changes that it is sent at a
	// time. A slower one is cut off, and goes on where it was.
	watchWrite = gate.ReaderTime
	// watchBuffer is the memory for writing to one reader, in bytes. It is taken
	// for the time of writing alone.
	watchBuffer = 16 << 10
)

// typeEvents is the media type of Server-Sent Events.
const typeEvents = "text/event-stream"

// watchBuffers are the buffers that no watch writes with at the moment.
var watchBuffers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, watchBuffer) }}

// watching answers ?watch=true on a list.
func watching[T any](h *handler, c *call, l service.Listed[T], kind objects.Kind) (answer, error) {
	matches := l.PageOf(&c.query.Selection).Match
	return h.openWatch(c, kind, func(s *watchStream) {
		s.selects = func(o any) bool { return matches == nil || matches(o.(*T)) }
	})
}

// openWatch opens a watch of a kind; set completes the stream of the answer.
func (h *handler) openWatch(c *call, kind objects.Kind, set func(*watchStream)) (answer, error) {
	if h.Watches == nil {
		return answer{}, api.Errorf(http.StatusUnprocessableEntity, "this coordinator serves no watches: get again, or wait with ?wait=")
	}
	o, status := watchOptions(c, kind)
	if status != nil {
		return answer{}, status
	}
	if status := h.bounded(c, gate.Watches, 1); status != nil {
		return answer{}, status
	}
	select {
	case h.watches <- struct{}{}:
	default:
		return answer{}, h.throttled(c, throttleWatches, "%d watches are open at this coordinator; ask another one, or again", mostWatches)
	}
	w, err := h.Watches.Watch(c.ctx(), o)
	if err != nil {
		<-h.watches
		return answer{}, err
	}
	s := &watchStream{out: c.w, control: http.NewResponseController(c.w), watch: w, kind: kind, lines: acceptsJSON(c.r.Header.Get("Accept")), gate: h.Gate, reader: c.caller}
	set(s)
	return answer{stream: func() int {
		defer func() { <-h.watches }()
		defer w.Close()
		s.run(c.ctx(), h)
		return http.StatusOK
	}}, nil
}

// watchOptions are the place that a watch goes on from: the id of the last event
// that a client has, as EventSource sends it, or resourceVersion.
func watchOptions(c *call, kind objects.Kind) (objects.WatchOptions, *api.Status) {
	o := objects.WatchOptions{Kind: kind, Namespace: c.namespace}
	if q := c.r.URL.Query(); q.Has("limit") || q.Has("continue") {
		return o, api.Errorf(http.StatusBadRequest, "query parameter watch: a watch takes no limit and no continue, it begins with all objects")
	}
	what, text := "header Last-Event-ID", c.r.Header.Get("Last-Event-ID")
	if text == "" {
		what, text = "query parameter resourceVersion", c.query.version
	}
	switch text {
	case "":
		return o, nil
	case "0":
		o.Cached = true
		return o, nil
	}
	var err error
	if o.After, err = objects.ParseID(text); err != nil {
		return o, api.Errorf(http.StatusBadRequest, "%s=%q: %v", what, clip(text), err)
	}
	return o, nil
}

// acceptsJSON reports whether a client wants one JSON document a line, as kubectl
// does, and not events.
func acceptsJSON(accept string) bool {
	wanted := false
	for part := range strings.SplitSeq(accept, ",") {
		switch media, _, _ := mime.ParseMediaType(part); media {
		case typeEvents:
			return false
		case typeJSON:
			wanted = true
		}
	}
	return wanted
}

// watchStream writes the changes of a watch to its reader.
type watchStream struct {
	out     http.ResponseWriter
	control *http.ResponseController
	watch   service.Watch
	kind    objects.Kind
	lines   bool // JSON, and no events
	selects func(any) bool
	gate    *gate.Gate
	reader  service.Principal
	// encode, where not nil, makes the whole document of an event, nil for none.
	encode func(*objects.Event) []byte
}

// run writes until the client goes away, the coordinator stops, or the watch ends.
func (s *watchStream) run(ctx context.Context, h *handler) {
	header := s.out.Header()
	header.Set("Content-Type", typeEvents)
	if s.lines {
		header.Set("Content-Type", typeJSON)
	}
	header.Set("Cache-Control", "no-store")
	s.out.WriteHeader(http.StatusOK)
	_ = s.control.Flush() // the client knows that the watch has begun
	defer s.within()      // for the end of the answer
	for {
		s.unbounded()
		changes, err := s.watch.Next(ctx)
		if err != nil {
			if status := s.last(ctx, h, err); status != nil {
				_ = s.write(objects.Changes{}, status)
			}
			return
		}
		if s.write(changes, nil) != nil {
			return
		}
	}
}

// within bounds the time of the next write.
func (s *watchStream) within() {
	// A test recorder has no deadline to set, hence the ignored error.
	_ = s.control.SetWriteDeadline(time.Now().Add(watchWrite))
}

// unbounded lets the stream be silent: over HTTP/2 a deadline that passes ends a
// stream also where nothing is being written.
func (s *watchStream) unbounded() { _ = s.control.SetWriteDeadline(time.Time{}) }

// last is the status of the event that ends a watch, nil where nobody reads it.
func (s *watchStream) last(ctx context.Context, h *handler, err error) *api.Status {
	var status *api.Status
	switch {
	case service.Refused(ctx) != nil:
		return service.Refused(ctx)
	case ctx.Err() != nil:
		return nil
	case errors.As(err, &status):
		return status
	}
	h.Logger.Error("watch_failed", "kind", s.kind.String(), "error", err)
	return api.Errorf(http.StatusInternalServerError, "the watch failed inside the coordinator; its log says why")
}

// write sends changes, or the status that ends the watch. The write of a reader that is
// cut fails at once; its connection then takes no status any more.
func (s *watchStream) write(c objects.Changes, status *api.Status) error {
	s.within()
	bytes := int64(0) // which wait for the reader
	for _, e := range c.Events {
		bytes += int64(len(e.JSON))
	}
	sending := s.gate.Send(s.reader, "rest", s.kind.String(), bytes, func() { _ = s.control.SetWriteDeadline(time.Now()) })
	err := s.compose(c, status)
	if slow := sending.End(err); slow != nil {
		return slow
	}
	return err
}

// compose writes the text of changes, or of a status, and returns when the connection
// has taken it.
func (s *watchStream) compose(c objects.Changes, status *api.Status) error {
	out := watchBuffers.Get().(*bufio.Writer)
	out.Reset(s.out)
	defer func() {
		out.Reset(nil)
		watchBuffers.Put(out)
	}()
	wrote := false
	for _, e := range c.Events {
		if s.encode != nil {
			if text := s.encode(e); text != nil {
				s.document(out, e.ID, text)
				wrote = true
			}
			continue
		}
		kind, object := objects.Selected(e, s.selects)
		if kind == "" {
			continue
		}
		text := e.JSON
		if object != e.Object {
			text = objects.Encode(object)
		}
		s.event(out, kind, e.ID, text)
		wrote = true
	}
	if c.Bookmark.Revision > 0 {
		s.event(out, "BOOKMARK", c.Bookmark, objects.Encode(bookmark{s.kind.String(), api.APIVersion, bookmarkMeta{c.Bookmark.String()}}))
	}
	if status != nil {
		s.event(out, "ERROR", objects.ID{}, objects.Encode(status))
	}
	if out.Buffered() == 0 && !wrote {
		return nil // the selector takes none of them
	}
	if err := out.Flush(); err != nil {
		return err
	}
	return s.control.Flush()
}

// bookmark is the object of a bookmark: a place to go on from.
type bookmark struct {
	Kind       string       `json:"kind"`
	APIVersion string       `json:"apiVersion"`
	Metadata   bookmarkMeta `json:"metadata"`
}

type bookmarkMeta struct {
	ResourceVersion string `json:"resourceVersion"`
}

// document writes one event whose document is made already.
func (s *watchStream) document(out *bufio.Writer, id objects.ID, text []byte) {
	if !s.lines {
		if id.Revision > 0 {
			_, _ = out.WriteString("id: " + id.String() + "\n")
		}
		_, _ = out.WriteString("data: ")
	}
	_, _ = out.Write(text)
	_ = out.WriteByte('\n')
	if !s.lines {
		_ = out.WriteByte('\n')
	}
}

// event writes one event. The id of a line of JSON is a field, since a line has
// no other place for it. Errors stay in the writer until it is flushed.
func (s *watchStream) event(out *bufio.Writer, kind objects.EventType, id objects.ID, object []byte) {
	if !s.lines {
		if id.Revision > 0 {
			_, _ = out.WriteString("id: " + id.String() + "\n")
		}
		_, _ = out.WriteString("data: ")
	}
	_, _ = out.WriteString(`{"type":"` + string(kind) + `","object":`)
	_, _ = out.Write(object)
	if s.lines && id.Revision > 0 {
		_, _ = out.WriteString(`,"id":"` + id.String() + `"`)
	}
	_, _ = out.WriteString("}\n")
	if !s.lines {
		_ = out.WriteByte('\n')
	}
}
