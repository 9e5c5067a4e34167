package rest_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/rest"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/test/resttest"
)

// eventsOf lists the events at a path, by their object and reason.
func eventsOf(t *testing.T, h http.Handler, path, bearer string) (all []api.Event) {
	t.Helper()
	answer := sendExample(h, "GET", path, bearer)
	if answer.Code != http.StatusOK {
		t.Fatalf("%s: %d %s", path, answer.Code, answer.Body)
	}
	var list api.EventList
	if err := json.Unmarshal(answer.Body.Bytes(), &list); err != nil {
		t.Fatal(err)
	}
	if list.Metadata.Since == "" || list.Metadata.ResourceVersion == "" {
		t.Errorf("%s: the list has the metadata %+v, want since and resourceVersion", path, list.Metadata)
	}
	return list.Items
}

// TestEventsNameNoWorkOfOtherTenants: a tenant's allocation takes the place of another
// tenant's. Each of the two sees that in its own events, with the number of GPUs and
// the priority, and no name of the other's work.
func TestEventsNameNoWorkOfOtherTenants(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	h := checkedHandler(t, rest.Config{
		Service:       resttest.New(func() time.Time { now = now.Add(time.Second); return now }, resttest.Node{Name: "gpu-1", CPUs: 16, Memory: 64 << 30, GPUs: 4}),
		Authenticator: callers{service.StaticToken(token)},
	})
	for _, made := range []string{
		`/api/v1/namespaces/vision/allocations {"metadata": {"name": "pictures"}, "spec": {"resources": {"requests": {"nvidia.com/gpu": "4"}}}}`,
		`/api/v1/namespaces/speech/allocations {"metadata": {"name": "voices"}, "spec": {"priority": 300, "preemptionPolicy": "PreemptLowerPriority", "resources": {"requests": {"nvidia.com/gpu": "3"}}}}`,
	} {
		if answer := sendExample(h, "POST", made, token); answer.Code != http.StatusCreated {
			t.Fatalf("%s: %d %s", made, answer.Code, answer.Body)
		}
	}
	reasons := map[string]string{}
	for path, foreign := range map[string][]string{
		"/api/v1/namespaces/vision/events": {"speech", "voices"},
		"/api/v1/namespaces/speech/events": {"vision", "pictures"},
	} {
		all := eventsOf(t, h, path, token)
		if len(all) == 0 {
			t.Errorf("%s: there are no events", path)
		}
		for _, e := range all {
			reasons[e.InvolvedObject.Name+" "+e.Reason] = e.Message
			for _, name := range foreign {
				if text, err := json.Marshal(e); err != nil || strings.Contains(string(text), name) {
					t.Errorf("%s: %s names %q", path, text, name)
				}
			}
		}
	}
	if got := reasons["pictures Evicted"]; !strings.Contains(got, "3 GPUs") || !strings.Contains(got, "300") {
		t.Errorf("the victim is given the reason %q, want the GPUs and the priority: %q", got, reasons)
	}
}

// TestWhoReadsWhichEvents: a tenant reads those of its own namespaces; those of nodes
// and of all namespaces are for admins.
func TestWhoReadsWhichEvents(t *testing.T) {
	h := documentedWorld(t)
	for what, c := range map[string]struct {
		path, bearer string
		want         int
	}{
		"a tenant, its own namespace":         {"/api/v1/namespaces/vision/events", tenantToken, 200},
		"a tenant, another one's namespace":   {"/api/v1/namespaces/default/events", tenantToken, 404}, // as if it were not there,
		"a tenant, all namespaces":            {"/api/v1/events", tenantToken, 403},
		"a tenant, a watch of all namespaces": {"/api/v1/events?watch=true", tenantToken, 403},
		"a tenant, an event of a node":        {"/api/v1/events/gpu-1.0123456789abcdef", tenantToken, 403},
		"an admin, all namespaces":            {"/api/v1/events", token, 200},
		"nobody":                              {"/api/v1/namespaces/vision/events", "", 401},
		"no namespace can have the name":      {"/api/v1/namespaces/A_B/events", token, 400},
		"a page, and a watch":                 {"/api/v1/events?watch=true&limit=1", token, 422},
		"a field that events do not have":     {"/api/v1/events?fieldSelector=count%3D1", token, 400},
	} {
		t.Run(what, func(t *testing.T) {
			if answer := sendExample(h, "GET", c.path, c.bearer); answer.Code != c.want {
				t.Errorf("%s: %d %s, want %d", c.path, answer.Code, answer.Body, c.want)
			}
		})
	}
}

// TestEventsAreSelected: by the fields of kubectl, and page by page.
func TestEventsAreSelected(t *testing.T) {
	h := documentedWorld(t)
	for selector, want := range map[string]int{
		"involvedObject.kind%3DJob,involvedObject.name%3Dtrain":                3,
		"involvedObject.kind%3DJob,involvedObject.name%3Dtrain,reason%3DReady": 1,
		"involvedObject.name%3Dtrai":                                           0,
		"type%3DWarning,involvedObject.name%3Dtrain":                           0,
		"involvedObject.name!%3Dtrain,involvedObject.kind%3DJob":               0,
	} {
		if got := eventsOf(t, h, "/api/v1/namespaces/default/events?fieldSelector="+selector, token); len(got) != want {
			t.Errorf("%s selects %d events, want %d: %+v", selector, len(got), want, got)
		}
	}
	all := eventsOf(t, h, "/api/v1/events", token)
	var paged []api.Event
	for more := ""; ; {
		answer := sendExample(h, "GET", "/api/v1/events?limit=3&continue="+more, token)
		var list api.EventList
		if err := json.Unmarshal(answer.Body.Bytes(), &list); err != nil {
			t.Fatal(err)
		}
		paged = append(paged, list.Items...)
		if more = list.Metadata.Continue; more == "" {
			break
		}
	}
	if len(all) < 7 || len(paged) != len(all) {
		t.Errorf("pages have %d events, the whole list %d", len(paged), len(all))
	}
	one := all[len(all)-1]
	path := "/api/v1/namespaces/" + one.Metadata.Namespace + "/events/" + one.Metadata.Name
	if answer := sendExample(h, "GET", path, token); answer.Code != http.StatusOK || !strings.Contains(answer.Body.String(), one.Message) {
		t.Errorf("%s: %d %s, want %q", path, answer.Code, answer.Body, one.Message)
	}
}
