package rest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/gate"
	"github.com/musterd/muster/coordinator/service"
)

// logSilence is the time after which a reader of output gets a line without output: the
// reader knows that the coordinator lives.
const logSilence = 10 * time.Second

// jobLogs answers with the output of a job's members, one JSON document a line.
func (h *handler) jobLogs(c *call) (answer, error) {
	c.query.logs = &service.LogQuery{AllMembers: true}
	if status := c.parameters(service.LogParameters...); status != nil {
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
	logs, err := h.Service.JobLogs(c.ctx(), c.namespace, c.name, *c.query.logs)
	if err != nil {
		<-h.watches
		return answer{}, err
	}
	return answer{stream: func() int {
		defer func() { <-h.watches }()
		defer logs.Close()
		s := logAnswer{h: h, c: c, control: http.NewResponseController(c.w)}
		s.run(logs)
		return http.StatusOK
	}}, nil
}

// logAnswer writes output to its reader.
type logAnswer struct {
	h       *handler
	c       *call
	control *http.ResponseController
}

// logLine is a line of the answer: a piece of output (OUTPUT), a sign of life (BOOKMARK),
// the end of all output (END), or the refusal that ends the answer before (ERROR).
type logLine struct {
	Type   string `json:"type"`
	Object any    `json:"object,omitempty"`
}

// run writes until the output ends or the client goes away.
func (s *logAnswer) run(logs service.LogStream) {
	header := s.c.w.Header()
	header.Set("Content-Type", typeJSON)
	header.Set("Cache-Control", "no-store")
	s.c.w.WriteHeader(http.StatusOK)
	_ = s.control.Flush() // the client knows that the output has begun
	ctx := s.c.ctx()
	for {
		_ = s.control.SetWriteDeadline(time.Time{}) // a silent member is no fault; see watchStream
		piece, err := nextPiece(ctx, logs)
		line := logLine{"OUTPUT", piece}
		switch {
		case errors.Is(err, io.EOF):
			line = logLine{Type: "END"}
		case err != nil:
			status := s.last(ctx, err)
			if status == nil {
				return
			}
			line = logLine{"ERROR", status}
		case piece == nil:
			line = logLine{Type: "BOOKMARK"}
		}
		if s.write(line) != nil || err != nil {
			return
		}
	}
}

// nextPiece waits for a piece of output, nil where none comes for logSilence.
func nextPiece(ctx context.Context, logs service.LogStream) (*api.LogChunk, error) {
	limited, cancel := context.WithTimeout(ctx, logSilence)
	defer cancel()
	piece, err := logs.Next(limited)
	if err != nil && limited.Err() != nil && ctx.Err() == nil && !errors.Is(err, io.EOF) {
		return nil, nil
	}
	return piece, err
}

// last is the status of the line that ends the answer early, nil where nobody reads it.
func (s *logAnswer) last(ctx context.Context, err error) *api.Status {
	if service.Refused(ctx) == nil && ctx.Err() != nil {
		return nil
	}
	return s.h.statusOf(s.c.r, err)
}

func (s *logAnswer) write(line logLine) error {
	// A test recorder has no deadline to set, hence the ignored error.
	_ = s.control.SetWriteDeadline(time.Now().Add(watchWrite))
	text, err := json.Marshal(line)
	if err != nil {
		panic(err) // the lines' types can always be encoded
	}
	sending := s.h.Gate.Send(s.c.caller, "rest", "logs", int64(len(text)), func() { _ = s.control.SetWriteDeadline(time.Now()) })
	if _, err = s.c.w.Write(append(text, '\n')); err == nil {
		err = s.control.Flush()
	}
	if slow := sending.End(err); slow != nil {
		return slow
	}
	return err
}
