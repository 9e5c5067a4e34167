package etcdcluster

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

const (
	clientPort = "2379"
	peerPort   = "2380"
)

// member is one etcd process, or the place of one.
type member struct {
	name, host, dir string

	cmd    *exec.Cmd // nil while it does not run
	paused bool
	log    output
}

func (m *member) client() string { return net.JoinHostPort(m.host, clientPort) }
func (m *member) peer() string   { return net.JoinHostPort(m.host, peerPort) }

// launch starts a member; state is --initial-cluster-state, which counts only
// while its folder is empty.
func (c *Cluster) launch(i int, state string) {
	c.t.Helper()
	m := c.members[i]
	if m.cmd != nil {
		c.t.Fatalf("member %d runs already", i)
	}
	client, peer := c.scheme()+"://"+m.client(), c.scheme()+"://"+m.peer()
	args := []string{
		"--name", m.name, "--data-dir", m.dir, "--logger", "zap", "--log-outputs", "stderr", "--log-level", "warn",
		"--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
		"--initial-cluster", c.initial(), "--initial-cluster-state", state, "--initial-cluster-token", c.token,
		"--max-txn-ops", fmt.Sprint(c.o.MaxTxnOps),
		"--heartbeat-interval", fmt.Sprint(c.o.ElectionTimeout.Milliseconds() / 10), "--election-timeout", fmt.Sprint(c.o.ElectionTimeout.Milliseconds()),
	}
	if c.o.QuotaBytes != 0 {
		args = append(args, "--quota-backend-bytes", fmt.Sprint(c.o.QuotaBytes))
	}
	if c.o.AuthTokenTTL != 0 {
		args = append(args, "--auth-token-ttl", fmt.Sprint(int(c.o.AuthTokenTTL/time.Second)))
	}
	if c.ca != nil {
		cert, key := c.ca.member(c.t, m.name, m.host)
		args = append(args, "--client-cert-auth", "--trusted-ca-file", c.ca.File, "--cert-file", cert, "--key-file", key,
			"--peer-client-cert-auth", "--peer-trusted-ca-file", c.ca.File, "--peer-cert-file", cert, "--peer-key-file", key)
	}
	cmd := exec.Command(c.binary, append(args, c.o.Args...)...)
	cmd.Stdout, cmd.Stderr = &m.log, &m.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // should the test be killed
	if c.o.Prepare != nil {
		c.o.Prepare(i, cmd)
	}
	if err := cmd.Start(); err != nil {
		c.t.Fatalf("start member %d: %v", i, err)
	}
	m.cmd, m.paused = cmd, false
}

// end kills the process, whatever its state, and waits for it.
func (m *member) end() {
	if m.cmd == nil {
		return
	}
	_ = m.cmd.Process.Kill()
	_ = m.cmd.Wait()
	m.cmd, m.paused = nil, false
}

// stop asks the process to end and waits for it.
func (m *member) stop() error {
	if m.cmd == nil {
		return nil
	}
	if m.paused {
		return errors.New("it is paused")
	}
	if err := m.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	_ = m.cmd.Wait() // its exit status is the signal's
	m.cmd = nil
	return nil
}

// signal pauses or resumes the process.
func (m *member) signal(s syscall.Signal) error {
	if m.cmd == nil {
		return errors.New("it does not run")
	}
	m.paused = s == syscall.SIGSTOP
	return m.cmd.Process.Signal(s)
}

// stopped reports whether every thread of the process is stopped: SIGSTOP lets a
// thread finish the system call that it is in, such as the rename of a file.
func (m *member) stopped() (bool, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", m.cmd.Process.Pid))
	if err != nil || len(threads) == 0 {
		return false, fmt.Errorf("no threads of process %d in /proc (%v)", m.cmd.Process.Pid, err)
	}
	for _, path := range threads {
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // this thread has ended
		}
		if err != nil {
			return false, err
		}
		// The state is the field after the name, which is in brackets.
		_, rest, _ := bytes.Cut(text, []byte(") "))
		if !bytes.HasPrefix(rest, []byte("T")) {
			return false, nil
		}
	}
	return true, nil
}

func (m *member) wipe() error { return os.RemoveAll(m.dir) }

func (m *member) tail() string { return m.log.tail() }

// output keeps the end of what a process writes.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

const keptOutput = 16 << 10

// Write never fails.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.buf.Write(p)
	if extra := o.buf.Len() - keptOutput; extra > keptOutput {
		o.buf.Next(extra)
	}
	return len(p), nil
}

func (o *output) tail() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	text := o.buf.Bytes()
	return string(text[max(0, len(text)-keptOutput):])
}
