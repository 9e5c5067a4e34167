package rest_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/rest"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/test/resttest"
)

// full is a service with 100 jobs of 250 KiB: a page has 4 of them, 1 MiB.
func full() *slow {
	s := &slow{Cluster: resttest.New(time.Now), release: make(chan struct{})}
	close(s.release)
	note := map[string]string{"note": strings.Repeat("x", 250<<10)}
	for i := range 100 {
		s.list.Items = append(s.list.Items, api.Job{Metadata: api.ObjectMeta{Namespace: "a", Name: fmt.Sprintf("j%03d", i), Annotations: note}})
	}
	return s
}

// reader is a client that takes one Write each interval; 0 = none at all.
type reader struct {
	*httptest.ResponseRecorder
	interval time.Duration
	mu       sync.Mutex
	deadline time.Time
	changed  chan struct{}
	err      error
}

func newReader(interval time.Duration) *reader {
	return &reader{ResponseRecorder: httptest.NewRecorder(), interval: interval, changed: make(chan struct{}, 64)}
}

func (r *reader) SetWriteDeadline(at time.Time) error {
	r.mu.Lock()
	r.deadline = at
	r.mu.Unlock()
	r.changed <- struct{}{}
	return nil
}

func (r *reader) Write(b []byte) (int, error) {
	var taken <-chan time.Time
	if r.interval > 0 {
		taken = time.After(r.interval)
	}
	for {
		r.mu.Lock()
		late := time.After(time.Until(r.deadline))
		r.mu.Unlock()
		select {
		case <-taken:
			return len(b), nil
		case <-late:
			r.err = os.ErrDeadlineExceeded
			return 0, r.err
		case <-r.changed:
		}
	}
}

// Any number of readers hold 16 MiB of lists together. The next list gets the
// room of a reader that takes nothing; while all of them read, the client of
// the next list is asked to come again.
func TestReadersHoldABoundedNumberOfPages(t *testing.T) {
	for name, c := range map[string]struct {
		interval time.Duration
		code     int
		took     time.Duration // until the answer, at most
		cut      int
	}{
		"readers that take nothing give way": {0, 200, 1500 * time.Millisecond, 1},
		"slow readers keep their room":       {900 * time.Millisecond, 429, 2 * time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				registry := prometheus.NewRegistry()
				h := rest.NewHandler(rest.Config{Service: full(), Authenticator: service.StaticToken(token), Metrics: registry})
				list := make([]*reader, 16)
				var lists sync.WaitGroup
				for i := range list {
					list[i] = newReader(c.interval)
					lists.Go(func() { ask(h, list[i], "GET", "/api/v1/jobs?limit=4", nil) })
					synctest.Wait()
				}
				began := time.Now()
				w := httptest.NewRecorder()
				ask(h, w, "GET", "/api/v1/jobs", nil)
				if took := time.Since(began); w.Code != c.code || took > c.took {
					t.Errorf("got %d after %s, want %d within %s", w.Code, took, c.code, c.took)
				}
				if c.code == 429 {
					busy(t, w, "of the 16 MiB")
				}
				if got := count(t, registry, "muster_rest_answers_cut_total"); got != c.cut {
					t.Errorf("%d readers were cut, want %d", got, c.cut)
				}
				lists.Wait()
				for i := range list { // all room is there again
					if i > 0 && c.interval == 0 && !errors.Is(list[i].err, os.ErrDeadlineExceeded) {
						t.Errorf("reader %d ends with %v", i, list[i].err)
					}
					lists.Go(func() { ask(h, newReader(time.Millisecond), "GET", "/api/v1/jobs", nil) })
				}
				lists.Wait()
				if throttled(t, registry, "answers") != float64(map[bool]int{true: 1}[c.code == 429]) {
					t.Error("room was lost")
				}
			})
		})
	}
}

// count reads a counter without labels.
func count(t *testing.T, r *prometheus.Registry, name string) int {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return int(f.GetMetric()[0].GetCounter().GetValue())
		}
	}
	return 0
}

// An object of 1 MB that is not read holds room as a list does.
func TestReadersOfLargeObjectsHoldBoundedRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := resttest.New(time.Now)
		registry := prometheus.NewRegistry()
		h := rest.NewHandler(rest.Config{Service: s, Authenticator: service.StaticToken(token), Metrics: registry})
		annotations := make([]string, 0, 250)
		for i := range 250 {
			annotations = append(annotations, fmt.Sprintf(`"n%d":"%s"`, i, strings.Repeat("x", 1000)))
		}
		w := httptest.NewRecorder()
		ask(h, w, "POST", "/api/v1/namespaces/a/allocations", strings.NewReader(
			`{"metadata":{"name":"x","annotations":{`+strings.Join(annotations, ",")+`}},"spec":{"resources":{"requests":{"cpu":"1m"}}}}`))
		if w.Code != 201 {
			t.Fatal(w.Code, w.Body)
		}
		const path = "/api/v1/namespaces/a/allocations/x"
		var readers sync.WaitGroup
		for range 80 {
			readers.Go(func() { ask(h, newReader(0), "GET", path, nil) })
		}
		synctest.Wait()
		began := time.Now()
		w = httptest.NewRecorder()
		ask(h, w, "GET", path, nil)
		if took := time.Since(began); w.Code != 200 || took < 500*time.Millisecond {
			t.Errorf("got %d after %s: the readers hold no room", w.Code, took)
		}
		readers.Wait()
	})
}

// A reader that takes a piece of a list now and then has 30 s for all of it.
func TestASlowReaderHasThirtySeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := rest.NewHandler(rest.Config{Service: full(), Authenticator: service.StaticToken(token)})
		w := newReader(4 * time.Second)
		began := time.Now()
		ask(h, w, "GET", "/api/v1/jobs", nil)
		if took := time.Since(began); took != 30*time.Second || !errors.Is(w.err, os.ErrDeadlineExceeded) {
			t.Errorf("cut after %s with %v, want 30 s", took, w.err)
		}
	})
}

// narrow makes the kernel's buffers of connections small.
type narrow struct{ net.Listener }

func (n narrow) Accept() (net.Conn, error) {
	c, err := n.Listener.Accept()
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(4 << 10)
	}
	return c, err
}

// A hundred clients that ask for lists of 1 MiB and read no more than the first line
// of the answer take a few MiB each second, not a hundred.
func TestAHundredStalledReadersTakeLittleMemory(t *testing.T) {
	server := rest.NewServer(rest.NewHandler(rest.Config{Service: full(), Authenticator: service.StaticToken(token)}), slog.New(slog.DiscardHandler))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go server.Serve(narrow{l})
	defer server.Close()
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	dialer := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4<<10) })
	}}
	var mu sync.Mutex
	answers := map[string]int{}
	var clients sync.WaitGroup
	for range 100 {
		clients.Go(func() {
			c, err := dialer.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() { _ = c.Close() })
			fmt.Fprintf(c, "GET /api/v1/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n", token)
			line, err := bufio.NewReaderSize(io.LimitReader(c, 64), 64).ReadString('\n')
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			answers[strings.TrimSpace(line)]++
		})
	}
	clients.Wait()
	now := heap()
	t.Logf("%v; %d KiB more", answers, (int64(now)-int64(before))>>10)
	if now > before+32<<20 {
		t.Errorf("100 readers that stall take %d MiB", (now-before)>>20)
	}
	if len(answers) > 2 || answers["HTTP/1.1 200 OK"] < 16 || answers["HTTP/1.1 200 OK"]+answers["HTTP/1.1 429 Too Many Requests"] != 100 {
		t.Errorf("the answers are %v", answers)
	}
}
