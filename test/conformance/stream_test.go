package conformance

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
)

// stream is an open answer with one document a line, as Server-Sent Events or bare.
type stream struct {
	w       *world
	of      request
	lines   *bufio.Scanner
	cancel  context.CancelFunc
	answer  *http.Response
	content string
}

// follow opens a documented stream.
func (w *world) follow(name string, more map[string]string) *stream {
	w.Helper()
	r := w.request(name)
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	answer := w.open(ctx, r.Method, w.target(r, more), r.Headers, nil)
	s := &stream{w: w, of: r, lines: bufio.NewScanner(answer.Body), cancel: cancel, answer: answer, content: answer.Header.Get("Content-Type")}
	s.lines.Buffer(nil, 1<<20)
	w.Cleanup(s.close)
	if answer.StatusCode != r.Status {
		w.Fatalf("%s is answered %s, want %d", name, answer.Status, r.Status)
	}
	if want := r.Headers["Accept"]; want != "" && s.content != want {
		w.Errorf("%s is answered as %s, want %s", name, s.content, want)
	}
	return s
}

func (s *stream) close() {
	s.cancel()
	_ = s.answer.Body.Close() // only read
}

// next returns the next document that fits, and skips the others.
func (s *stream) next(what string, fits func(event map[string]any) bool) map[string]any {
	s.w.Helper()
	var seen []string
	for s.lines.Scan() {
		text := s.lines.Text()
		if s.content == "text/event-stream" {
			data, is := strings.CutPrefix(text, "data:")
			if !is {
				continue
			}
			text = data
		}
		if strings.TrimSpace(text) == "" {
			continue
		}
		var event map[string]any
		if err := json.Unmarshal([]byte(text), &event); err != nil {
			s.w.Fatalf("%s: %v: %s", s.of.Name, err, text)
		}
		if fits(event) {
			return event
		}
		seen = append(seen, text)
	}
	s.w.Fatalf("%s ends without %s (%v); there was %q", s.of.Name, what, s.lines.Err(), seen)
	return nil
}

// compareEvents reads the documented events in their order. Events of other objects,
// and further events of the same object, may stand between them.
func (s *stream) compareEvents() {
	s.w.Helper()
	c := comparison{varies: s.of.Varies, differs: s.of.Differs}
	for _, want := range s.of.Events {
		got := s.next("the documented event", func(event map[string]any) bool { return len(c.compare(any(want), any(event))) == 0 })
		for _, line := range c.compare(any(want), any(got)) {
			s.w.Errorf("%s: %s", s.of.Name, line)
		}
	}
}
