package launch_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	systemd "github.com/coreos/go-systemd/v22/dbus"
	"github.com/godbus/dbus/v5"
)

// fakeSystemd serves a private D-Bus as systemd does at /run/systemd/private: it takes
// StartTransientUnit, starts the program of ExecStart with the passed files, and tells the
// result of the job. It limits nothing.
type fakeSystemd struct {
	t    *testing.T
	path string

	mu     sync.Mutex
	conns  []*net.UnixConn
	units  map[string]map[string]dbus.Variant // by name: the properties
	result string                             // of all jobs, "done" where it is empty
	jobs   int
}

func newFakeSystemd(t *testing.T) *fakeSystemd {
	f := &fakeSystemd{t: t, path: filepath.Join(t.TempDir(), "private"), units: map[string]map[string]dbus.Variant{}}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: f.path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	t.Cleanup(func() { l.Close(); f.closeAll(); serving.Wait() })
	serving.Go(func() {
		for {
			c, err := l.AcceptUnix()
			if err != nil {
				return
			}
			serving.Go(func() { f.serve(c) })
		}
	})
	return f
}

func (f *fakeSystemd) closeAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.conns {
		c.Close()
	}
}

// connect is what the real one's socket gives.
func (f *fakeSystemd) connect(ctx context.Context) (*systemd.Conn, error) {
	return systemd.NewConnection(func() (*dbus.Conn, error) {
		c, err := dbus.Dial("unix:path="+f.path, dbus.WithContext(ctx))
		if err != nil {
			return nil, err
		}
		return c, c.Auth([]dbus.Auth{dbus.AuthExternal(strconv.Itoa(os.Getuid()))})
	})
}

func (f *fakeSystemd) properties(unit string) map[string]dbus.Variant {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.units[unit]
}

// reader keeps the files that come along.
type reader struct {
	conn *net.UnixConn
	fds  []int
}

func (r *reader) Read(p []byte) (int, error) {
	oob := make([]byte, 4096)
	n, m, _, _, err := r.conn.ReadMsgUnix(p, oob)
	messages, _ := syscall.ParseSocketControlMessage(oob[:m])
	for i := range messages {
		if fds, err := syscall.ParseUnixRights(&messages[i]); err == nil {
			r.fds = append(r.fds, fds...)
		}
	}
	return max(n, 0), err
}

func (f *fakeSystemd) serve(c *net.UnixConn) {
	defer c.Close()
	in := &reader{conn: c}
	lines := bufio.NewReaderSize(in, 1<<20)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		switch line = strings.Trim(line, "\x00\r\n"); {
		case strings.HasPrefix(line, "AUTH EXTERNAL"):
			fmt.Fprint(c, "OK 0123456789abcdef0123456789abcdef\r\n")
		case line == "AUTH":
			fmt.Fprint(c, "REJECTED EXTERNAL\r\n")
		case line == "NEGOTIATE_UNIX_FD":
			fmt.Fprint(c, "AGREE_UNIX_FD\r\n")
		case line == "BEGIN":
			f.mu.Lock()
			f.conns = append(f.conns, c)
			f.mu.Unlock()
			f.calls(c, in, lines)
			return
		}
	}
}

func (f *fakeSystemd) calls(c *net.UnixConn, in *reader, lines *bufio.Reader) {
	for {
		// The files of a message come with its first byte.
		if _, err := lines.Peek(16); err != nil {
			return
		}
		m, err := dbus.DecodeMessageWithFDs(lines, in.fds)
		if err != nil {
			return
		}
		if member, _ := m.Headers[dbus.FieldMember].Value().(string); member == "StartTransientUnit" {
			f.start(c, m)
			in.fds = nil
		} else { // AddMatch, as of a bus
			f.send(c, &dbus.Message{Type: dbus.TypeError, Headers: map[dbus.HeaderField]dbus.Variant{
				dbus.FieldReplySerial: dbus.MakeVariant(m.Serial()), dbus.FieldErrorName: dbus.MakeVariant("org.freedesktop.DBus.Error.UnknownMethod"),
			}})
		}
	}
}

