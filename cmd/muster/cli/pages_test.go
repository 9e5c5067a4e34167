package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/rest"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/test/resttest"
)

// crowd has 1,203 jobs, of which one in three runs.
type crowd struct{ *resttest.Cluster }

func (crowd) ListJobs(_ context.Context, _ string, p service.Page[api.Job]) (*api.JobList, error) {
	list := new(api.JobList)
	list.Items, list.Metadata.Continue = resttest.PageOf(p, func(yield func(string) bool) {
		for i := range 1203 {
			if !yield(fmt.Sprintf("default/j%04d", i)) {
				return
			}
		}
	}, func(key string) *api.Job {
		j := &api.Job{Metadata: api.ObjectMeta{Namespace: "default", Name: strings.TrimPrefix(key, "default/")}}
		j.Status.Phase = api.Queued
		if strings.HasSuffix(key, "0") || strings.HasSuffix(key, "5") {
			j.Status.Phase = api.Running
		}
		return j
	})
	return list, nil
}

// The pages of the server are the CLI's business: a person sees the whole list.
func TestGetShowsListsOfMoreThanAPage(t *testing.T) {
	server := httptest.NewServer(rest.NewHandler(rest.Config{Service: crowd{resttest.New(time.Now)}, Authenticator: service.StaticToken(token)}))
	defer server.Close()
	s := newShell(t, server)
	for name, c := range map[string]struct {
		args []string
		want int
	}{
		"all":                {[]string{"get", "jobs"}, 1203},
		"those that run":     {[]string{"get", "jobs", "--field-selector", "status.phase=Running"}, 241},
		"no more than asked": {[]string{"get", "jobs", "--limit", "700"}, 700},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errors := s.run(t.Context(), "", append(c.args, "-o", "json")...)
			var list api.JobList
			if err := json.Unmarshal([]byte(out), &list); err != nil || code != 0 || len(list.Items) != c.want {
				t.Errorf("%d jobs (exit %d, %s, %v), want %d", len(list.Items), code, errors, err, c.want)
			}
			if code, out, _ := s.run(t.Context(), "", c.args...); code != 0 || strings.Count(out, "\n") != c.want+1 {
				t.Errorf("the table has %d lines, want %d and its head", strings.Count(out, "\n"), c.want)
			}
		})
	}
}
