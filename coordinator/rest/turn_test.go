package rest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/gate"
	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/coordinator/service"
)

// stuck is a service that answers once it is let go.
type stuck struct {
	service.Service
	let chan struct{}
}

func (s stuck) wait(ctx context.Context) error {
	select {
	case <-s.let:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s stuck) GetNode(ctx context.Context, name string) (*api.Node, error) {
	return &api.Node{Metadata: api.ObjectMeta{Name: name}}, s.wait(ctx)
}

func (s stuck) GetAllocation(ctx context.Context, _, name string, _ time.Duration) (*api.Allocation, error) {
	return &api.Allocation{Metadata: api.ObjectMeta{Name: name}}, s.wait(ctx)
}

func (s stuck) CreateAllocation(ctx context.Context, _ service.Create, a *api.Allocation) (*api.Allocation, error) {
	return a, s.wait(ctx)
}

func (s stuck) ListNodes(ctx context.Context) (*api.NodeList, error) {
	return &api.NodeList{}, s.wait(ctx)
}

// silent is a watch that never has anything.
type silent struct{}

func (silent) Watch(context.Context, objects.WatchOptions) (service.Watch, error) {
	return silent{}, nil
}
func (silent) Close() {}

func (silent) Next(ctx context.Context) (objects.Changes, error) {
	<-ctx.Done()
	return objects.Changes{}, ctx.Err()
}

// hall is a handler with a stuck service, and the requests that it has taken.
type hall struct {
	http.Handler
	stuck
	end context.CancelFunc
	ctx context.Context
}

func newHall(t *testing.T) *hall {
	h := &hall{stuck: stuck{let: make(chan struct{})}}
	h.Handler = NewHandler(Config{Service: h.stuck, Authenticator: newCrowd(), Gate: gate.New(&gate.Rates{}), Watches: silent{}})
	h.ctx, h.end = context.WithCancel(t.Context())
	return h
}

// asked is the answer to a request beside the test, nil before the answer.
type asked struct {
	atomic.Pointer[httptest.ResponseRecorder]
}

// code is the code of the answer, 0 before the answer.
func (a *asked) code() int {
	if w := a.Load(); w != nil {
		return w.Code
	}
	return 0
}

// ask sends a request beside the test, and returns once all goroutines have stopped moving or
// have ended.
func (h *hall) ask(token, method, path string, body io.Reader) *asked {
	r := httptest.NewRequestWithContext(h.ctx, method, path, body)
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	a := &asked{}
	go func() {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		a.Store(w)
	}()
	synctest.Wait()
	return a
}

func answerOf(a *asked) string {
	w := a.Load()
	if w == nil {
		return "none yet"
	}
	var status api.Status
	_ = json.Unmarshal(w.Body.Bytes(), &status) // a good answer has no message
	return fmt.Sprint(w.Code, " ", status.Message, " ", w.Header().Get("Retry-After"))
}

// One tenant fills its seats, and then its own queue. Another tenant's request is
// served at once beside it, and the flood's requests are refused after 5 s, with
// nothing done.
func TestAFloodOfOneTenantKeepsNobodyElseOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHall(t)
		var flood []*asked
		for range 300 {
			flood = append(flood, h.ask("ml-team", "GET", "/api/v1/nodes/n", nil))
		}
		honest := h.ask("speech", "GET", "/api/v1/nodes/n", nil)
		late := flood[len(flood)-1]
		if got := answerOf(late); got != "none yet" {
			t.Fatalf("the last of the flood gets %s", got)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if got, want := answerOf(late), "503 this coordinator is overloaded: a request waited 5s for its turn; nothing was done: ask again, or another coordinator 1"; got != want {
			t.Errorf("the last of the flood gets %q, want %q", got, want)
		}
		close(h.let)
		synctest.Wait()
		if got := answerOf(honest); got != "200  " {
			t.Errorf("the honest client gets %s", got)
		}
		served := 0
		for _, w := range flood {
			if w.code() == http.StatusOK {
				served++
			}
		}
		if served != 192 {
			t.Errorf("%d requests of the flood were served, want those with a seat: 192", served)
		}
		h.end()
	})
}

