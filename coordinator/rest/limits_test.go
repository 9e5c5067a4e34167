package rest_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/rest"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/test/resttest"
)

// slow is a service whose lists take until they are let go.
type slow struct {
	*resttest.Cluster
	release chan struct{}
	list    api.JobList
}

func (s *slow) ListJobs(ctx context.Context, _ string, _ service.Page[api.Job]) (*api.JobList, error) {
	select {
	case <-s.release:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	list := s.list
	return &list, nil
}

// ask serves one request in its own goroutine.
func ask(h http.Handler, w http.ResponseWriter, method, path string, body io.Reader) {
	r := httptest.NewRequest(method, path, body)
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	h.ServeHTTP(w, r)
}

// throttled reads the metric of one reason.
func throttled(t *testing.T, r *prometheus.Registry, reason string) float64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "muster_rest_throttled_total" && m.GetLabel()[0].GetValue() == reason {
				return m.GetCounter().GetValue()
			}
		}
	}
	return 0
}

// busy checks a refusal for lack of room.
func busy(t *testing.T, w *httptest.ResponseRecorder, part string) {
	t.Helper()
	if w.Code != 429 || w.Header().Get("Retry-After") != "1" || !strings.Contains(w.Body.String(), part) {
		t.Errorf("got %d, Retry-After %q, %s; want 429 with %q", w.Code, w.Header().Get("Retry-After"), w.Body, part)
	}
}

// Four lists are made at a time; others wait two seconds at most.
func TestFewListsAreMadeAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{Cluster: resttest.New(time.Now), release: make(chan struct{})}
		registry := prometheus.NewRegistry()
		h := rest.NewHandler(rest.Config{Service: s, Authenticator: service.StaticToken(token), Metrics: registry})
		var lists sync.WaitGroup
		for range 4 {
			lists.Go(func() { ask(h, httptest.NewRecorder(), "GET", "/api/v1/jobs", nil) })
		}
		synctest.Wait()
		began := time.Now()
		late := httptest.NewRecorder()
		ask(h, late, "GET", "/api/v1/jobs", nil)
		busy(t, late, "4 lists are being made")
		if took := time.Since(began); took != 2*time.Second || throttled(t, registry, "lists") != 1 {
			t.Errorf("refused after %s, counted %v times", took, throttled(t, registry, "lists"))
		}
		// 64 more wait; of those beyond, none does.
		waiting := make([]*httptest.ResponseRecorder, 64)
		for i := range waiting {
			waiting[i] = httptest.NewRecorder()
			lists.Go(func() { ask(h, waiting[i], "GET", "/api/v1/jobs", nil) })
		}
		synctest.Wait()
		began = time.Now()
		beyond := httptest.NewRecorder()
		ask(h, beyond, "GET", "/api/v1/jobs", nil)
		busy(t, beyond, "4 lists are being made")
		if took := time.Since(began); took != 0 {
			t.Errorf("refused after %s", took)
		}
		other := httptest.NewRecorder()
		ask(h, other, "GET", "/api/v1/namespaces/a/jobs/x", nil)
		if other.Code != 404 {
			t.Errorf("a get is answered %d while lists wait", other.Code)
		}
		close(s.release)
		lists.Wait()
		for i, w := range waiting {
			if w.Code != 200 {
				t.Errorf("list %d, which waited, is answered %d", i, w.Code)
			}
		}
	})
}

// drip sends the beginning of a body and stops.
type drip struct {
	begin   io.Reader
	release chan struct{}
}

func (d *drip) Read(b []byte) (int, error) {
	if n, err := d.begin.Read(b); err == nil {
		return n, nil
	}
	<-d.release
	return 0, io.ErrUnexpectedEOF
}

// Bodies that do not end hold 64 MiB together; another request is asked to come
// again, and is served once there is room.
func TestSlowBodiesHoldABoundedNumberOfBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewRegistry()
		h := rest.NewHandler(rest.Config{Service: resttest.New(time.Now), Authenticator: service.StaticToken(token), Metrics: registry})
		const path = "/api/v1/namespaces/a/allocations"
		release := make(chan struct{})
		var bodies sync.WaitGroup
		for range 64 {
			bodies.Go(func() {
				ask(h, httptest.NewRecorder(), "POST", path, &drip{strings.NewReader(strings.Repeat(" ", 1<<20-1)), release})
			})
		}
		synctest.Wait()
		w := httptest.NewRecorder()
		ask(h, w, "POST", path, strings.NewReader(fmt.Sprintf(small, "a")))
		busy(t, w, "of 67108864")
		if throttled(t, registry, "bodies") != 1 {
			t.Error("the refusal is not counted")
		}
		close(release)
		bodies.Wait()
		w = httptest.NewRecorder()
		ask(h, w, "POST", path, strings.NewReader(fmt.Sprintf(small, "a")))
		if w.Code != 201 {
			t.Errorf("once there is room: %d %s", w.Code, w.Body)
		}
	})
}

