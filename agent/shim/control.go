package shim

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// request is one request to a shim: a stop with a grace, a signal, or a session.
type request struct {
	// Stop: SIGTERM now, and SIGKILL after GraceMillis. A later stop never makes the
	// grace longer.
	Stop        bool  `json:"stop,omitempty"`
	GraceMillis int64 `json:"graceMillis,omitempty"`
	// Signal is sent to the command's process group.
	Signal int `json:"signal,omitempty"`
	// Notice, of a stop: the signal of the spec's Notice comes before SIGTERM.
	Notice bool `json:"notice,omitempty"`
	// Exec opens a session: frames follow the answer in both directions.
	Exec *Exec `json:"exec,omitempty"`
}

// maxRequest bounds a request, in bytes: JSON may take six bytes for one of an argument.
// maxGrace bounds a grace.
const (
	maxRequest = 8 * MaxExecBytes
	maxGrace   = 365 * 24 * time.Hour
	// requestTimeout bounds one request and its answer.
	requestTimeout = 5 * time.Second
)

func parseRequest(data []byte) (request, error) {
	r, err := decode[request](data, maxRequest)
	switch {
	case err != nil:
		return request{}, fmt.Errorf("request: %w", err)
	case r.GraceMillis < 0 || r.GraceMillis > maxGrace.Milliseconds():
		return request{}, fmt.Errorf("request: graceMillis %d is outside 0..%d", r.GraceMillis, maxGrace.Milliseconds())
	case r.Signal < 0 || r.Signal > 64:
		return request{}, fmt.Errorf("request: signal %d is outside 1..64", r.Signal)
	case count(r.Stop, r.Signal != 0, r.Exec != nil) != 1:
		return request{}, errors.New("request: want one of stop, signal and exec")
	case r.Notice && !r.Stop:
		return request{}, errors.New("request: notice is of a stop alone")
	}
	if r.Exec != nil {
		if err := r.Exec.Check(); err != nil {
			return request{}, fmt.Errorf("request: exec: %w", err)
		}
	}
	return r, nil
}

func count(all ...bool) (n int) {
	for _, is := range all {
		if is {
			n++
		}
	}
	return n
}

// Stop asks the folder's shim to end the command: SIGTERM now, SIGKILL after the
// grace. It may be repeated; a later stop may shorten the grace.
func (f Folder) Stop(grace time.Duration) error {
	return f.ask(request{Stop: true, GraceMillis: min(max(grace, 0), maxGrace).Milliseconds()})
}

// Evict is Stop for a command whose spec has a Notice: the command gets the signal of the
// Notice now, unless it had the signal before, and SIGTERM later, see [Notice].
func (f Folder) Evict(grace time.Duration) error {
	return f.ask(request{Stop: true, GraceMillis: min(max(grace, 0), maxGrace).Milliseconds(), Notice: true})
}

// Signal sends a signal to the command's process group.
func (f Folder) Signal(s syscall.Signal) error { return f.ask(request{Signal: int(s)}) }

// The answers to a request. Any other is an error, for people.
const (
	answerOK    = "ok\n"
	answerEnded = "ended"
	answerMany  = "many"
	answerHeld  = "held"
	answerDeaf  = "deaf"
)

// Why a shim opens no session.
var (
	ErrEnded    = errors.New("the command of the member has ended")
	ErrSessions = fmt.Errorf("%d sessions are open in the member", MaxSessions)
	ErrOldShim  = errors.New("the supervisor of the member is of an older version, which opens no such session: start the job anew")
	// ErrInputHeld: another session sends the input of the member's own command.
	ErrInputHeld = errors.New("another session has the standard input of the command")
	// ErrNoInput: the member's own command takes no input, or its input has ended.
	ErrNoInput = errors.New("the command has no standard input, or its input has ended")
)

