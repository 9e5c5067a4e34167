package rest_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/follow"
	"github.com/musterd/muster/coordinator/objects"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/rest"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/coordinator/store/mem"
	"github.com/musterd/muster/resource"
)

// watches serves the watches of a follower.
type watches struct{ *follow.Follower }

func (w watches) Watch(ctx context.Context, o objects.WatchOptions) (service.Watch, error) {
	got, err := w.Follower.Watch(ctx, o)
	if err != nil {
		return nil, api.Errorf(http.StatusGone, "%v", err)
	}
	return got, nil
}

// watchedStore is a coordinator whose store a test writes.
type watchedStore struct {
	url  string
	back *mem.Store
}

func startWatched(t *testing.T) watchedStore {
	t.Helper()
	return startWatchedWith(t, full())
}

// startWatchedWith serves the watches of a store beside another service.
func startWatchedWith(t *testing.T, beside service.Service) watchedStore {
	t.Helper()
	w := watchedStore{back: mem.Open(mem.Options{})}
	f := follow.New(follow.Options{
		Store: w.back, Log: slog.New(slog.DiscardHandler), Check: time.Second, Leads: func() bool { return false },
		Moved: func(resource.Revision) {}, Registered: func(follow.News) {}, Forget: func(context.Context, *record.WentBackError) {},
	})
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { f.Run(ctx); close(done) }()
	w.put(t, "zero", api.Pending, "none")
	server := httptest.NewServer(rest.NewHandler(rest.Config{Service: beside, Authenticator: service.StaticToken(token), Watches: watches{f}}))
	w.url = server.URL
	t.Cleanup(func() { server.CloseClientConnections(); server.Close(); stop(); <-done })
	return w
}

// put writes an allocation.
func (w watchedStore) put(t *testing.T, name string, phase api.Phase, team string) resource.Revision {
	t.Helper()
	unit := record.Unit{
		UID: resource.UnitUID("uid-" + name), Kind: record.AllocUnit, Namespace: "ml", Name: name, Tenant: "ml", Queue: "default", Phase: string(phase), Members: 1,
		Document: fmt.Appendf(nil, `{"metadata":{"name":%q,"labels":{"team":%q}},"spec":{"resources":{"requests":{"cpu":"1"}}}}`, name, team),
	}
	r, err := w.back.Txn(t.Context(), record.Txn{Then: []record.Op{record.Put(unit.Path().Key(), record.MustEncode(unit))}})
	if err != nil {
		t.Fatal(err)
	}
	return r.Revision
}

func (w watchedStore) remove(t *testing.T, name string) {
	t.Helper()
	key := record.UnitPath{Namespace: "ml", Kind: record.AllocUnit, Name: name}.Key()
	if _, err := w.back.Txn(t.Context(), record.Txn{Then: []record.Op{record.Delete(key)}}); err != nil {
		t.Fatal(err)
	}
}

// ask sends a request for a watch.
func (w watchedStore) ask(t *testing.T, query string, header ...string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url+"/api/v1/namespaces/ml/allocations?watch=true"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	return answer
}

// told reads the next n lines of a watch that are not empty: events in one line,
// objects shortened.
func told(t *testing.T, r *bufio.Reader, n int) (lines []string) {
	t.Helper()
	for id := ""; len(lines) < n; {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatalf("%v after %q", err, lines)
		}
		line = strings.TrimSuffix(line, "\n")
		if text, is := strings.CutPrefix(line, "id: "); is {
			id = text + " "
			continue
		}
		text, is := strings.CutPrefix(line, "data: ")
		if !is {
			continue
		}
		var event struct {
			Type   string
			Object api.Allocation
		}
		if err := json.Unmarshal([]byte(text), &event); err != nil {
			t.Fatal(err)
		}
		m := event.Object.Metadata
		lines = append(lines, strings.TrimRight(fmt.Sprintf("%s%s %s@%s %s", id, event.Type, m.Name, m.ResourceVersion, event.Object.Status.Phase), " "))
		id = ""
	}
	return lines
}

