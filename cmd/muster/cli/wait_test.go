package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/musterd/muster/api"
)

// answering is a server that creates everything but what is called "refused",
// and shows every object in one phase. created counts.
func answering(t *testing.T, phase api.Phase) (server *httptest.Server, created *atomic.Int32) {
	created = new(atomic.Int32)
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := api.Allocation{
			APIVersion: api.APIVersion, Kind: api.KindAllocation,
			Metadata: api.ObjectMeta{Name: "a", Namespace: "default"}, Status: api.AllocationStatus{Phase: phase},
		}
		if r.Method == http.MethodPost {
			if err := json.NewDecoder(r.Body).Decode(&a); err != nil {
				t.Error(err)
			}
			if a.Metadata.Name == "refused" {
				w.WriteHeader(http.StatusConflict)
				_ = json.NewEncoder(w).Encode(api.Errorf(http.StatusConflict, "there is one already"))
				return
			}
			created.Add(1)
			a.Metadata.Namespace, a.Status.Phase = "default", phase
			w.WriteHeader(http.StatusCreated)
		}
		_ = json.NewEncoder(w).Encode(a)
	}))
	t.Cleanup(server.Close)
	return server, created
}

const oneCPU = `{"kind":"Allocation","metadata":{"name":"%s"},"spec":{"resources":{"requests":{"cpu":"1"}}}}`

// TestSubmitAndWaitSaysHowItEnded by its exit code, on which scripts rely.
func TestSubmitAndWaitSaysHowItEnded(t *testing.T) {
	for phase, want := range map[api.Phase]struct {
		code   int
		stderr string
	}{
		api.Running: {ExitDone, ""}, api.Succeeded: {ExitDone, ""}, api.Terminating: {ExitDone, ""},
		api.Failed: {ExitFailed, "default/a has ended: Failed"}, api.Cancelled: {ExitFailed, "default/a has ended: Cancelled"},
		api.Preempted: {ExitFailed, "default/a has ended: Preempted"},
		api.Queued:    {ExitFailed, "default/a is still Queued when the time of --timeout is up"},
	} {
		t.Run(string(phase), func(t *testing.T) {
			server, _ := answering(t, phase)
			code, stdout, stderr := newShell(t, server).run(t.Context(), fmt.Sprintf(oneCPU, "a"), "submit", "-f", "-", "--wait", "--timeout", "50ms")
			if code != want.code || !strings.Contains(stderr, want.stderr) || !strings.Contains(stdout, string(phase)) {
				t.Errorf("exit %d, %q and %q; want %d and %q", code, stdout, stderr, want.code, want.stderr)
			}
		})
	}
}

func TestSubmitEndsAtTheFirstFailure(t *testing.T) {
	server, created := answering(t, api.Running)
	docs := fmt.Sprintf(oneCPU, "first") + fmt.Sprintf(oneCPU, "refused") + fmt.Sprintf(oneCPU, "third")
	code, stdout, stderr := newShell(t, server).run(t.Context(), docs, "submit", "-f", "-", "-o", "name")
	if code != ExitFailed || !strings.Contains(stderr, "default/refused") || strings.TrimSpace(stdout) != "allocation/first" {
		t.Errorf("exit %d, %q and %q", code, stdout, stderr)
	}
	if n := created.Load(); n != 1 {
		t.Errorf("%d objects were created, want the one before the failure", n)
	}
}

// TestDeleteAndWaitEndsWithTheObject, which may be shown after its end.
func TestDeleteAndWaitEndsWithTheObject(t *testing.T) {
	for phase, want := range map[api.Phase]struct {
		code   int
		stderr string
	}{
		api.Failed: {ExitDone, ""}, api.Succeeded: {ExitDone, ""}, api.Cancelled: {ExitDone, ""},
		api.Terminating: {ExitFailed, "default/a is still Terminating when the time of --timeout is up"},
		api.Running:     {ExitFailed, "default/a is still Running when the time of --timeout is up"},
	} {
		t.Run(string(phase), func(t *testing.T) {
			server, _ := answering(t, phase)
			code, _, stderr := newShell(t, server).run(t.Context(), "", "delete", "allocation", "a", "--wait", "--timeout", "50ms")
			if code != want.code || !strings.Contains(stderr, want.stderr) {
				t.Errorf("exit %d, %q; want %d and %q", code, stderr, want.code, want.stderr)
			}
		})
	}
}

// A coordinator that cannot answer for a moment ends no wait.
func TestDeleteAndWaitOutlastsACoordinatorThatIsBehind(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodDelete:
			_ = json.NewEncoder(w).Encode(api.Allocation{Kind: api.KindAllocation, Metadata: api.ObjectMeta{Name: "a", Namespace: "default"}, Status: api.AllocationStatus{Phase: api.Terminating}})
		case asked.Add(1) <= 2:
			w.WriteHeader(http.StatusServiceUnavailable)
			_ = json.NewEncoder(w).Encode(api.Errorf(http.StatusServiceUnavailable, "this coordinator has not caught up with the store; ask again"))
		default:
			w.WriteHeader(http.StatusNotFound)
			_ = json.NewEncoder(w).Encode(api.Errorf(http.StatusNotFound, "allocation a not found"))
		}
	}))
	t.Cleanup(server.Close)
	code, _, stderr := newShell(t, server).run(t.Context(), "", "delete", "allocation", "a", "--wait", "--timeout", "1m")
	if code != ExitDone || asked.Load() < 3 {
		t.Errorf("exit %d after %d questions: %s", code, asked.Load(), stderr)
	}
}
