package attach

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/musterd/muster/agent/run"
	"github.com/musterd/muster/agent/shim"
	"github.com/musterd/muster/agent/users"
	"github.com/musterd/muster/resource"
)

// clientArgument makes this test program a client of a socket.
const clientArgument = "attach-client"

// TestMain makes this test program a client too: SOCKET TRANSACTION PID CGROUP, where PID
// "self" is its own number.
func TestMain(m *testing.M) {
	if len(os.Args) == 6 && os.Args[1] == clientArgument {
		q := Request{Transaction: resource.TxID(os.Args[3]), Cgroup: os.Args[5]}
		if q.PID, _ = strconv.Atoi(os.Args[4]); os.Args[4] == "self" {
			q.PID = os.Getpid()
		}
		if err := Attach(context.Background(), os.Args[2], q); err != nil {
			fmt.Print(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// owner is an agent with one grant: transaction "held" of tenant "ml", with member 0.
type owner struct {
	mu    sync.Mutex
	taken []run.Attachment
	err   error
}

func (o *owner) Tenant(_ context.Context, tx resource.TxID, member int) (resource.TenantID, bool, error) {
	return "ml", tx == "held" && member == 0, nil
}

func (o *owner) Attach(_ context.Context, _ resource.TxID, _ int, a run.Attachment) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.taken = append(o.taken, a)
	}
	return o.err
}

// serve serves an owner at a socket in a folder that every user may enter.
func serve(t *testing.T, s *Server) (socket string) {
	t.Helper()
	boot, err := shim.BootID()
	if err != nil {
		t.Skip("not permitted here: ", err)
	}
	dir, err := os.MkdirTemp("/tmp", "attach")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	socket = filepath.Join(dir, "s")
	l, err := Open(socket)
	if err != nil {
		t.Fatal(err)
	}
	s.BootID, s.Log = boot, slog.New(slog.DiscardHandler)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return socket
}

func TestRequests(t *testing.T) {
	o := &owner{}
	socket := serve(t, &Server{Owner: o, Hierarchy: Hierarchy()})
	child := exec.Command("sleep", "1000")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = child.Process.Kill(); _ = child.Wait() }()
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	pid, self := child.Process.Pid, os.Getpid()
	for name, c := range map[string]struct {
		path, body string
		status     int
		want       string // part of the answer
	}{
		"a process":                 {attachPath, fmt.Sprintf(`{"transaction":"held","pid":%d}`, pid), 200, "{}"},
		"an end":                    {donePath, `{"transaction":"held","code":255}`, 200, "{}"},
		"a success":                 {donePath, `{"transaction":"held","code":0}`, 200, "{}"},
		"no transaction":            {attachPath, `{"pid":5}`, 422, "transaction"},
		"a long transaction":        {attachPath, `{"pid":5,"transaction":"` + strings.Repeat("x", 257) + `"}`, 422, "1 to 256 bytes"},
		"a member below 0":          {attachPath, `{"transaction":"held","member":-1,"pid":5}`, 422, "member -1 is outside 0..1048576"},
		"neither of both":           {attachPath, `{"transaction":"held"}`, 422, "attach wants either pid or cgroup"},
		"both":                      {attachPath, `{"transaction":"held","pid":5,"cgroup":"/x"}`, 422, "attach wants either pid or cgroup"},
		"a code to attach":          {attachPath, `{"transaction":"held","pid":5,"code":0}`, 422, "attach takes no code"},
		"the first process":         {attachPath, `{"transaction":"held","pid":1}`, 422, "pid 1 is outside 2..4194304"},
		"a negative pid":            {attachPath, `{"transaction":"held","pid":-5}`, 422, "pid -5 is outside 2..4194304"},
		"the agent":                 {attachPath, fmt.Sprintf(`{"transaction":"held","pid":%d}`, self), 422, "is the agent"},
		"above the agent":           {attachPath, fmt.Sprintf(`{"transaction":"held","pid":%d}`, os.Getppid()), 422, "the agent runs below it"},
		"a process that has ended":  {attachPath, fmt.Sprintf(`{"transaction":"held","pid":%d}`, ended.Process.Pid), 422, "there is no such process"},
		"a relative cgroup":         {attachPath, `{"transaction":"held","cgroup":"a"}`, 422, "want an absolute path"},
		"a cgroup upwards":          {attachPath, `{"transaction":"held","cgroup":"/sys/fs/cgroup/../a"}`, 422, "want an absolute path"},
		"a cgroup elsewhere":        {attachPath, `{"transaction":"held","cgroup":"/etc"}`, 422, "cgroup"},
		"an end without a code":     {donePath, `{"transaction":"held"}`, 422, "code: done wants the exit code"},
		"an end with a pid":         {donePath, `{"transaction":"held","pid":5,"code":0}`, 422, "done takes neither pid nor cgroup"},
		"a code beyond":             {donePath, `{"transaction":"held","code":256}`, 422, "code 256 is outside 0..255"},
		"another member":            {donePath, `{"transaction":"held","member":1,"code":0}`, 404, "has no grant with member 1 on this host"},
		"another transaction":       {donePath, `{"transaction":"other","code":0}`, 404, "has no grant with member 0 on this host"},
		"a field that is not known": {donePath, `{"transaction":"held","status":0}`, 400, "status"},
		"two documents":             {donePath, `{"transaction":"held","code":0}{}`, 400, "data follows the document"},
		"no document":               {donePath, ``, 400, "EOF"},
		"a long document":           {donePath, `{"transaction":"` + strings.Repeat("x", maxBody) + `"}`, 413, "more than 16384 bytes"},
		"a path that is not known":  {"/v1/kill", `{}`, 404, ""},
	} {
		t.Run(name, func(t *testing.T) {
			client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, Dial: func(string, string) (net.Conn, error) { return net.Dial("unix", socket) }}}
			r, err := client.Post("http://agent"+c.path, "application/json", strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			defer r.Body.Close()
			var text strings.Builder
			if err := r.Write(&text); err != nil {
				t.Fatal(err)
			}
			if r.StatusCode != c.status || !strings.Contains(text.String(), c.want) {
				t.Errorf("status %d, want %d and %q in\n%s", r.StatusCode, c.status, c.want, text.String())
			}
		})
	}
	if len(o.taken) != 3 {
		t.Errorf("%d changes were made, want 3: %+v", len(o.taken), o.taken)
	}
}

