package sdk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/websocket"
)

// ExecOptions are a session in a member of a job: a further command, or with Attach the
// member's own command.
type ExecOptions struct {
	// Member is the index of the member in its job.
	Member int
	// Attach: the session is with the member's own command, which outlives the session. It
	// has neither Command nor TTY nor Term, and the whole output comes as standard output.
	// Input needs stdin of the job's template, and one session has the input at a time. A
	// command with a terminal gets the size Window.
	Attach bool
	// From, with Attach, is the offset in the output at which the session begins, or the
	// next one that is kept; nil is the end of the present output.
	From *int64
	// Command is the command with its arguments, without a shell.
	Command []string
	// TTY: the command has a terminal of the size Window and of the kind Term.
	TTY    bool
	Window api.ExecWindow
	Term   string
	// Input: the caller writes the standard input, and ends it. Otherwise there is none.
	Input bool
}

const (
	// execPing is the time between two signs of life to the server, execSilence that after
	// which a server without one is gone.
	execPing    = 10 * time.Second
	execSilence = 30 * time.Second
	// execWindow bounds the input that the command has not taken yet, execPiece a message,
	// in bytes.
	execWindow = 64 << 10
	execPiece  = 32 << 10
	// execOpen bounds the opening of a session.
	execOpen = 20 * time.Second
)

// ExecSession is a session with a command that runs. Its methods may be called by several
// goroutines; Run by one.
type ExecSession struct {
	ws *websocket.Conn
	// silence closes ws where nothing has arrived for execSilence while Run waits.
	silence *time.Timer
	close   func()
	attach  bool

	mu     sync.Mutex
	more   *sync.Cond // under the mutex mu
	credit int        // bytes of input that may be sent
	over   bool
}

// Exec runs a further command in a member of a job, with the user, the limits and the
// environment of the member's own command, or attaches to the latter. The session ends with
// ctx, and a further command ends with the session. A refusal is an *api.Status.
func (j Jobs) Exec(ctx context.Context, name string, o ExecOptions) (*ExecSession, error) {
	query := url.Values{"command": o.Command, "member": {strconv.Itoa(o.Member)}, "tty": {strconv.FormatBool(o.TTY)}, "input": {strconv.FormatBool(o.Input)}}
	if o.Attach {
		query.Set("attach", "true")
	}
	if o.From != nil {
		query.Set("from", strconv.FormatInt(*o.From, 10))
	}
	if o.TTY || o.Attach {
		query.Set("rows", strconv.Itoa(int(o.Window.Rows)))
		query.Set("columns", strconv.Itoa(int(o.Window.Columns)))
	}
	if o.Term != "" {
		query.Set("term", o.Term)
	}
	ws, err := j.client.dial(ctx, j.at(name, "/exec")+"?"+query.Encode())
	if err != nil {
		return nil, err
	}
	s := &ExecSession{ws: ws, attach: o.Attach, credit: execWindow, close: sync.OnceFunc(func() { _ = ws.Close() })}
	s.silence = time.AfterFunc(execSilence, s.close)
	s.more = sync.NewCond(&s.mu)
	ws.Seen = func() { s.silence.Reset(execSilence) }
	go s.ping(context.AfterFunc(ctx, func() { _ = s.Close() }))
	return s, nil
}

// dial opens a WebSocket at the first server that takes it. A server that was reached and
// has not refused may have begun the command, so no other is asked then.
func (c *Client) dial(ctx context.Context, path string) (*websocket.Conn, error) {
	client := c.http
	client.Timeout = 0 // a session lasts
	first := int(c.last.Load())
	var last error
	for i := range c.endpoints {
		at := (first + i) % len(c.endpoints)
		ws, err := c.dialAt(ctx, &client, c.endpoints[at]+path)
		var status *api.Status
		var dialed *net.OpError
		switch {
		case err == nil:
			c.last.Store(int32(at))
			return ws, nil
		case errors.As(err, &status) && (status.Code == http.StatusServiceUnavailable || status.Code == http.StatusBadGateway):
		case errors.As(err, &dialed) && dialed.Op == "dial" && ctx.Err() == nil:
		default:
			return nil, err
		}
		last = err
	}
	return nil, last
}

