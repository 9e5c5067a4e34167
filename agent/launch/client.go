package launch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/musterd/muster/agent/bounds"
	"github.com/musterd/muster/agent/run"
	"github.com/musterd/muster/agent/shim"
)

// Client asks the helper. Its methods may be called by any goroutine.
type Client struct {
	socket string
	has    bounds.Controllers
}

// hierarchy is where systemd mounts the unified hierarchy.
const hierarchy = "/sys/fs/cgroup"

// askTimeout bounds one request: systemd starts a program in it.
const askTimeout = 30 * time.Second

// Dial finds out what the helper at a socket can do. It may block.
func Dial(ctx context.Context, socket string) (*Client, error) {
	c := &Client{socket: socket}
	a, err := c.ask(ctx, request{Version: version}, nil)
	if err != nil {
		return nil, err
	}
	c.has = a.Controllers
	return c, nil
}

// Controllers are those that members get.
func (c *Client) Controllers() bounds.Controllers { return c.has }

// Place implements [run.Launcher].
func (c *Client) Place(s run.Start) (cgroup string, limits map[string]string) {
	if len(c.has) == 0 {
		return "", nil
	}
	return filepath.Join(hierarchy, Slice, UnitOf(s.Folder)), s.Bounds.Files(c.has)
}

// Launch implements [run.Launcher].
func (c *Client) Launch(ctx context.Context, s run.Start, lock *os.File) (pid int, begun <-chan struct{}, err error) {
	trace, err := os.OpenFile(filepath.Join(string(s.Folder), "trace"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return 0, nil, err
	}
	defer trace.Close()
	reader, writer, err := os.Pipe()
	if err != nil {
		return 0, nil, err
	}
	defer writer.Close()
	r := request{Version: version, Folder: string(s.Folder), Tenant: s.Tenant, Bounds: s.Bounds}
	if _, err := c.ask(ctx, r, []*os.File{lock, writer, trace}); err != nil {
		reader.Close()
		return 0, nil, err
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_, _ = reader.Read(make([]byte, 1)) // nothing is ever written
		reader.Close()
	}()
	return 0, closed, nil
}

// Run runs a script of the host around a start, and waits for its end.
func (c *Client) Run(ctx context.Context, name string, f shim.Folder, env []string, limit time.Duration) error {
	_, err := c.ask(ctx, request{Version: version, Folder: string(f), Script: name, Env: env, LimitMillis: limit.Milliseconds()}, nil)
	return err
}

// Signal sends a signal to a process of a user of the operator's tables.
func (c *Client) Signal(ctx context.Context, p shim.Process, s syscall.Signal) error {
	_, err := c.ask(ctx, request{Version: version, Signal: &signal{Number: int(s), PID: p.PID, Start: p.Start}}, nil)
	return err
}

// ask sends one request. An error that wraps [run.ErrRefused] is the helper's last word.
func (c *Client) ask(ctx context.Context, r request, files []*os.File) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout+time.Duration(r.LimitMillis)*time.Millisecond)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unixpacket", c.socket)
	if err != nil {
		return answer{}, fmt.Errorf("the helper of systemd: %w", err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	data, err := json.Marshal(r)
	if err != nil {
		return answer{}, err
	}
	var descriptors []int
	for _, f := range files {
		descriptors = append(descriptors, int(f.Fd()))
	}
	var rights []byte
	if len(descriptors) > 0 {
		rights = unix.UnixRights(descriptors...)
	}
	socket, ok := conn.(*net.UnixConn)
	if !ok {
		return answer{}, fmt.Errorf("the helper of systemd: a connection of %T", conn)
	}
	if _, _, err := socket.WriteMsgUnix(data, rights, nil); err != nil {
		return answer{}, fmt.Errorf("the helper of systemd: %w", err)
	}
	buffer := make([]byte, maxMessage)
	n, err := socket.Read(buffer)
	if err != nil {
		return answer{}, fmt.Errorf("the helper of systemd has not answered: %w", err)
	}
	a, err := parseAnswer(buffer[:n])
	switch {
	case err != nil:
		return answer{}, fmt.Errorf("the helper of systemd: %w", err)
	case a.Refused != "":
		return answer{}, fmt.Errorf("%w: %s", run.ErrRefused, a.Refused)
	case a.Failed != "":
		return answer{}, errors.New(a.Failed)
	}
	return a, nil
}

// digest is a short hash for names.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}
