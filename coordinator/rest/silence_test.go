package rest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
)

// cut is a network between coordinators of which nothing comes back.
type cut func(ctx context.Context) (net.Conn, error)

// swallow takes a connection and everything that is sent on it.
func swallow(context.Context) (net.Conn, error) {
	here, there := net.Pipe()
	go func() { _, _ = io.Copy(io.Discard, there) }()
	return here, nil
}

// unheard takes no connection.
func unheard(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, peerDialTimeout)
	defer cancel()
	<-ctx.Done()
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: ctx.Err()}
}

// halfway answers, but only with the beginning of a document.
func halfway(context.Context) (net.Conn, error) {
	here, there := net.Pipe()
	go func() {
		_, _ = there.Read(make([]byte, 1<<16))
		_, _ = fmt.Fprint(there, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
		_, _ = io.Copy(io.Discard, there)
	}()
	return here, nil
}

// TestNoClientOfAFollowerThatIsCutOffWaitsForLong: a request has its answer 2 s
// after its client's own patience, and the answer names the attempts.
func TestNoClientOfAFollowerThatIsCutOffWaitsForLong(t *testing.T) {
	for name, c := range map[string]struct {
		network                 cut
		method, path, key, body string
		want                    time.Duration
		reason                  string
	}{
		"a delete that is swallowed":            {swallow, "DELETE", allocations + "/a", "", "", 2 * time.Second, api.LeaderUnreachable},
		"a create that is swallowed":            {swallow, "POST", allocations, "", someAllocation, 2 * time.Second, api.LeaderUnreachable},
		"a create with a key that is swallowed": {swallow, "POST", allocations, "k", someAllocation, 2 * time.Second, api.LeaderUnreachable},
		"a create that waits":                   {swallow, "POST", allocations + "?wait=8s", "k", someAllocation, 10 * time.Second, api.LeaderUnreachable},
		"a delete whose answer is cut short":    {halfway, "DELETE", allocations + "/a", "", "", 2 * time.Second, api.LeaderUnreachable},
		"a delete without a connection":         {unheard, "DELETE", allocations + "/a", "", "", 2 * time.Second, api.NotLeader},
		"a create without a connection":         {unheard, "POST", allocations, "", someAllocation, 2 * time.Second, api.NotLeader},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newOffice()
				o.elect(service.Leader{ID: "l", Address: "192.0.2.1:80"})
				p := &post{seat: &seat{office: o, id: "f", reached: make(chan int64, 8)}}
				h := NewHandler(Config{
					Service: postService{p: p}, Authenticator: service.StaticToken("secret"), Forward: service.NewForward("f", p.seat, 0, nil),
					DialPeer: func(ctx context.Context, _, _ string) (net.Conn, error) { return c.network(ctx) },
				})
				r := httptest.NewRequestWithContext(t.Context(), c.method, c.path, strings.NewReader(c.body))
				r.Header.Set("Authorization", "Bearer secret")
				r.Header.Set("Content-Type", "application/json")
				if c.key != "" {
					r.Header.Set("Idempotency-Key", c.key)
				}
				began, w := time.Now(), httptest.NewRecorder()
				h.ServeHTTP(w, r)
				if took := time.Since(began); took < c.want || took > c.want+100*time.Millisecond { // of the bubble's clock
					t.Errorf("answered after %s, want %s", took, c.want)
				}
				s := new(api.Status)
				if err := json.Unmarshal(w.Body.Bytes(), s); err != nil || w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
					t.Fatalf("%d %v %s (%v)", w.Code, w.Header(), w.Body, err)
				}
				if s.Reason != c.reason || !strings.Contains(s.Message, "192.0.2.1:80") || strings.Contains(s.Message, "lost") {
					t.Errorf("%s: %s", s.Reason, s.Message)
				}
			})
		})
	}
}

// TestAnAnswerThatTookLongIsWritten: the time for an answer begins with it.
func TestAnAnswerThatTookLongIsWritten(t *testing.T) {
	o := newOffice()
	p := &post{seat: &seat{office: o, id: "l", reached: make(chan int64, 8)}}
	p.create = func(context.Context, service.Create) (*api.Allocation, error) {
		time.Sleep(50 * time.Millisecond) // ten times the server's limit
		return &api.Allocation{Metadata: api.ObjectMeta{Name: "a"}}, nil
	}
	p.server = httptest.NewUnstartedServer(NewHandler(Config{Service: postService{p: p}, Authenticator: service.StaticToken("secret"), Forward: service.NewForward("l", p.seat, 0, nil)}))
	p.server.Config.WriteTimeout = 5 * time.Millisecond
	p.server.Start()
	t.Cleanup(p.server.Close)
	o.elect(p.elected())
	if code, a, s, _ := p.ask(t, "DELETE", allocations+"/a", "", "", "secret"); code != 200 || a.Metadata.Name != "a" {
		t.Errorf("%d %+v", code, s)
	}
}

// TestConnectionsToPeersAreProbed reads the options of a real socket: 1 s
// without traffic, then two probes 1 s apart, and 3 s for bytes that are not
// acknowledged.
func TestConnectionsToPeersAreProbed(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	conn, err := peerDialer().DialContext(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	socket, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	err = socket.Control(func(fd uintptr) {
		for name, c := range map[string]struct{ level, option, want int }{
			"SO_KEEPALIVE":     {unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
			"TCP_KEEPIDLE":     {unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 1},
			"TCP_KEEPINTVL":    {unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 1},
			"TCP_KEEPCNT":      {unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 2},
			"TCP_USER_TIMEOUT": {unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 3000},
		} {
			if got, err := unix.GetsockoptInt(int(fd), c.level, c.option); err != nil || got != c.want {
				t.Errorf("%s is %d (%v), want %d", name, got, err, c.want)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}
