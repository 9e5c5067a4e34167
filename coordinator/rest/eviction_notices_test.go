package rest_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/resttest"
)

// evict writes an allocation of a node whose record is EVICTING, or another state.
func (w watchedStore) evict(t *testing.T, name string, node resource.NodeID, state grant.RecordState, grace int64) {
	t.Helper()
	unit := record.Unit{
		UID: resource.UnitUID("uid-" + name), Kind: record.AllocUnit, Namespace: "ml", Name: name, Tenant: "ml", Queue: "default", Phase: string(api.Terminating), Members: 1,
		TxID: resource.TxID("uid-" + name + ".1.1.00000000000000000000000000000001"), Reason: "Preempted by higher priority job", Started: "2024-01-15T10:00:00Z",
		Document: []byte(`{"metadata":{"name":"` + name + `"},"spec":{"resources":{"requests":{"cpu":"1"}}}}`),
	}
	rec := record.Tx{
		State: state, Epoch: 1, Unit: unit.Path(), UnitUID: unit.UID, Tenant: "ml", Reason: unit.Reason, GraceSeconds: grace,
		Evicted: state == grant.RecordEvicting, EndingMillis: time.Date(2024, 1, 15, 10, 35, 0, 0, time.UTC).UnixMilli(),
		Members: []record.Placement{{Node: node, Assignment: resource.Assignment{CPUs: []resource.CPUGrant{{ID: 1, Milli: 1000}}}}},
	}
	if state == grant.RecordCommitted {
		unit.Phase, rec.Reason, rec.GraceSeconds, rec.EndingMillis = string(api.Running), "", 0, 0
	}
	if _, err := w.back.Txn(t.Context(), record.Txn{Then: []record.Op{
		record.Put(unit.Path().Key(), record.MustEncode(unit)), record.Put(record.TxKey(unit.TxID), record.MustEncode(rec)),
	}}); err != nil {
		t.Fatal(err)
	}
}

// notices asks for the notices on n1.
func (w watchedStore) notices(t *testing.T, header ...string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url+"/api/v1/nodes/n1/evictions?watch=true", nil)
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

// An agent without gRPC reads one JSON document a notice: of its own node alone, of
// evictions alone, and each once.
func TestTheNoticesOfANodeAreStreamed(t *testing.T) {
	w := startWatchedWith(t, resttest.New(time.Now, resttest.Node{Name: "n1", CPUs: 4, Memory: 8 << 30}))
	w.evict(t, "before", "n1", grant.RecordEvicting, 30)
	answer := w.notices(t)
	if got := answer.Header.Get("Content-Type"); got != "application/json" || answer.StatusCode != http.StatusOK {
		t.Fatalf("%d %s", answer.StatusCode, got)
	}
	lines := bufio.NewReader(answer.Body)
	next := func() (n api.EvictionNotice) {
		t.Helper()
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(line), &n); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			if n.Type != "BOOKMARK" {
				return n
			}
		}
	}
	want := api.EvictionNotice{
		Type: "EVICTION", Allocation: "before", Namespace: "ml", Transaction: "uid-before.1.1.00000000000000000000000000000001",
		Reason: "Preempted by higher priority job", GracePeriodSeconds: 30, Deadline: "2024-01-15T10:35:30Z",
	}
	if diff := cmp.Diff(want, next()); diff != "" {
		t.Errorf("the notice that stood (-want +got)\n%s", diff)
	}
	w.evict(t, "runs", "n1", grant.RecordCommitted, 0)
	w.evict(t, "released", "n1", grant.RecordReleasing, 5) // by its owner
	w.evict(t, "elsewhere", "n2", grant.RecordEvicting, 30)
	w.evict(t, "runs", "n1", grant.RecordEvicting, 60)
	w.evict(t, "runs", "n1", grant.RecordEvicting, 60) // written once more
	w.evict(t, "last", "n1", grant.RecordEvicting, 0)
	for _, want := range []struct{ name, deadline, at string }{{"runs", "2024-01-15T10:36:00Z", "7."}, {"last", "2024-01-15T10:35:00Z", "9."}} {
		if got := next(); got.Allocation != want.name || got.Deadline != want.deadline || !strings.HasPrefix(got.ResourceVersion, want.at) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

// Clients of Server-Sent Events go on behind the last event that they have.
func TestTheNoticesOfANodeAsEvents(t *testing.T) {
	w := startWatchedWith(t, resttest.New(time.Now, resttest.Node{Name: "n1", CPUs: 4, Memory: 8 << 30}))
	w.evict(t, "a", "n1", grant.RecordEvicting, 30)
	w.evict(t, "b", "n1", grant.RecordEvicting, 30)
	answer := w.notices(t, "Accept", "text/event-stream", "Last-Event-ID", "2")
	if got := answer.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Fatalf("%d %s", answer.StatusCode, got)
	}
	events := bufio.NewReader(answer.Body)
	var got []string
	for len(got) < 4 {
		line, err := events.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		line, _, _ = strings.Cut(line, ".") // the number within a revision is the history's
		if line = strings.TrimSpace(line); line != "" {
			got = append(got, line[:min(len(line), 42)])
		}
	}
	expect(t, got, "id: 3", `data: {"type":"EVICTION","allocation":"a",`, "id: 4", `data: {"type":"EVICTION","allocation":"b",`)
}
