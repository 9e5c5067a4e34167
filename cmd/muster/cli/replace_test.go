package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/musterd/muster/api"
)

// TestSubmitReplacesOnlyWhatHasEnded: the object of the same name is removed by its uid
// and gone before the new one is created; one that has not ended stays.
func TestSubmitReplacesOnlyWhatHasEnded(t *testing.T) {
	for name, c := range map[string]struct {
		phase  api.Phase // of the object of the same name, "" for none
		code   int
		stderr string
		asked  []string
	}{
		"there is none":   {"", ExitDone, "", []string{"GET", "POST"}},
		"it has ended":    {api.Preempted, ExitDone, "", []string{"GET", "DELETE u1", "GET", "POST"}},
		"it is running":   {api.Running, ExitFailed, "it is Running: --replace removes only an object that has ended; end it first: muster delete allocation a", []string{"GET"}},
		"it still leaves": {api.Terminating, ExitFailed, "it is Terminating", []string{"GET"}},
	} {
		t.Run(name, func(t *testing.T) {
			there, asked := c.phase, []string(nil)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				a := api.Allocation{APIVersion: api.APIVersion, Kind: api.KindAllocation, Metadata: api.ObjectMeta{Name: "a", Namespace: "default", UID: "u1"}}
				a.Status.Phase = there
				said := r.Method
				switch r.Method {
				case http.MethodPost:
					a.Metadata.UID, a.Status.Phase = "u2", api.Running
					w.WriteHeader(http.StatusCreated)
				case http.MethodDelete:
					var o api.DeleteOptions
					if err := json.NewDecoder(r.Body).Decode(&o); err != nil || o.Preconditions == nil {
						t.Errorf("a deletion without preconditions: %v", err)
					} else {
						said += " " + o.Preconditions.UID
					}
					there = ""
				case http.MethodGet:
					if there == "" {
						asked = append(asked, said)
						w.WriteHeader(http.StatusNotFound)
						_ = json.NewEncoder(w).Encode(api.Errorf(http.StatusNotFound, "there is none"))
						return
					}
				}
				asked = append(asked, said)
				_ = json.NewEncoder(w).Encode(a)
			}))
			t.Cleanup(server.Close)
			code, _, stderr := newShell(t, server).run(t.Context(), fmt.Sprintf(oneCPU, "a"), "submit", "-f", "-", "--replace", "-o", "name")
			if code != c.code || !strings.Contains(stderr, c.stderr) {
				t.Errorf("exit %d, %q; want %d and %q", code, stderr, c.code, c.stderr)
			}
			if !slices.Equal(asked, c.asked) {
				t.Errorf("the server was asked %q, want %q", asked, c.asked)
			}
		})
	}
}
