// Package postgres gives tests a real PostgreSQL of their own: server programs of
// Debian, a folder and a unix socket that belong to the test, no TCP port. It needs
// PostgreSQL 15 or later, which test/prerequisites.sh brings where it can. Where the
// programs are absent, tests skip with the reason.
//
// Database is for tests that need tables: one server serves all tests of a test
// binary, without fsync, and each test has a new database. Start is for tests that
// kill the server and for benchmarks: a server of the test's own, with fsync.
package postgres

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/musterd/muster/test/servercert"
)

// startTimeout bounds the start of a server; recovery after a kill is part of it.
const startTimeout = 60 * time.Second

// Server is one PostgreSQL. Its methods may be called from one goroutine at a time.
type Server struct {
	dir    string // data, socket and log
	bin    string
	owner  *owner
	config []string
	port   string // "" is the default, of the socket alone
	cmd    *exec.Cmd
	exited chan struct{} // closed when the postmaster has ended
	number atomic.Int64  // of databases
}

// Setting is a server parameter, as in postgresql.conf: "fsync=off".
type Setting string

// Main runs the tests of a package that calls Database, and stops the server then:
// `func TestMain(m *testing.M) { os.Exit(postgres.Main(m)) }`.
func Main(m *testing.M) int {
	code := m.Run()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.server != nil {
		shared.server.remove()
	}
	return code
}

// shared is the server of the test binary. A binary that is killed takes the server
// along; only its folder stays.
var shared struct {
	mu     sync.Mutex
	server *Server
	err    error
}

// Database returns the DSN of a new, empty database on the server of the test
// binary. The server has no fsync: a crash of the host loses data, a test that kills
// the server calls Start. Where PostgreSQL is absent the test ends as package prerequisite decides.
func Database(t testing.TB) string {
	t.Helper()
	bin := programs(t)
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.server == nil && shared.err == nil {
		shared.server, shared.err = start(bin, []Setting{"fsync=off", "synchronous_commit=off", "full_page_writes=off"})
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.server.Database(t)
}

// Start starts a server that ends with the test. Without settings it writes as
// durably as PostgreSQL does by default. Where PostgreSQL is absent the test ends as package prerequisite decides.
func Start(t testing.TB, settings ...Setting) *Server {
	t.Helper()
	s, err := start(programs(t), settings)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.remove)
	return s
}

// StartTLS starts a server that also listens on a port of 127.0.0.1, with TLS and a
// certificate by the returned authority, a PEM file. dsn is the DSN of an empty database
// there, without sslmode.
func StartTLS(t testing.TB) (dsn, authority string) {
	t.Helper()
	bin, dir := programs(t), filesFor(t)
	files, port := servercert.Write(t, dir), strconv.Itoa(servercert.Port(t))
	for _, path := range []string{files.Cert, files.Key} {
		if err := serverOwner().give(path); err != nil {
			t.Fatal(err)
		}
	}
	s, err := startAt(bin, port, []Setting{"fsync=off", "listen_addresses=127.0.0.1", Setting("port=" + port), "ssl=on", Setting("ssl_cert_file=" + files.Cert), Setting("ssl_key_file=" + files.Key)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.remove)
	local, err := url.Parse(s.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	return "postgres://muster@127.0.0.1:" + port + local.Path, files.Cert
}

// filesFor is a folder that the server may read, until the test ends.
func filesFor(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "mpgtls")
	if err == nil {
		err = serverOwner().give(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// Database creates an empty database and returns its DSN.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	name := fmt.Sprintf("test%d", s.number.Add(1))
	conn, err := pgx.Connect(ctx, s.dsn("postgres"))
	if err == nil {
		_, err = conn.Exec(ctx, "CREATE DATABASE "+name)
		_ = conn.Close(ctx)
	}
	if err != nil {
		t.Fatalf("create database %s: %v", name, err)
	}
	return s.dsn(name)
}

func (s *Server) dsn(database string) string {
	query := url.Values{"host": {s.dir}, "user": {"muster"}, "sslmode": {"disable"}}
	if s.port != "" {
		query.Set("port", s.port)
	}
	return "postgres:///" + database + "?" + query.Encode()
}

// PID is the id of the server's first process, whose children serve the connections.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Kill ends all processes of the server by SIGKILL, as `kill -9` or the kernel's lack
// of memory does, and waits for the end.
func (s *Server) Kill() {
	_ = s.cmd.Process.Signal(syscall.SIGSTOP) // it makes no further child, which would outlive it
	children := childrenOf(s.PID())
	_ = s.cmd.Process.Kill()
	for _, pid := range children {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	<-s.exited
	for _, pid := range children {
		for deadline := time.Now().Add(startTimeout); isAlive(pid) && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond) // the kernel has no event for the end of another's child
		}
	}
}

// isAlive reports whether a process still has its memory; a zombie has none.
func isAlive(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, found := strings.Cut(string(text), ") ")
	return err == nil && found && !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}

// Restart starts the server on its data after Kill, and returns when the server
// answers: the recovery is over.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	if err := s.run(); err != nil {
		t.Fatal(err)
	}
}

