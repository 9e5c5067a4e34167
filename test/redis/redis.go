// Package redis gives a test a real redis-server of its own: Debian's program, a unix
// socket in a folder that belongs to the test, no TCP port, nothing on disk but the
// log. test/prerequisites.sh brings the program where it can. Where it is absent, tests
// skip with the reason.
package redis

import (
	"context"
	"crypto/x509"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	client "github.com/redis/go-redis/v9"

	"github.com/musterd/muster/test/prerequisite"
	"github.com/musterd/muster/test/servercert"
)

// startTimeout bounds the start of a server.
const startTimeout = 30 * time.Second

// Server is one redis-server. Its methods may be called from one goroutine at a time.
type Server struct {
	program, dir string
	more         []string // arguments
	url          string
	password     string
	cmd          *exec.Cmd
	exited       chan struct{}
}

// Start starts an empty server that ends with the test.
func Start(t testing.TB) *Server {
	t.Helper()
	s := made(t)
	s.Restart(t)
	return s
}

// StartTLS is Start with TLS on a port of 127.0.0.1 in addition, with a certificate by the
// authorities, and with a password. URL is the port's.
func StartTLS(t testing.TB, password string) (*Server, *x509.CertPool) {
	t.Helper()
	s := made(t)
	files, port := servercert.Write(t, s.dir), strconv.Itoa(servercert.Port(t))
	s.more = []string{"--tls-port", port, "--bind", "127.0.0.1", "--tls-cert-file", files.Cert, "--tls-key-file", files.Key, "--tls-auth-clients", "no", "--requirepass", password}
	s.url, s.password = "rediss://127.0.0.1:"+port, password
	s.Restart(t)
	return s, files.Roots
}

// made is a server that has not been started.
func made(t testing.TB) *Server {
	t.Helper()
	program, err := exec.LookPath("redis-server")
	if err != nil {
		prerequisite.Missing(t, "redis-server is missing in PATH (apt-get install redis-server)")
	}
	dir, err := os.MkdirTemp("", "mrd") // short: the socket's path has at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{program: program, dir: dir}
	s.url = "unix://" + s.socket()
	t.Cleanup(func() { s.Kill(); _ = os.RemoveAll(dir) })
	return s
}

func (s *Server) socket() string { return filepath.Join(s.dir, "s") }

// URL is the address of database 0 for clients.
func (s *Server) URL() string { return s.url }

// Kill ends the server by SIGKILL and waits for the end. Its data are lost.
func (s *Server) Kill() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	<-s.exited
	s.cmd = nil
}

// Restart starts the server after Kill, without data, and returns when it answers.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	_ = os.Remove(s.socket())
	arguments := []string{"--port", "0", "--unixsocket", s.socket(), "--save", "", "--appendonly", "no", "--dir", s.dir, "--logfile", filepath.Join(s.dir, "log")}
	s.cmd = exec.Command(s.program, append(arguments, s.more...)...)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // should the test be killed
	started, exited := make(chan error), make(chan struct{})
	go func(cmd *exec.Cmd) { // the signal of the parent's death comes at the end of the thread that has started the child
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
		close(exited)
	}(s.cmd)
	if err := <-started; err != nil {
		t.Fatalf("start redis-server: %v", err)
	}
	s.exited = exited
	s.await(t)
}

// await polls until the server answers.
func (s *Server) await(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	c := client.NewClient(&client.Options{Network: "unix", Addr: s.socket(), Password: s.password, MaxRetries: -1})
	defer func() { _ = c.Close() }()
	for {
		err := c.Ping(ctx).Err()
		if err == nil {
			return
		}
		select {
		case <-s.exited:
			t.Fatalf("redis-server ended at its start:\n%s", s.log())
		case <-ctx.Done():
			t.Fatalf("redis-server does not answer after %v: %v\n%s", startTimeout, err, s.log())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (s *Server) log() string {
	text, _ := os.ReadFile(filepath.Join(s.dir, "log"))
	return string(text)
}
