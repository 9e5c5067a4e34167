package shim

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"
	"time"
)

// request is one request to a shim: a stop with a grace, or a signal.
type request struct {
	// Stop: SIGTERM now, and SIGKILL after GraceMillis. A later stop never makes the
	// grace longer.
	Stop        bool  `json:"stop,omitempty"`
	GraceMillis int64 `json:"graceMillis,omitempty"`
	// Signal is sent to the command's process group.
	Signal int `json:"signal,omitempty"`
	// Notice, of a stop: the signal of the spec's Notice comes before SIGTERM.
	Notice bool `json:"notice,omitempty"`
}

// maxRequest bounds a request, in bytes; maxGrace bounds a grace.
const (
	maxRequest = 4096
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
	case r.Stop == (r.Signal != 0):
		return request{}, errors.New("request: want either stop or signal")
	case r.Notice && !r.Stop:
		return request{}, errors.New("request: notice is of a stop alone")
	}
	return r, nil
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

// ask sends a request and waits for the shim's answer. The path of a socket is
// bounded to 107 bytes, so the folder is named by its descriptor.
func (f Folder) ask(r request) error {
	dir, err := os.Open(string(f))
	if err != nil {
		return err
	}
	defer dir.Close()
	c, err := net.DialTimeout("unix", "/proc/self/fd/"+strconv.Itoa(int(dir.Fd()))+"/"+socketFile, requestTimeout)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(requestTimeout)); err != nil {
		return err
	}
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if _, err := c.Write(append(data, '\n')); err != nil {
		return err
	}
	answer := make([]byte, 256)
	n, err := c.Read(answer)
	if err != nil {
		return fmt.Errorf("%s: the shim has not answered: %w", f, err)
	}
	if text := string(answer[:n]); text != "ok\n" {
		return fmt.Errorf("%s: the shim has answered %q", f, text)
	}
	return nil
}

// serve takes requests until the listener closes, one at a time.
func serve(l net.Listener, requests chan<- request) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		answer := "ok\n"
		if r, err := receive(c); err != nil {
			answer = err.Error() + "\n"
		} else {
			requests <- r
		}
		_, _ = c.Write([]byte(answer))
		c.Close()
	}
}

func receive(c net.Conn) (request, error) {
	if err := c.SetDeadline(time.Now().Add(requestTimeout)); err != nil {
		return request{}, err
	}
	buffer := make([]byte, maxRequest)
	n := 0
	for n < len(buffer) {
		k, err := c.Read(buffer[n:])
		n += k
		if n > 0 && buffer[n-1] == '\n' {
			return parseRequest(buffer[:n])
		}
		if err != nil {
			return request{}, fmt.Errorf("request: %w", err)
		}
	}
	return request{}, fmt.Errorf("request: more than %d bytes", maxRequest)
}