// A body takes as much memory as has arrived, not as much as was announced.
func TestAnnouncedBodiesTakeNoMemory(t *testing.T) {
	s := serve(t, newHandler(t))
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for range 500 {
		c, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		fmt.Fprintf(c, "POST /api/v1/namespaces/a/allocations HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nExpect: 100-continue\r\n"+
			"Content-Type: application/json\r\nContent-Length: 1048576\r\n\r\n", token)
		answer := make([]byte, 25) // HTTP/1.1 100 Continue: the body is being read
		if _, err := io.ReadFull(c, answer); err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 100") {
			t.Fatalf("got %q, %v", answer, err)
		}
		fmt.Fprint(c, "{")
	}
	if now := heap(); now > before+64<<20 {
		t.Errorf("500 bodies of one byte take %d MiB", (now-before)>>20)
	}
}

func TestRequestsThatAreNotOfThisAPIAreRefused(t *testing.T) {
	s := serve(t, newHandler(t))
	head := "POST /api/v1/namespaces/a/allocations HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + token + "\r\nContent-Type: application/json\r\n"
	for name, c := range map[string]struct {
		request string
		code    int
		part    string
	}{
		"a compressed body":          {head + "Content-Encoding: gzip\r\nContent-Length: 10\r\n\r\n0123456789", 415, `Content-Encoding \"gzip\": send the body as it is`},
		"a body compressed twice":    {head + "Content-Encoding: identity\r\nContent-Encoding: br\r\nContent-Length: 10\r\n\r\n0123456789", 415, `\"identity,br\"`},
		"a body that is as it is":    {head + "Content-Encoding: identity\r\nContent-Length: 2\r\n\r\n{}", 422, "metadata.name"},
		"a header of 40 KiB":         {head + "X: " + strings.Repeat("x", 40<<10) + "\r\n\r\n", 431, ""},
		"4,000 headers":              {head + strings.Repeat("X: 01234567\r\n", 4000) + "\r\n", 431, ""},
		"a path of 40 KiB":           {"GET /" + strings.Repeat("x", 40<<10) + " HTTP/1.1\r\nHost: x\r\n\r\n", 431, ""},
		"headers of 24 KiB are fine": {head + "X: " + strings.Repeat("x", 24<<10) + "\r\nContent-Length: 2\r\n\r\n{}", 422, "metadata.name"},
		"a chunk of a gigabyte":      {head + "Transfer-Encoding: chunked\r\n\r\n40000000\r\n" + strings.Repeat(" ", 2<<20), 413, "larger than the limit"},
	} {
		t.Run(name, func(t *testing.T) {
			connection, err := net.Dial("tcp", s.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = connection.Close() }()
			go func() { _, _ = io.WriteString(connection, c.request) }() // the server may not read all of it
			answer, err := http.ReadResponse(bufio.NewReader(connection), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = answer.Body.Close() }()
			text, err := io.ReadAll(answer.Body)
			if answer.StatusCode != c.code || err != nil || !strings.Contains(string(text), c.part) {
				t.Errorf("got %d %s (%v), want %d with %q", answer.StatusCode, text, err, c.code, c.part)
			}
		})
	}
}

// A YAML document that refers to itself again and again is refused before it
// grows.
func TestYAMLThatGrowsIsRefused(t *testing.T) {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for at, name := range "bcdefghijk" {
		before := string("abcdefghijk"[at])
		bomb += fmt.Sprintf("%c: &%c [%s]\n", name, name, strings.TrimSuffix(strings.Repeat("*"+before+",", 10), ","))
	}
	for name, c := range map[string]struct {
		doc  string
		code int
	}{"a bomb": {bomb, 413}, "a deep tree": {strings.Repeat("[", 100_000), 400}} {
		r := httptest.NewRequest("POST", "/api/v1/namespaces/a/allocations", strings.NewReader(c.doc))
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/yaml")
		w := httptest.NewRecorder()
		newHandler(t).ServeHTTP(w, r)
		if w.Code != c.code {
			t.Errorf("%s: got %d %s, want %d", name, w.Code, w.Body, c.code)
		}
	}
}

// pipes is a listener of connections in memory, for time in a bubble.
type pipes struct {
	conns chan net.Conn
	ended chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.ended:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.ended); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// A client that stalls is cut: in its headers after 5 s, in its body after 10 s,