// start makes the data folder and starts a server on it.
func start(bin string, settings []Setting) (*Server, error) { return startAt(bin, "", settings) }

// startAt is start for a server whose socket has the number of a port, "" for the default.
func startAt(bin, port string, settings []Setting) (*Server, error) {
	dir, err := os.MkdirTemp("", "mpg") // short: the socket's path has at most 107 bytes
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, bin: bin, port: port, owner: serverOwner()}
	for _, x := range settings {
		s.config = append(s.config, "-c", string(x))
	}
	if err := s.owner.give(dir); err != nil {
		s.remove()
		return nil, err
	}
	initdb := exec.Command(filepath.Join(bin, "initdb"), "--pgdata", s.data(), "--username", "muster", "--auth", "trust",
		"--encoding", "UTF8", "--locale", "C", "--no-sync", "--no-instructions")
	s.owner.prepare(initdb, dir)
	if out, err := initdb.CombinedOutput(); err != nil {
		s.remove()
		return nil, fmt.Errorf("initdb in %s: %w\n%s", dir, err, out)
	}
	if err := s.run(); err != nil {
		s.remove()
		return nil, err
	}
	return s, nil
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// run starts the server's programs and waits until they answer.
func (s *Server) run() error {
	args := append([]string{"-D", s.data(), "-k", s.dir, "-c", "listen_addresses=", "-c", "jit=off", "-c", "max_connections=50"}, s.config...)
	s.cmd = exec.Command(filepath.Join(s.bin, "postgres"), args...)
	s.owner.prepare(s.cmd, s.dir)
	s.cmd.SysProcAttr.Pdeathsig = syscall.SIGQUIT // should the test be killed
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	s.cmd.Stdout, s.cmd.Stderr = log, log
	started, exited := make(chan error), make(chan struct{})
	go func() { // the signal of the parent's death comes at the end of the thread that has started the child
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := s.cmd.Start()
		_ = log.Close()
		started <- err
		if err == nil {
			_ = s.cmd.Wait()
		}
		close(exited)
	}()
	s.exited = exited
	if err := <-started; err != nil {
		return fmt.Errorf("start PostgreSQL: %w", err)
	}
	return s.await()
}

// await polls until the server accepts a connection.
func (s *Server) await() error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, s.dsn("postgres"))
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-s.exited:
			return fmt.Errorf("PostgreSQL ended at its start:\n%s", s.Log())
		case <-ctx.Done():
			return fmt.Errorf("PostgreSQL does not answer after %v: %w\n%s", startTimeout, err, s.Log())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Log is what the server has written.
func (s *Server) Log() string {
	text, _ := os.ReadFile(filepath.Join(s.dir, "log"))
	return string(text)
}

// remove stops the server at once and deletes its folder.
func (s *Server) remove() {
	if s.cmd != nil && s.cmd.Process != nil {
		_ = s.cmd.Process.Signal(syscall.SIGINT) // a fast shutdown
		select {
		case <-s.exited:
		case <-time.After(10 * time.Second):
			s.Kill()
		}
	}
	_ = os.RemoveAll(s.dir)
}

// childrenOf lists the children of a process.
func childrenOf(pid int) []int {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	var ids []int
	for field := range strings.FieldsSeq(string(text)) {
		var id int
		if _, err := fmt.Sscan(field, &id); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// CPU is the processor time that the server's processes have used so far, ended ones
// among them.
func (s *Server) CPU() time.Duration {
	total := cpuOf(s.PID())
	for _, pid := range childrenOf(s.PID()) {
		total += cpuOf(pid)
	}
	return total
}

// cpuOf is the time of a process and of its children that have ended, in the kernel's
// hundredths of a second.
func cpuOf(pid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, found := strings.Cut(string(text), ") ")
	if err != nil || !found {
		return 0
	}
	fields := strings.Fields(rest)
	var ticks, n int64
	for _, field := range fields[11:15] { // utime, stime, cutime, cstime
		if _, err := fmt.Sscan(field, &n); err == nil {
			ticks += n
		}
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}