func (f *fakeSystemd) start(c *net.UnixConn, m *dbus.Message) {
	name, _ := m.Body[0].(string)
	list, _ := m.Body[2].([][]any)
	unit := map[string]dbus.Variant{}
	for _, p := range list {
		unit[p[0].(string)] = p[1].(dbus.Variant)
	}
	f.mu.Lock()
	f.jobs++
	f.units[name] = unit
	path, result := dbus.ObjectPath(fmt.Sprintf("/org/freedesktop/systemd1/job/%d", f.jobs)), f.result
	f.mu.Unlock()
	if result == "" {
		result = "done"
		start := run
		if unit["Type"].Value() == "oneshot" {
			start = runOnce
		}
		if err := start(unit); err != nil {
			result = "failed"
		}
	}
	reply := &dbus.Message{Type: dbus.TypeMethodReply, Headers: map[dbus.HeaderField]dbus.Variant{
		dbus.FieldReplySerial: dbus.MakeVariant(m.Serial()), dbus.FieldSignature: dbus.MakeVariant(dbus.SignatureOf(path)),
	}, Body: []any{path}}
	f.send(c, reply)
	body := []any{uint32(f.jobs), path, name, result}
	removed := &dbus.Message{Type: dbus.TypeSignal, Headers: map[dbus.HeaderField]dbus.Variant{
		dbus.FieldPath: dbus.MakeVariant(dbus.ObjectPath("/org/freedesktop/systemd1")), dbus.FieldInterface: dbus.MakeVariant("org.freedesktop.systemd1.Manager"),
		dbus.FieldMember: dbus.MakeVariant("JobRemoved"), dbus.FieldSignature: dbus.MakeVariant(dbus.SignatureOf(body...)),
	}, Body: body}
	f.mu.Lock()
	conns := append([]*net.UnixConn(nil), f.conns...)
	f.mu.Unlock()
	for _, other := range conns {
		f.send(other, removed)
	}
}

func (f *fakeSystemd) send(c *net.UnixConn, m *dbus.Message) {
	f.mu.Lock()
	defer f.mu.Unlock()
	// A connection may be closed by its client meanwhile.
	_ = m.EncodeTo(&serialed{conn: c}, binary.LittleEndian)
}

// serialed gives each message the serial number 1: the library sets one for clients alone.
type serialed struct{ conn *net.UnixConn }

func (s *serialed) Write(p []byte) (int, error) {
	if len(p) >= 12 && p[0] == 'l' {
		binary.LittleEndian.PutUint32(p[8:], 1)
	}
	return s.conn.Write(p)
}

// run starts the program of a unit with its files, as this user.
func run(unit map[string]dbus.Variant) error {
	commands, _ := unit["ExecStart"].Value().([][]any)
	args, _ := commands[0][1].([]string)
	c := exec.Command(args[0], args[1:]...)
	c.Env, _ = unit["Environment"].Value().([]string)
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var files []*os.File
	for _, name := range []string{"StandardInputFileDescriptor", "StandardOutputFileDescriptor", "StandardErrorFileDescriptor"} {
		fd, ok := unit[name].Value().(dbus.UnixFD)
		if !ok {
			return fmt.Errorf("%s is missing", name)
		}
		files = append(files, os.NewFile(uintptr(fd), name))
	}
	c.Stdin, c.Stdout, c.Stderr = files[0], files[1], files[2]
	err := c.Start()
	for _, file := range files {
		file.Close()
	}
	if err == nil {
		go func() { _ = c.Wait() }() // as PID 1 does
	}
	return err
}

// runOnce runs the program of a unit to its end.
func runOnce(unit map[string]dbus.Variant) error {
	commands, _ := unit["ExecStart"].Value().([][]any)
	args, _ := commands[0][1].([]string)
	c := exec.Command(args[0], args[1:]...)
	c.Env, _ = unit["Environment"].Value().([]string)
	return c.Run()
}