// in its list after 5 s.
func TestClientsThatStallAreCut(t *testing.T) {
	head := " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + token + "\r\n"
	for name, c := range map[string]struct {
		sends string
		reads int // bytes, then it stalls
		cut   time.Duration
	}{
		"before a request":            {"", 0, 5 * time.Second},
		"in the headers":              {"GET /api/v1/jobs" + head, 0, 5 * time.Second},
		"in the body":                 {"POST /api/v1/namespaces/a/jobs" + head + "Content-Type: application/json\r\nContent-Length: 9\r\n\r\n{", 12, 10 * time.Second},
		"in a body that nobody reads": {"POST /nothing HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{", 12, 10 * time.Second},
		"in the answer":               {"GET /api/v1/jobs" + head + "\r\n", 0, 5 * time.Second},
		"in the answer's midst":       {"GET /api/v1/jobs" + head + "\r\n", 100_000, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &slow{Cluster: resttest.New(time.Now), release: make(chan struct{})}
				close(s.release)
				s.list.Items = []api.Job{{Metadata: api.ObjectMeta{Name: "j", Annotations: map[string]string{"note": strings.Repeat("x", 250<<10)}}}}
				server := rest.NewServer(rest.NewHandler(rest.Config{Service: s, Authenticator: service.StaticToken(token)}), slog.New(slog.DiscardHandler))
				l := &pipes{conns: make(chan net.Conn), ended: make(chan struct{})}
				go server.Serve(l)
				defer server.Close()
				client, accepted := net.Pipe()
				ended := make(chan struct{})
				l.conns <- watched{accepted, ended, new(sync.Once)}
				began := time.Now()
				_, _ = io.WriteString(client, c.sends)
				_, _ = io.ReadFull(client, make([]byte, c.reads))
				if c.cut == 10*time.Second { // the answer to a body that did not come is read
					go func() { _, _ = io.Copy(io.Discard, client) }()
				}
				<-ended
				if took := time.Since(began); took < c.cut || took > c.cut+time.Second {
					t.Errorf("cut after %s, want %s", took, c.cut)
				}
				_ = client.Close()
			})
		})
	}
}

// watched reports when its server closes it.
type watched struct {
	net.Conn
	ended chan struct{}
	once  *sync.Once
}

func (w watched) Close() error {
	w.once.Do(func() { close(w.ended) })
	return w.Conn.Close()
}

// many has 1,203 jobs.
type many struct{ *resttest.Cluster }

func (many) ListJobs(_ context.Context, _ string, p service.Page[api.Job]) (*api.JobList, error) {
	list := new(api.JobList)
	list.Items, list.Metadata.Continue = resttest.PageOf(p, func(yield func(string) bool) {
		for i := range 1203 {
			if !yield(fmt.Sprintf("n%d/j%d", i%3, i)) {
				return
			}
		}
	}, func(key string) *api.Job {
		namespace, name, _ := strings.Cut(key, "/")
		return &api.Job{Metadata: api.ObjectMeta{Namespace: namespace, Name: name}}
	})
	return list, nil
}

// A list of more jobs than a page is the whole list to a client that follows
// continue, and each page is 500 jobs at most.
func TestListsHavePages(t *testing.T) {
	h := rest.NewHandler(rest.Config{Service: many{resttest.New(time.Now)}, Authenticator: service.StaticToken(token)})
	for parameters, want := range map[string][]int{
		"":            {500, 500, 203},
		"?limit=0":    {500, 500, 203},
		"?limit=9999": {500, 500, 203},
		"?limit=499":  {499, 499, 205},
	} {
		seen := map[string]bool{}
		more := ""
		for i := 0; i == 0 || more != ""; i++ {
			at := "/api/v1/jobs" + parameters
			if more != "" {
				at += map[bool]string{true: "&", false: "?"}[parameters != ""] + "continue=" + more
			}
			w := httptest.NewRecorder()
			ask(h, w, "GET", at, nil)
			var list api.JobList
			if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil || w.Code != 200 || i >= len(want) || len(list.Items) != want[i] {
				t.Fatalf("%s: page %d has %d objects (%d, %v), want %v", parameters, i, len(list.Items), w.Code, err, want)
			}
			for i := range list.Items {
				seen[list.Items[i].Metadata.Namespace+"/"+list.Items[i].Metadata.Name] = true
			}
			more = list.Metadata.Continue
		}
		if len(seen) != 1203 {
			t.Errorf("%s: %d different objects, want 1203", parameters, len(seen))
		}
	}
}
