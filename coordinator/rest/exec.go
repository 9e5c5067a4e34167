package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/gate"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/websocket"
)

const (
	// execPing is the time between two signs of life to a client of a session, execSilence
	// that after which a client that sends nothing, also no answer to these, is gone.
	execPing    = 10 * time.Second
	execSilence = 30 * time.Second
	// execLast bounds the last message of a session.
	execLast = 2 * time.Second
)

// jobExec opens a session in a member of a job, over a WebSocket.
func (h *handler) jobExec(c *call) (answer, error) {
	q, status := service.ExecQueryOf(c.r.URL.RawQuery)
	if status != nil {
		return answer{}, status
	}
	if refused := websocket.Check(c.r, api.ExecProtocol); refused != nil {
		if refused.Code == http.StatusUpgradeRequired {
			c.w.Header().Set("Upgrade", "websocket")
			refused.Text += ", or Jobs/Exec of gRPC"
		}
		return answer{}, api.Errorf(refused.Code, "exec: %s", refused.Text)
	}
	if status := h.bounded(c, gate.Sessions, 1); status != nil {
		return answer{}, status
	}
	session, err := h.Service.JobExec(c.ctx(), c.namespace, c.name, q)
	if err != nil {
		return answer{}, err
	}
	return answer{stream: func() int {
		defer session.Close()
		ws, raw, err := websocket.Accept(c.w, c.r, api.ExecProtocol, 1+grant.MaxExecPiece)
		if err != nil { // nobody reads an answer
			h.Logger.Debug("answer_not_taken", "error", err)
			return http.StatusBadRequest
		}
		defer ws.Close()
		s := execAnswer{c: c, ws: ws, raw: raw, session: session, query: &q}
		s.run()
		return http.StatusSwitchingProtocols
	}}, nil
}

// execAnswer is a session by its WebSocket.
type execAnswer struct {
	c       *call
	ws      *websocket.Conn
	raw     net.Conn // of ws
	session grant.ExecSession
	query   *service.ExecQuery
}

// run hands messages on until the command ends, the client goes away, or may not go on.
func (s *execAnswer) run() {
	ctx, cancel := context.WithCancelCause(s.c.ctx())
	defer cancel(nil)
	// The end of the session ends a write that waits for the client, and a Receive.
	defer context.AfterFunc(ctx, func() {
		s.session.Close()
		_ = s.raw.SetWriteDeadline(time.Now().Add(execLast))
	})()
	var helpers sync.WaitGroup
	defer helpers.Wait()
	defer s.ws.Close() // ends read
	helpers.Go(func() { cancel(s.read()) })
	helpers.Go(func() { s.ping(ctx) })
	for {
		out, err := s.session.Receive()
		switch {
		case err != nil:
			s.end(s.lost(ctx, err))
			return
		case out.Exit != nil:
			e := out.Exit
			s.end(api.ExecExit{Kind: api.KindExecExit, Code: e.Code, Signal: e.Signal, Reason: e.Reason, Message: e.Message})
			return
		case out.Taken > 0:
			err = s.write(api.ExecTaken, strconv.AppendInt(nil, int64(out.Taken), 10))
		case out.Error:
			err = s.write(api.ExecError, out.Data)
		default:
			err = s.write(api.ExecOutput, out.Data)
		}
		if err != nil {
			return
		}
	}
}

// lost is the status that ends a session before its command.
func (s *execAnswer) lost(ctx context.Context, err error) *api.Status {
	if refused := service.Refused(ctx); refused != nil {
		return refused
	}
	if why := context.Cause(ctx); why != nil {
		err = why
	}
	return s.query.Lost(err)
}

func (s *execAnswer) write(channel byte, data []byte) error { return s.ws.Write([]byte{channel}, data) }

// end sends the last message.
func (s *execAnswer) end(last any) {
	text, err := json.Marshal(last)
	if err != nil {
		panic(err) // both kinds of a last message can always be encoded
	}
	_ = s.raw.SetWriteDeadline(time.Now().Add(execLast))
	if s.write(api.ExecEnd, text) == nil {
		_ = s.ws.End(websocket.Normal)
	}
}

// ping asks a client that only reads whether it lives.
func (s *execAnswer) ping(ctx context.Context) {
	every := time.NewTicker(execPing)
	defer every.Stop()
	for {
		select {
		case <-every.C:
			_ = s.ws.Ping() // behind a message that the client does not take it waits, too
		case <-ctx.Done():
			return
		}
	}
}

// read hands the client's messages on until the client goes away or breaks a rule; the
// error says which.
func (s *execAnswer) read() error {
	s.ws.Seen = func() { _ = s.raw.SetReadDeadline(time.Now().Add(execSilence)) }
	s.ws.Seen()
	for {
		data, err := s.ws.Read()
		if err != nil {
			return fmt.Errorf("the client has gone: %w", err)
		}
		in, err := execInput(data)
		if err != nil {
			return err
		}
		_ = s.session.Send(in) // a command that has ended takes none: Receive has its end
	}
}

// execInput reads a message of a client.
func execInput(data []byte) (in grant.ExecInput, err error) {
	if len(data) == 0 {
		return in, errors.New("an empty message: want its channel first")
	}
	channel, data := data[0], data[1:]
	switch channel {
	case api.ExecInput:
		return grant.ExecInput{Data: data}, nil
	case api.ExecInputEnd:
		if !bytes.Equal(data, []byte{api.ExecInput}) {
			return in, fmt.Errorf("channel %d: %v: want the number of the input's channel, %d", channel, data[:min(len(data), 4)], api.ExecInput)
		}
		return grant.ExecInput{End: true}, nil
	case api.ExecResize:
		var w api.ExecWindow
		d := json.NewDecoder(bytes.NewReader(data))
		d.DisallowUnknownFields()
		if err := d.Decode(&w); err != nil {
			return in, fmt.Errorf("channel %d: %w", channel, err)
		}
		if w == (api.ExecWindow{}) {
			return in, fmt.Errorf("channel %d: a window without a size", channel)
		}
		return grant.ExecInput{Window: grant.Window{Rows: w.Rows, Columns: w.Columns}}, nil
	case api.ExecSignal:
		n, err := strconv.Atoi(string(data))
		if err != nil || n < 1 || n > grant.MaxSignal {
			return in, fmt.Errorf("channel %d: %.16q: want the number of a signal, 1 to %d", channel, data, grant.MaxSignal)
		}
		return grant.ExecInput{Signal: n}, nil
	}
	return in, fmt.Errorf("channel %d is not known: want %d, %d, %d or %d", channel, api.ExecInput, api.ExecResize, api.ExecSignal, api.ExecInputEnd)
}