func TestRefusalsOfTheRunner(t *testing.T) {
	o := &owner{}
	socket := serve(t, &Server{Owner: o})
	for name, c := range map[string]struct {
		err    error
		status int
	}{
		"a command":          {run.ErrStarted, 409},
		"an end":             {fmt.Errorf("x: %w", run.ErrDone), 409},
		"too many processes": {run.ErrMany, 422},
		"a grant that ended": {ErrNoGrant, 404},
	} {
		t.Run(name, func(t *testing.T) {
			o.mu.Lock()
			o.err = c.err
			o.mu.Unlock()
			err := Done(t.Context(), socket, Request{Transaction: "held", Code: new(int)})
			var r *Refused
			if !errors.As(err, &r) || r.Status != c.status || r.Text != c.err.Error() {
				t.Errorf("error %v, want status %d", err, c.status)
			}
		})
	}
}

// TestOtherUsersAttachTheirOwnWorkAlone: to grants of their tenant. What they hear does not
// say which grants there are.
func TestOtherUsersAttachTheirOwnWorkAlone(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not permitted here: another user's process needs root")
	}
	const nobody = 65534
	self := filepath.Join(t.TempDir(), "client")
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command("sleep", "1000") // root's
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = child.Process.Kill(); _ = child.Wait() }()
	lookup := func(name string) (users.Account, error) {
		return users.Account{Name: name, ID: shim.User{UID: nobody}}, nil
	}
	for name, c := range map[string]struct {
		table   map[string]string
		tx, pid string
		taken   bool
		want    string
	}{
		"its own process":           {map[string]string{"ml": "ada"}, "held", "self", true, ""},
		"a process of root":         {map[string]string{"ml": "ada"}, "held", strconv.Itoa(child.Process.Pid), false, "is a process of user 0"},
		"a grant of another tenant": {map[string]string{"vision": "ada"}, "held", "self", false, "user 65534 may not attach"},
		"a grant that is not there": {map[string]string{"ml": "ada"}, "other", "self", false, "user 65534 may not attach"},
		"no table":                  {nil, "held", "self", false, "user 65534 may not attach"},
		"a table for all tenants":   {map[string]string{"*": "ada"}, "held", "self", true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := &owner{}
			s := &Server{Owner: o}
			if c.table != nil {
				if s.Users, err = users.NewTable(c.table, false, lookup); err != nil {
					t.Fatal(err)
				}
			}
			socket := serve(t, s)
			self = filepath.Join(filepath.Dir(socket), "client")
			if err := os.WriteFile(self, program, 0o755); err != nil {
				t.Fatal(err)
			}
			client := exec.Command(self, clientArgument, socket, c.tx, c.pid, "")
			client.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
			client.Dir = "/"
			out, err := client.CombinedOutput()
			if (err == nil) != c.taken || !strings.Contains(string(out), c.want) || (len(o.taken) == 1) != c.taken {
				t.Errorf("the client says %q (%v), %d changes; want %q", out, err, len(o.taken), c.want)
			}
		})
	}
}