// Exec opens a session. The frames on the connection are in the order of [FrameKind]; the
// session, and with it a further command, ends with the connection, which the caller closes.
// The error wraps ErrEnded, ErrSessions, ErrInputHeld, ErrNoInput or ErrOldShim where that
// is the reason.
func (f Folder) Exec(e Exec) (net.Conn, error) {
	if err := e.Check(); err != nil {
		return nil, fmt.Errorf("exec: %w", err)
	}
	c, text, err := f.open(request{Exec: &e})
	if err != nil {
		return nil, err
	}
	switch {
	case text == answerOK:
		if err = c.SetDeadline(time.Time{}); err == nil {
			return c, nil
		}
	case text == answerEnded+"\n":
		err = fmt.Errorf("%s: %w", f, ErrEnded)
	case text == answerMany+"\n":
		err = fmt.Errorf("%s: %w", f, ErrSessions)
	case text == answerHeld+"\n":
		err = fmt.Errorf("%s: %w", f, ErrInputHeld)
	case text == answerDeaf+"\n":
		err = fmt.Errorf("%s: %w", f, ErrNoInput)
	case strings.Contains(text, `unknown field "exec"`), strings.Contains(text, `unknown field "attach"`), strings.Contains(text, "more than 4096 bytes"):
		err = fmt.Errorf("%s: %w", f, ErrOldShim)
	default:
		err = fmt.Errorf("%s: the shim has answered %q", f, text)
	}
	c.Close()
	return nil, err
}

// ask sends a request and waits for the shim's answer.
func (f Folder) ask(r request) error {
	c, text, err := f.open(r)
	if err != nil {
		return err
	}
	c.Close()
	if text != answerOK {
		return fmt.Errorf("%s: the shim has answered %q", f, text)
	}
	return nil
}

// open sends a request and reads the line of the answer. The path of a socket is
// bounded to 107 bytes, so the folder is named by its descriptor.
func (f Folder) open(r request) (c net.Conn, answer string, err error) {
	dir, err := os.Open(string(f))
	if err != nil {
		return nil, "", err
	}
	defer dir.Close()
	if c, err = net.DialTimeout("unix", "/proc/self/fd/"+strconv.Itoa(int(dir.Fd()))+"/"+socketFile, requestTimeout); err != nil {
		return nil, "", err
	}
	if answer, err = exchange(c, r); err != nil {
		c.Close()
		return nil, "", fmt.Errorf("%s: the shim has not answered: %w", f, err)
	}
	return c, answer, nil
}

// exchange sends a request and reads the line of its answer, and nothing behind it.
func exchange(c net.Conn, r request) (string, error) {
	if err := c.SetDeadline(time.Now().Add(requestTimeout)); err != nil {
		return "", err
	}
	data, err := json.Marshal(r)
	if err != nil {
		return "", err
	}
	if _, err := c.Write(append(data, '\n')); err != nil {
		return "", err
	}
	var line []byte
	for one := make([]byte, 1); len(line) < maxAnswer; {
		if _, err := c.Read(one); err != nil {
			return string(line), err
		}
		if line = append(line, one[0]); one[0] == '\n' {
			break
		}
	}
	return string(line), nil
}

// maxAnswer bounds the line of an answer, in bytes.
const maxAnswer = 1024

// serve takes requests until the listener closes.
func serve(l net.Listener, requests chan<- request, further *sessions) {
	var silent Silent
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go take(c, silent.Enter(c), requests, further)
	}
}

// take takes one request.
func take(c net.Conn, leave func(), requests chan<- request, further *sessions) {
	r, err := receive(c)
	leave()
	answer := answerOK
	switch {
	case err != nil:
		answer = err.Error() + "\n"
	case r.Exec != nil:
		further.serve(c, *r.Exec)
		return
	default:
		requests <- r
	}
	_, _ = c.Write([]byte(answer))
	c.Close()
}

func receive(c net.Conn) (request, error) {
	if err := c.SetDeadline(time.Now().Add(requestTimeout)); err != nil {
		return request{}, err
	}
	var text []byte
	for piece := make([]byte, 4096); len(text) < maxRequest; {
		n, err := c.Read(piece)
		text = append(text, piece[:n]...)
		if len(text) > 0 && text[len(text)-1] == '\n' {
			return parseRequest(text)
		}
		if err != nil {
			return request{}, fmt.Errorf("request: %w", err)
		}
	}
	return request{}, fmt.Errorf("request: more than %d bytes", maxRequest)
}