// Requests that last are bounded for each caller, and take no seat: neither a request
// that waits for its object, nor a watch, nor a body that arrives slowly.
func TestRequestsThatLastAreBoundedAndTakeNoSeat(t *testing.T) {
	for name, c := range map[string]struct {
		method, path string
		slow         bool // the body never comes
		most         int  // of one user; 0: the bound is not one of requests
		want         string
	}{
		"waits":          {"GET", "/api/v1/namespaces/ml-team/allocations/a?wait=10m", false, 256, "429 user ada of tenant ml-team has 256 requests that wait (wait=), and 1 more are beyond the limit of 256: ask without wait, and get again later 1"},
		"watches":        {"GET", "/api/v1/nodes?watch=true", false, 128, "429 user ada of tenant ml-team has 128 watches, and 1 more are beyond the limit of 128: close some, or ask again 1"},
		"bodies to come": {"POST", "/api/v1/namespaces/ml-team/allocations", true, 2048, "429 user ada of tenant ml-team has 8388608 bytes of bodies that are being read, and 4096 more are beyond the limit of 8388608: send fewer at a time 1"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHall(t)
				ask := func(token, path string) *asked {
					if !c.slow {
						return h.ask(token, c.method, path, nil)
					}
					body, writer := io.Pipe()
					context.AfterFunc(h.ctx, func() { _ = writer.CloseWithError(io.ErrUnexpectedEOF) })
					return h.ask(token, c.method, path, body)
				}
				for i := range c.most {
					if w := ask("ml-team", c.path); w.code()/100 > 2 {
						t.Fatalf("request %d gets %s", i, answerOf(w))
					}
				}
				if got := answerOf(ask("ml-team", c.path)); got != c.want {
					t.Errorf("one more gets %q, want %q", got, c.want)
				}
				other := ask("speech", strings.Replace(c.path, "ml-team", "speech", 1))
				if other.code()/100 > 2 {
					t.Errorf("another tenant gets %s", answerOf(other))
				}
				close(h.let)
				if got := answerOf(h.ask("ml-team", "GET", "/api/v1/nodes/n", nil)); got != "200  " {
					t.Errorf("a short request beside them gets %s", got)
				}
				h.end()
				synctest.Wait()
				h.ctx, h.end = context.WithCancel(t.Context())
				if w := ask("ml-team", c.path); w.code()/100 > 2 {
					t.Errorf("after all have ended one gets %s", answerOf(w))
				}
				h.end()
			})
		})
	}
}

// A creation takes its turn once its body is there.
func TestACreationTakesItsTurnWithItsBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHall(t)
		for range 192 {
			_ = h.ask("ml-team", "POST", "/api/v1/namespaces/ml-team/allocations", strings.NewReader(`{"metadata":{"name":"a"},"spec":{"resources":{"requests":{"cpu":"1"}}}}`))
		}
		late := h.ask("ml-team", "GET", "/api/v1/nodes/n", nil)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if late.code() != http.StatusServiceUnavailable {
			t.Errorf("beside 192 creations a get gets %s", answerOf(late))
		}
		h.end()
	})
}

// A request that panics gives its seat back.
func TestAPanicGivesTheSeatBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHandler(Config{Service: struct{ service.Service }{}, Authenticator: &revocable{changed: make(chan struct{})}, Gate: gate.New(&gate.Rates{})})
		began := time.Now()
		for range 300 { // more than one tenant has seats
			r := httptest.NewRequest(http.MethodGet, "/api/v1/namespaces/ml/allocations/a", nil)
			r.Header.Set("Authorization", "Bearer any")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != http.StatusInternalServerError {
				t.Fatalf("answered with %d %s, want 500", w.Code, w.Body)
			}
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("requests waited %s for their turn", took)
		}
	})
}
