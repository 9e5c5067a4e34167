package coordinator_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterd/muster/agent"
	"github.com/musterd/muster/agent/users"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator"
	"github.com/musterd/muster/coordinator/service"
	"github.com/musterd/muster/test/rig"
)

// A follower asks the agent by itself. The agents have no user for the tenant of the job,
// and the folder of the start is gone, which is what the reader gets to know.
func TestAFollowerReadsOutputFromTheAgent(t *testing.T) {
	starts := func(c *coordinator.Config) { c.StartsWork = true }
	var data string
	equip := func(c *agent.Config, _ *agent.Deps) {
		data = c.DataDir
		none, err := users.NewTable(nil, false, users.Lookup)
		if err != nil {
			t.Error(err)
		}
		c.Run = &agent.RunConfig{Program: "/bin/false", Users: none}
	}
	bubble(t, rig.Options{Configure: starts, Equip: equip}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		f := c.StartCoordinator("c2")
		c.Eventually("the follower is ready", func() bool { return f.Ready(t.Context()) == nil })
		doc := []byte(`{"metadata":{"name":"train"},"spec":{"backoffLimit":0,"template":{"spec":{"command":["train"],"resources":{"requests":{"cpu":"1"}}}}}}`)
		j, status := api.DecodeJob(doc)
		if status != nil {
			t.Fatal(status)
		}
		if _, err := k.CreateJob(t.Context(), service.Create{Namespace: rig.Namespace, Document: doc}, j); err != nil {
			t.Fatal(err)
		}
		c.Eventually("the job has ended", func() bool {
			j, err := f.GetJob(t.Context(), rig.Namespace, "train", 0)
			return err == nil && j.Status.Phase == api.Failed
		})
		if err := os.RemoveAll(filepath.Join(data, "run")); err != nil {
			t.Fatal(err)
		}
		for name, q := range map[string]service.LogQuery{"all": {AllMembers: true}, "one": {Member: 0}, "followed": {AllMembers: true, Follow: true}} {
			s, err := f.JobLogs(t.Context(), rig.Namespace, "train", q)
			if err != nil {
				t.Fatal(err)
			}
			piece, err := s.Next(t.Context())
			if err != nil || !strings.Contains(piece.Message, "has no output of member 0") || piece.Node == "" {
				t.Errorf("%s: %+v, %v, want why there is no output", name, piece, err)
			}
			if _, err := s.Next(t.Context()); !errors.Is(err, io.EOF) {
				t.Errorf("%s: the output ends with %v, want the end", name, err)
			}
			s.Close()
		}
	})
}

func TestOutputThatNobodyKeepsIsRefused(t *testing.T) {
	noted := 0
	var unwritable error
	configure := func(c *coordinator.Config) {
		c.StartsWork = true
		c.Note = func(ctx context.Context) error { noted++; return unwritable }
	}
	bubble(t, rig.Options{Configure: configure}, func(t *testing.T, c *rig.Cluster) {
		k := c.Bring(1)
		if _, _, err := k.Job(t.Context(), rig.Submission{Name: "quiet", GPUs: 1, Members: 2}); err != nil {
			t.Fatal(err)
		}
		refused := func(name string, q service.LogQuery, code int, text string) {
			t.Helper()
			_, err := k.JobLogs(t.Context(), rig.Namespace, name, q)
			var status *api.Status
			if !errors.As(err, &status) || status.Code != code || !strings.Contains(status.Message, text) {
				t.Errorf("%s: %v, want %d with %q", name, err, code, text)
			}
		}
		refused("nothing", service.LogQuery{}, 404, "job nothing not found")
		refused("quiet", service.LogQuery{}, 422, "has no command")
		doc := []byte(`{"metadata":{"name":"train"},"spec":{"parallelism":300,"template":{"spec":{"command":["train"],"resources":{"requests":{"cpu":"1"}}}}}}`)
		j, status := api.DecodeJob(doc)
		if status != nil {
			t.Fatal(status)
		}
		if _, err := k.CreateJob(t.Context(), service.Create{Namespace: rig.Namespace, Document: doc}, j); err != nil {
			t.Fatal(err)
		}
		refused("train", service.LogQuery{AllMembers: true}, 422, "name a member")
		refused("train", service.LogQuery{Member: 300}, 422, "has the members 0..299")
		if noted != 0 {
			t.Errorf("%d refused requests are in the audit as done", noted)
		}
		unwritable = errors.New("the store is away")
		refused("train", service.LogQuery{Member: 1}, 503, "the audit cannot be written")
	})
}