func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestAWatchTellsEachChange(t *testing.T) {
	w := startWatched(t)
	answer := w.ask(t, "")
	if got := answer.Header.Get("Content-Type"); got != "text/event-stream" || answer.StatusCode != 200 {
		t.Fatalf("%d %s", answer.StatusCode, got)
	}
	events := bufio.NewReader(answer.Body)
	expect(t, told(t, events, 2), "ADDED zero@2 Pending", "2 BOOKMARK @2")
	w.put(t, "a", api.Pending, "x")
	w.put(t, "a", api.Running, "x")
	w.put(t, "a", api.Running, "x") // which changes the version alone
	w.remove(t, "a")
	expect(t, told(t, events, 4), "3.0 ADDED a@3 Pending", "4.0 MODIFIED a@4 Running", "5.0 MODIFIED a@5 Running", "6.0 DELETED a@6 Running")

	t.Run("a client that was cut off goes on", func(t *testing.T) {
		again := bufio.NewReader(w.ask(t, "", "Last-Event-ID", "4.0").Body)
		expect(t, told(t, again, 2), "5.0 MODIFIED a@5 Running", "6.0 DELETED a@6 Running")
	})
	t.Run("the header counts more than the query", func(t *testing.T) {
		again := bufio.NewReader(w.ask(t, "&resourceVersion=2", "Last-Event-ID", "5").Body)
		expect(t, told(t, again, 1), "6.0 DELETED a@6 Running")
	})
	t.Run("after a list", func(t *testing.T) {
		again := bufio.NewReader(w.ask(t, "&resourceVersion=3").Body)
		expect(t, told(t, again, 1), "4.0 MODIFIED a@4 Running")
	})
}

func TestASelectorThatStopsMatchingSendsDeleted(t *testing.T) {
	w := startWatched(t)
	team := bufio.NewReader(w.ask(t, "&labelSelector=team%3Dx").Body)
	phase := bufio.NewReader(w.ask(t, "&fieldSelector=status.phase%3DRunning").Body)
	expect(t, told(t, team, 1), "2 BOOKMARK @2")
	expect(t, told(t, phase, 1), "2 BOOKMARK @2")
	w.put(t, "a", api.Pending, "x")
	w.put(t, "a", api.Running, "x")
	w.put(t, "a", api.Running, "y")
	w.put(t, "a", api.Terminating, "x")
	expect(t, told(t, team, 4), "3.0 ADDED a@3 Pending", "4.0 MODIFIED a@4 Running", "5.0 DELETED a@5 Running", "6.0 ADDED a@6 Terminating")
	expect(t, told(t, phase, 3), "4.0 ADDED a@4 Running", "5.0 MODIFIED a@5 Running", "6.0 DELETED a@6 Running")
}

func TestAWatchAsLinesOfJSON(t *testing.T) {
	w := startWatched(t)
	answer := w.ask(t, "", "Accept", "application/json, */*")
	if got := answer.Header.Get("Content-Type"); got != "application/json" {
		t.Errorf("content type %s", got)
	}
	w.put(t, "a", api.Pending, "x")
	lines := bufio.NewReader(answer.Body)
	for _, want := range []string{`{"type":"ADDED","object":{"apiVersion":`, `{"type":"BOOKMARK","object":{"kind":"Allocation","apiVersion":"` + api.APIVersion + `","metadata":{"resourceVersion":"2"}},"id":"2"}`, `{"type":"ADDED","object":{"apiVersion":`} {
		line, err := lines.ReadString('\n')
		if err != nil || !strings.HasPrefix(line, want) {
			t.Errorf("%s, %v; want %s…", line, err, want)
		}
		if want[9:14] == "ADDED" && !strings.Contains(line, `"uid":"uid-`) {
			t.Errorf("%s is no allocation", line)
		}
	}
}

func TestAWatchThatCannotBegin(t *testing.T) {
	w := startWatched(t)
	for name, c := range map[string]struct {
		query  string
		header []string
		code   int
		want   string
	}{
		"no number":        {"&resourceVersion=x", nil, 400, `query parameter resourceVersion="x": want a revision of the store, or REVISION.INDEX as the id of an event has it`},
		"no index":         {"", []string{"Last-Event-ID", "3.x"}, 400, `header Last-Event-ID="3.x": the index behind the point is not a whole number from 0 to 2147483647`},
		"a limit":          {"&limit=3", nil, 400, "a watch takes no limit and no continue"},
		"an unknown field": {"&fieldSelector=spec.x%3D1", nil, 400, `unknown field "spec.x"`},
		"the future":       {"&resourceVersion=99", nil, 410, "the store is at revision 2 and not yet at 99"},
	} {
		t.Run(name, func(t *testing.T) {
			answer := w.ask(t, c.query, c.header...)
			body, err := io.ReadAll(answer.Body)
			var status api.Status
			if err == nil {
				err = json.Unmarshal(body, &status)
			}
			if err != nil || answer.StatusCode != c.code || !strings.Contains(status.Message, c.want) {
				t.Errorf("%d %s %v, want %d %s", answer.StatusCode, body, err, c.code, c.want)
			}
		})
	}
}
