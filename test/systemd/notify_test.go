package systemd_test

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/musterd/muster/test/programs"
)

// patience bounds every wait; nothing here is timed.
const patience = 60 * time.Second

func TestDaemonsTalkToSystemd(t *testing.T) {
	token := file(t, "token", "0123456789abcdef0123456789abcdef")
	admin := file(t, "admin-token", "fedcba9876543210fedcba9876543210")
	status := map[string]string{
		"muster-agent":       "STATUS=takes no work: no coordinator is known: ",
		"muster-coordinator": "STATUS=leads; no node has registered: ",
	}
	for name, args := range map[string][]string{
		"muster-coordinator": {
			"--id", "c1", "--rest-listen", "127.0.0.1:0", "--grpc-listen", "127.0.0.1:0", "--serf-bind", "127.0.0.1:0",
			"--capacity-bind", "127.0.0.1:0", "--token-file", token, "--admin-token-file", admin,
		},
		"muster-agent": {
			"--node-id", "n1", "--listen", "127.0.0.1:0", "--metrics-listen", "", "--serf-bind", "127.0.0.1:0",
			"--capacity-bind", "127.0.0.1:0", "--serf-rpc-addr", "", "--token-file", token,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := start(t, build(t, name), append(args, "--data-dir", t.TempDir()))
			d.expect(t, "READY=1")
			d.expect(t, "WATCHDOG=1")
			d.expect(t, "WATCHDOG=1") // it goes on
			d.expectStatus(t, status[name])
			if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			d.expect(t, "STOPPING=1")
			select {
			case err := <-d.exited:
				if err != nil {
					t.Errorf("exit after SIGTERM: %v\n%s", err, d.output())
				}
			case <-time.After(patience):
				t.Errorf("still running %v after SIGTERM\n%s", patience, d.output())
			}
		})
	}
}

// daemon is a started program and the socket that it notifies.
type daemon struct {
	cmd    *exec.Cmd
	socket *net.UnixConn
	log    string // file with its stdout and stderr
	exited chan error
	status string // the newest status line that expect has read
}

// start runs a program as systemd would, with a watchdog of half a second.
func start(t *testing.T, program string, args []string) *daemon {
	t.Helper()
	dir, err := os.MkdirTemp("", "n") // t.TempDir is too long for a socket's name
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	address := &net.UnixAddr{Name: filepath.Join(dir, "s"), Net: "unixgram"}
	socket, err := net.ListenUnixgram(address.Net, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { socket.Close() })
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+address.Name, "WATCHDOG_USEC=500000")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	d := &daemon{cmd: cmd, socket: socket, log: log.Name(), exited: make(chan error, 1)}
	go func() {
		err := cmd.Wait()
		// Behind all that the program has sent, so that a wait ends with it.
		if last, dialErr := net.DialUnix(address.Net, nil, address); dialErr == nil {
			last.Write([]byte("EXITED"))
			last.Close()
		}
		d.exited <- err
	}()
	t.Cleanup(func() { cmd.Process.Kill() })
	return d
}

// expect reads messages until the wanted one; the others must be of the watchdog or
// of the status line.
func (d *daemon) expect(t *testing.T, want string) {
	t.Helper()
	if err := d.socket.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	for buffer := make([]byte, 4096); ; {
		n, err := d.socket.Read(buffer)
		if err != nil {
			t.Fatalf("waiting for %s: %v\n%s", want, err, d.output())
		}
		switch got := string(bytes.TrimSpace(buffer[:n])); got {
		case want:
			return
		case "WATCHDOG=1":
		default:
			if strings.HasPrefix(got, "STATUS=") {
				d.status = got
				continue
			}
			t.Fatalf("got %q while waiting for %s\n%s", got, want, d.output())
		}
	}
}

// expectStatus reads messages until a status line begins as wanted.
func (d *daemon) expectStatus(t *testing.T, want string) {
	t.Helper()
	if err := d.socket.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(d.status, want) { // it is sent once
		return
	}
	for buffer := make([]byte, 4096); ; {
		n, err := d.socket.Read(buffer)
		if err != nil {
			t.Fatalf("waiting for %s: %v\n%s", want, err, d.output())
		}
		if strings.HasPrefix(string(buffer[:n]), want) {
			return
		}
	}
}

// output is what the program has printed.
func (d *daemon) output() string {
	data, err := os.ReadFile(d.log)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(data))
}

// build compiles a program of this module.
func build(t *testing.T, name string) string {
	t.Helper()
	dir := t.TempDir()
	if err := programs.Build(dir, name); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, name)
}

// file puts a file with mode 0600 into a fresh folder.
func file(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
