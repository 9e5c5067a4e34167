package coordinator_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/musterd/muster/agent"
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/test/rig"
)

// Why a coordinator opens no session: in the words of the job, before the agent is asked, and
// with the agent's reason.
func TestWhyThereIsNoSession(t *testing.T) {
	starts := func(c *coordinator.Config) { c.StartsWork = true }
	equip := func(c *agent.Config, _ *agent.Deps) { c.Run = &agent.RunConfig{Program: "/bin/false"} }
	bubble(t, rig.Options{Configure: starts, Equip: equip}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		create := func(name, spec string) {
			t.Helper()
			doc := []byte(`{"metadata":{"name":"` + name + `"},"spec":{` + spec + `}}`)
			j, status := api.DecodeJob(doc)
			if status != nil {
				t.Fatal(status)
			}
			if _, err := k.CreateJob(t.Context(), service.Create{Namespace: rig.Namespace, Document: doc}, j); err != nil {
				t.Fatal(err)
			}
		}
		create("silent", `"template":{"spec":{"resources":{"requests":{"cpu":"1"}}}}`)
		create("waits", `"template":{"spec":{"command":["x"],"resources":{"requests":{"cpu":"100000"}}}}`)
		create("fails", `"backoffLimit":0,"template":{"spec":{"command":["x"],"resources":{"requests":{"cpu":"1"}}}}`)
		c.Eventually("the job has ended", func() bool {
			j, err := k.GetJob(t.Context(), rig.Namespace, "fails", 0)
			return err == nil && j.Status.Phase == api.Failed
		})
		for job, c := range map[string]struct {
			member, code int
			want         string
		}{
			"silent": {0, 422, "job silent has no command"},
			"waits":  {0, 409, "member 0 of job waits does not run: the member is Pending"},
			"fails":  {0, 409, "member 0 of job fails does not run: the member is Failed"},
			"none":   {0, 404, "job none not found"},
		} {
			_, err := k.JobExec(t.Context(), rig.Namespace, job, service.ExecQuery{Member: c.member, Command: []string{"true"}})
			var status *api.Status
			if !errors.As(err, &status) || status.Code != c.code || !strings.Contains(status.Message, c.want) {
				t.Errorf("%s: %v, want %d %s", job, err, c.code, c.want)
			}
		}
		_, err := k.JobExec(t.Context(), rig.Namespace, "waits", service.ExecQuery{Member: 1, Command: []string{"true"}})
		var status *api.Status
		if !errors.As(err, &status) || status.Code != 422 || !strings.Contains(status.Message, "member: 1: job waits has the members 0..0") {
			t.Errorf("a member that is not there: %v", err)
		}
	})
}