// dialAt asks one server; a refusal is an *api.Status.
func (c *Client) dialAt(ctx context.Context, client *http.Client, target string) (*websocket.Conn, error) {
	opening, opened := context.WithCancel(ctx)
	defer opened()
	late := time.AfterFunc(execOpen, opened)
	defer late.Stop()
	r, err := http.NewRequestWithContext(opening, http.MethodGet, target, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json")
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	ws, answer, err := websocket.Ask(client, r, api.ExecProtocol, 1+execPiece)
	if err != nil || ws != nil {
		return ws, err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	if err != nil {
		return nil, &url.Error{Op: http.MethodGet, URL: target, Err: err}
	}
	return nil, statusOf(answer, body)
}

// ping tells the server that the client lives, also while nobody reads the output.
func (s *ExecSession) ping(end func() bool) {
	defer end()
	every := time.NewTicker(execPing)
	defer every.Stop()
	for range every.C {
		if s.ws.Ping() != nil {
			return // the session has ended, or Run finds that the server has gone
		}
	}
}

// send sends a message.
func (s *ExecSession) send(channel byte, data []byte) error { return s.ws.Write([]byte{channel}, data) }

// Write sends standard input, and waits until the command takes it.
func (s *ExecSession) Write(p []byte) (n int, err error) {
	for len(p) > 0 {
		may := s.take(min(len(p), execPiece))
		if may == 0 {
			return n, io.ErrClosedPipe
		}
		if err := s.send(api.ExecInput, p[:may]); err != nil {
			return n, err
		}
		n, p = n+may, p[may:]
	}
	return n, nil
}

// take waits until a part of n bytes may be sent, and takes their credit; 0 where the
// session is over.
func (s *ExecSession) take(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.credit == 0 && !s.over {
		s.more.Wait()
	}
	if s.over {
		return 0
	}
	n = min(n, s.credit)
	s.credit -= n
	return n
}

// CloseInput ends the standard input. A command with a terminal gets Ctrl-D.
func (s *ExecSession) CloseInput() error { return s.send(api.ExecInputEnd, []byte{api.ExecInput}) }

// Resize tells the command of the size of the terminal.
func (s *ExecSession) Resize(w api.ExecWindow) error {
	text, err := json.Marshal(w)
	if err != nil {
		return err
	}
	return s.send(api.ExecResize, text)
}

// Signal sends a signal, by its number, to the process group of the command.
func (s *ExecSession) Signal(number int) error {
	return s.send(api.ExecSignal, strconv.AppendInt(nil, int64(number), 10))
}

// Run hands the output on until the command has ended, and returns how. An *api.Status says
// why a session has ended before: a further command is ended then.
func (s *ExecSession) Run(stdout, stderr io.Writer) (*api.ExecExit, error) {
	defer s.Close()
	for {
		s.silence.Reset(execSilence)
		message, err := s.ws.Read()
		s.silence.Stop() // while stdout or stderr takes its time
		if err != nil {
			fate := "is ended"
			if s.attach {
				fate = "goes on"
			}
			return nil, fmt.Errorf("the connection of the session is lost, and its command %s: %w", fate, err)
		}
		if len(message) == 0 {
			return nil, errors.New("exec: an empty message")
		}
		channel, data := message[0], message[1:]
		switch channel {
		case api.ExecOutput:
			_, err = stdout.Write(data)
		case api.ExecError:
			_, err = stderr.Write(data)
		case api.ExecTaken:
			err = s.taken(data)
		case api.ExecEnd:
			return endOf(data)
		} // others are of a newer server
		if err != nil {
			return nil, fmt.Errorf("exec: %w", err)
		}
	}
}

// taken gives credit back.
func (s *ExecSession) taken(data []byte) error {
	n, err := strconv.Atoi(string(data))
	if err != nil || n < 1 || n > execWindow {
		return fmt.Errorf("%.16q bytes of input are taken: want 1 to %d", data, execWindow)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.credit = min(s.credit+n, execWindow)
	s.more.Broadcast()
	return nil
}

// endOf reads the last message.
func endOf(data []byte) (*api.ExecExit, error) {
	var kind struct {
		Kind string `json:"kind"`
	}
	if err := json.Unmarshal(data, &kind); err != nil {
		return nil, fmt.Errorf("exec: the end of the session cannot be read: %w", err)
	}
	if kind.Kind != api.KindExecExit {
		status := new(api.Status)
		if err := json.NewDecoder(bytes.NewReader(data)).Decode(status); err != nil {
			return nil, fmt.Errorf("exec: the end of the session cannot be read: %w", err)
		}
		return nil, status
	}
	exit := new(api.ExecExit)
	if err := json.Unmarshal(data, exit); err != nil {
		return nil, fmt.Errorf("exec: the exit cannot be read: %w", err)
	}
	return exit, nil
}

// Close ends the session, and a further command that has not ended.
func (s *ExecSession) Close() error {
	s.silence.Stop()
	s.close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	s.more.Broadcast()
	return nil
}
