package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/service"
)

// office is the leader among the coordinators of a test.
type office struct {
	mu      sync.Mutex
	leader  service.Leader
	changed chan struct{}
}

func newOffice() *office { return &office{changed: make(chan struct{})} }

func (o *office) elect(l service.Leader) {
	o.mu.Lock()
	defer o.mu.Unlock()
	l.Epoch = o.leader.Epoch + 1
	o.leader = l
	close(o.changed)
	o.changed = make(chan struct{})
}

// seat is one coordinator's view of the office.
type seat struct {
	*office
	id      string
	reached chan int64
}

func (s *seat) Leader(ctx context.Context) (service.Leader, error) {
	for {
		s.mu.Lock()
		l, changed := s.leader, s.changed
		s.mu.Unlock()
		if l.ID != "" {
			l.Own = l.ID == s.id
			return l, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return service.Leader{}, ctx.Err()
		}
	}
}

func (s *seat) Reach(_ context.Context, revision int64) error {
	s.reached <- revision
	return nil
}

// post is one coordinator: its handling of a creation.
type post struct {
	*seat
	server *httptest.Server
	// create is called while it leads.
	create func(ctx context.Context, c service.Create) (*api.Allocation, error)
	mu     sync.Mutex
	seen   []*http.Request
}

// postService answers by its post; methods that no test uses are missing.
type postService struct {
	service.Service
	p *post
}

func notLeading() *api.Status {
	status := api.Errorf(503, "another one leads")
	status.Reason = api.NotLeader
	return status
}

func (s postService) CreateAllocation(ctx context.Context, c service.Create, _ *api.Allocation) (*api.Allocation, error) {
	known, stop := context.WithCancel(ctx)
	stop()
	if l, err := s.p.Leader(known); err == nil && l.Own {
		return s.p.create(ctx, c)
	}
	return nil, notLeading()
}

func (s postService) DeleteAllocation(ctx context.Context, namespace, name string, _ api.DeleteOptions) (*api.Allocation, error) {
	return s.CreateAllocation(ctx, service.Create{Namespace: namespace, RequestID: name}, nil)
}

func (s postService) PatchNode(ctx context.Context, name string, p api.NodePatch) (*api.Node, error) {
	if _, err := s.CreateAllocation(ctx, service.Create{}, nil); err != nil {
		return nil, err
	}
	return &api.Node{Metadata: api.ObjectMeta{Name: name, Namespace: s.p.id, Labels: p.Labels.Apply(nil)}}, nil
}

func (s postService) ApproveNode(ctx context.Context, name string, _ api.ApproveOptions) (*api.Node, error) {
	return s.PatchNode(ctx, name, api.NodePatch{})
}

func (s postService) GetNode(context.Context, string) (*api.Node, error) {
	return &api.Node{Metadata: api.ObjectMeta{Name: s.p.id}}, nil
}

// patience is how long posts wait for a leader where one comes; only a broken
// one uses it up. hasty is how long they do where none does.
const (
	patience = 30 * time.Second
	hasty    = 500 * time.Millisecond
)

// mostSeen is more requests than any test sends to one post. A post answers no
// further one, so that a request that goes in circles has an end.
const mostSeen = 64

func newPost(t *testing.T, o *office, id string, patience time.Duration) *post {
	t.Helper()
	p := &post{seat: &seat{office: o, id: id, reached: make(chan int64, 8)}}
	p.create = func(_ context.Context, c service.Create) (*api.Allocation, error) {
		return &api.Allocation{Metadata: api.ObjectMeta{Name: c.RequestID, Namespace: id}, Spec: api.AllocationSpec{Queue: c.Wait.String()}}, nil
	}
	h := NewHandler(Config{
		Service: postService{p: p}, Authenticator: service.StaticToken("secret"), Forward: service.NewForward(id, p.seat, patience, nil),
		Revision: func() int64 { return 7 },
	})
	p.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.seen = append(p.seen, r.Clone(context.Background()))
		circles := len(p.seen) > mostSeen
		p.mu.Unlock()
		if circles {
			http.Error(w, `{"message":"the request goes in circles"}`, http.StatusLoopDetected)
			return
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(p.server.Close)
	return p
}

func (p *post) elected() service.Leader { return service.Leader{ID: p.id, Address: p.server.URL} }

// requests are those that it was sent.
func (p *post) requests() []*http.Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]*http.Request(nil), p.seen...)
}

const someAllocation = `{"metadata":{"name":"a"},"spec":{"resources":{"requests":{"cpu":"1"}}}}`

// ask sends a request and reads the answer: the object or the refusal.
func (p *post) ask(t *testing.T, method, path, key, body string, token string) (int, *api.Allocation, *api.Status, http.Header) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second) // a request that goes in circles has no answer
	defer stop()
	r, err := http.NewRequestWithContext(ctx, method, p.server.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	a, s := new(api.Allocation), new(api.Status)
	if answer.StatusCode > 299 {
		a, err = nil, json.Unmarshal(text, s)
	} else {
		s, err = nil, json.Unmarshal(text, a)
	}
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return answer.StatusCode, a, s, answer.Header
}