func TestConnectionsAreBounded(t *testing.T) {
	l, now := newListener(nil), time.Unix(1000, 0)
	for range mostOfUser {
		if !l.admit(1000, now) {
			t.Fatal("a connection within the bound is refused")
		}
	}
	if l.admit(1000, now) {
		t.Error("one connection of a user too many")
	}
	for uid := uint32(1001); l.sum < mostOfAll; uid++ {
		for range mostOfUser {
			l.admit(uid, now)
		}
	}
	if l.admit(5000, now) {
		t.Error("one connection of all users too many")
	}
	if !l.admit(0, now) {
		t.Error("root has no connection")
	}
	for range mostOfUser {
		l.leave(1000)
	}
	for range atOnce - mostOfUser {
		if !l.admit(1000, now) {
			t.Fatal("a connection within the rate is refused")
		}
		l.leave(1000)
	}
	if l.admit(1000, now) {
		t.Error("one connection within a moment too many")
	}
	if !l.admit(1000, now.Add(time.Second)) {
		t.Error("no connection a second later")
	}
	for uid := uint32(10_000); uid < 10_000+2*mostUsers; uid++ {
		if l.admit(uid, now) {
			l.leave(uid)
		}
	}
	if len(l.rates) > mostUsers {
		t.Errorf("the rates of %d users are kept", len(l.rates))
	}
}

func TestASocketIsReplacedAndNoOtherFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	again, err := Open(path)
	if err != nil {
		t.Fatalf("after a crash of the agent: %v", err)
	}
	again.Close()
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); err == nil || !strings.Contains(err.Error(), "no socket") {
		t.Errorf("error %v", err)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "precious" {
		t.Errorf("the file has %q: %v", data, err)
	}
}

// TestARequestWaitsForAnAgentThatStartsAnew.
func TestARequestWaitsForAnAgentThatStartsAnew(t *testing.T) {
	o := &owner{err: errors.New("the disk is full")}
	socket := serve(t, &Server{Owner: o})
	answered := make(chan error, 1)
	go func() { answered <- Done(t.Context(), socket, Request{Transaction: "held", Code: new(int)}) }()
	select {
	case err := <-answered:
		t.Fatalf("answered at once: %v", err)
	case <-time.After(3 * repeatEvery):
	}
	o.mu.Lock()
	o.err = nil
	o.mu.Unlock()
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

func TestStatuses(t *testing.T) {
	for text, want := range map[string]int{"0": 0, "255": 255, "KILL": 137, "SIGTERM": 143, "256": -1, "-1": -1, "": -1, "exited": -1, "term": -1} {
		got, err := ParseStatus(text)
		if err != nil {
			got = -1
		}
		if got != want {
			t.Errorf("%q is read as %d, want %d", text, got, want)
		}
	}
}

func FuzzRequest(f *testing.F) {
	for _, text := range []string{
		`{"transaction":"u-1.1.1","pid":17}`, `{"transaction":"u-1.1.1","member":3,"cgroup":"/sys/fs/cgroup/a"}`, `{"transaction":"u-1.1.1","code":0}`,
		`{"transaction":"","pid":1}`, `{"transaction":"a","pid":1e9}`, `{"transaction":"a","code":-1}`, `{"cgroup":"/../"}`, `{}{}`, `null`,
	} {
		f.Add([]byte(text), false)
		f.Add([]byte(text), true)
	}
	f.Fuzz(func(t *testing.T, data []byte, done bool) {
		if code, err := ParseStatus(string(data)); err == nil && code&^255 != 0 {
			t.Errorf("%q is read as the code %d", data, code)
		}
		q, err := parseRequest(data, done)
		var r *Refused
		switch {
		case err != nil && !errors.As(err, &r):
			t.Errorf("an error without a status: %v", err)
		case err != nil && (r.Status < 400 || r.Status > 499 || r.Text == ""):
			t.Errorf("%+v is no refusal", r)
		case err != nil:
		case q.Transaction == "" || q.Member < 0 || done != (q.Code != nil) || !done && (q.PID > 1) == filepath.IsAbs(q.Cgroup) || done && *q.Code&^255 != 0:
			t.Errorf("%q is taken as %+v", data, q)
		}
	})
}