const allocations = "/api/v1/namespaces/default/allocations"

func TestAWriteIsPassedOnAsItCame(t *testing.T) {
	o := newOffice()
	leader, follower := newPost(t, o, "l", patience), newPost(t, o, "f", patience)
	o.elect(leader.elected())
	code, a, s, header := follower.ask(t, "POST", allocations+"?wait=3s", "k1", someAllocation, "secret")
	if code != 201 || a.Metadata.Namespace != "l" || a.Metadata.Name != "k1" || header.Get(revisionHeader) != "7" {
		t.Fatalf("%d %+v %+v %v", code, a, s, header)
	}
	if wait, err := time.ParseDuration(a.Spec.Queue); err != nil || wait <= 0 || wait > 3*time.Second {
		t.Errorf("the leader waits %s, of 3s", a.Spec.Queue)
	}
	if at := <-follower.reached; at != 7 {
		t.Errorf("the answer came when reads were at %d, want 7", at)
	}
	seen := leader.requests()
	if len(seen) != 1 || seen[0].Header.Get("Authorization") != "Bearer secret" || seen[0].Header.Get(hopHeader) != "f" {
		t.Errorf("the leader was asked %d times: %+v", len(seen), seen)
	}
}

func TestAPatchOfANodeIsPassedOn(t *testing.T) {
	o := newOffice()
	leader, follower := newPost(t, o, "l", patience), newPost(t, o, "f", patience)
	o.elect(leader.elected())
	for path, method := range map[string]string{"/api/v1/nodes/n1": "PATCH", "/api/v1/nodes/n1/approve": "POST"} {
		r, err := http.NewRequestWithContext(t.Context(), method, follower.server.URL+path, strings.NewReader(`{"metadata":{"labels":{"zone":"a"}}}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer secret")
		r.Header.Set("Content-Type", "application/merge-patch+json")
		if method == "POST" {
			r.Body, r.ContentLength = http.NoBody, 0
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		var n api.Node
		err = json.NewDecoder(answer.Body).Decode(&n)
		answer.Body.Close()
		if err != nil || answer.StatusCode != 200 || n.Metadata.Namespace != "l" || n.Metadata.Name != "n1" || method == "PATCH" && n.Metadata.Labels["zone"] != "a" {
			t.Errorf("%s: %d %+v, %v", path, answer.StatusCode, n.Metadata, err)
		}
	}
}

func TestWhoMayNotIsRefusedWhereItAsks(t *testing.T) {
	o := newOffice()
	leader, follower := newPost(t, o, "l", patience), newPost(t, o, "f", patience)
	o.elect(leader.elected())
	code, _, _, _ := follower.ask(t, "POST", allocations, "k", someAllocation, "another")
	if code != 401 || len(leader.requests()) != 0 {
		t.Errorf("%d, and the leader was asked %d times", code, len(leader.requests()))
	}
}

func TestWithoutALeaderARequestWaitsForOne(t *testing.T) {
	o := newOffice()
	leader, follower := newPost(t, o, "l", patience), newPost(t, o, "f", patience)
	time.AfterFunc(100*time.Millisecond, func() { o.elect(leader.elected()) })
	if code, a, s, _ := follower.ask(t, "DELETE", allocations+"/a", "", "", "secret"); code != 200 || a.Metadata.Namespace != "l" {
		t.Errorf("%d %+v", code, s)
	}
	o.elect(service.Leader{})
	code, _, s, header := newPost(t, o, "g", hasty).ask(t, "DELETE", allocations+"/a", "", "", "secret")
	if code != 503 || s.Reason != api.NotLeader || header.Get("Retry-After") == "" {
		t.Errorf("%d %+v %v, want a 503 that says when to ask again", code, s, header)
	}
}

func TestWhoeverIsElectedWhileItIsAskedAnswers(t *testing.T) {
	o := newOffice()
	follower := newPost(t, o, "f", patience)
	time.AfterFunc(100*time.Millisecond, func() { o.elect(follower.elected()) })
	if code, a, s, _ := follower.ask(t, "POST", allocations, "k", someAllocation, "secret"); code != 201 || a.Metadata.Name != "k" {
		t.Errorf("%d %+v", code, s)
	}
}

func TestRequestsNeverGoInCircles(t *testing.T) {
	o := newOffice()
	a, b := newPost(t, o, "a", hasty), newPost(t, o, "b", hasty)
	// Both take the other one for the leader.
	a.office, b.office = newOffice(), newOffice()
	a.elect(b.elected())
	b.elect(a.elected())
	code, _, s, _ := a.ask(t, "POST", allocations, "k", someAllocation, "secret")
	if code != 503 || s.Reason != api.NotLeader {
		t.Errorf("%d %+v", code, s)
	}
	if again := a.requests()[1:]; len(again) > 0 {
		t.Errorf("a was asked %d times again, by %q", len(again), again[0].Header.Get(hopHeader))
	}
}

// hang is a coordinator that takes requests and never answers.
func hang(t *testing.T) (service.Leader, <-chan struct{}) {
	t.Helper()
	taken := make(chan struct{}, 8)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = c.Close() })
			go func() {
				if n, _ := c.Read(make([]byte, 1<<16)); n > 0 {
					taken <- struct{}{}
				}
			}()
		}
	}()
	t.Cleanup(func() { _ = listener.Close() })
	return service.Leader{ID: "hanging", Address: listener.Addr().String()}, taken
}

func TestALeaderThatIsLostWhileItIsAsked(t *testing.T) {
	for name, c := range map[string]struct {
		method, path, key, body string
		want                    int
		reason                  string
	}{
		"a create with a key is repeated at the next":    {"POST", allocations, "k", someAllocation, 201, ""},
		"a create without one may have been done":        {"POST", allocations, "", someAllocation, 503, api.LeaderLost},
		"a delete may have been done":                    {"DELETE", allocations + "/a", "", "", 503, api.LeaderLost},
		"a delete may have been done, whatever its keys": {"DELETE", allocations + "/a", "k", "", 503, api.LeaderLost},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice()
			next, follower := newPost(t, o, "n", patience), newPost(t, o, "f", patience)
			hanging, taken := hang(t)
			o.elect(hanging)
			go func() { <-taken; o.elect(next.elected()) }()
			code, a, s, _ := follower.ask(t, c.method, c.path, c.key, c.body, "secret")
			if code != c.want || s != nil && s.Reason != c.reason || a != nil && a.Metadata.Namespace != "n" {
				t.Errorf("%d %+v %+v", code, a, s)
			}
			if c.want == 503 && len(next.requests()) > 0 {
				t.Error("it was sent to the next leader all the same")
			}
		})
	}
}

func TestALeaderThatCannotBeReachedHasDoneNothing(t *testing.T) {
	o := newOffice()
	next, follower := newPost(t, o, "n", patience), newPost(t, o, "f", patience)
	o.elect(service.Leader{ID: "gone", Address: "127.0.0.1:1"}) // a port that nobody takes in between
	time.AfterFunc(100*time.Millisecond, func() { o.elect(next.elected()) })
	if code, a, s, _ := follower.ask(t, "POST", allocations, "", someAllocation, "secret"); code != 201 || a.Metadata.Namespace != "n" {
		t.Errorf("%d %+v", code, s)
	}
}

func TestALeaderThatIsDeposedHandsItsRequestsOn(t *testing.T) {
	o := newOffice()
	old, next := newPost(t, o, "o", patience), newPost(t, o, "n", patience)
	lost := api.Errorf(503, "the leadership was lost")
	lost.Reason = api.LeaderLost
	old.create = func(context.Context, service.Create) (*api.Allocation, error) {
		o.elect(next.elected())
		return nil, lost
	}
	o.elect(old.elected())
	if code, a, s, _ := old.ask(t, "POST", allocations+"?wait=1m", "k", someAllocation, "secret"); code != 201 || a.Metadata.Namespace != "n" {
		t.Errorf("with a key: %d %+v", code, s)
	}
	o.elect(old.elected())
	if code, _, s, _ := old.ask(t, "POST", allocations, "", someAllocation, "secret"); code != 503 || s.Reason != api.LeaderLost {
		t.Errorf("without: %d %+v", code, s)
	}
}

func TestNodesAreShownByTheCoordinatorThatIsAsked(t *testing.T) {
	o := newOffice()
	leader, follower := newPost(t, o, "l", patience), newPost(t, o, "f", patience)
	o.elect(leader.elected())
	code, a, s, _ := follower.ask(t, "GET", "/api/v1/nodes/n1", "", "", "secret")
	if code != 200 || a.Metadata.Name != "f" { // of any kind
		t.Errorf("%d, %s shows the node, want the follower: %+v", code, a.Metadata.Name, s)
	}
}

func TestALargeBodyIsRefusedBeforeItIsPassedOn(t *testing.T) {
	o := newOffice()
	leader, follower := newPost(t, o, "l", patience), newPost(t, o, "f", patience)
	o.elect(leader.elected())
	body := fmt.Sprintf(`{"metadata":{"name":%q}}`, bytes.Repeat([]byte("a"), api.MaxDocument))
	if code, _, _, _ := follower.ask(t, "POST", allocations, "k", body, "secret"); code != 413 || len(leader.requests()) != 0 {
		t.Errorf("%d, and the leader was asked %d times", code, len(leader.requests()))
	}
}

func TestAWarningSurvivesTheForwardToTheLeader(t *testing.T) {
	o := newOffice()
	leader, follower := newPost(t, o, "leader", patience), newPost(t, o, "follower", patience)
	o.elect(leader.elected())
	create := leader.create
	leader.create = func(ctx context.Context, c service.Create) (*api.Allocation, error) {
		service.Warn(ctx, "mind the gap")
		service.Warn(ctx, `and "this"`)
		return create(ctx, c)
	}
	code, _, _, header := follower.ask(t, "POST", "/api/v1/namespaces/n/allocations", "", someAllocation, "secret")
	if got := strings.Join(header.Values("Warning"), "; "); code != 201 || got != `299 muster "mind the gap"; 299 muster "and \"this\""` {
		t.Errorf("got %d with the warnings %s", code, got)
	}
}
