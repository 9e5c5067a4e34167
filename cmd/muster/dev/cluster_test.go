package dev

import (
	"context"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/sdk"
	"github.com/musterd/muster/test/canary"
)

func start(t testing.TB, nodes int, assignments string) *Cluster {
	t.Helper()
	return startWith(t, Config{Nodes: nodes, AssignmentsDir: assignments})
}

// startWith starts a cluster of simulated nodes.
func startWith(t testing.TB, c Config) *Cluster {
	t.Helper()
	dir, log := t.TempDir(), canary.Logger(t)
	if os.Getenv("MUSTER_TEST_VERBOSE") != "" {
		log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	c.Profile, c.DataDir, c.Listen, c.Version, c.Logger = "dgx-a100", dir, "127.0.0.1:0", "test", log
	started, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := started.Stop(); err != nil {
			t.Error(err)
		}
		canary.JudgeFiles(t, dir, started.Token)
	})
	return started
}

func gang(name string, members int32) *api.Job {
	j := &api.Job{Kind: "Job", Metadata: api.ObjectMeta{Name: name}}
	j.Spec.Parallelism = &members
	j.Spec.Template.Spec.Resources.Requests = map[resource.Name]string{resource.GPU: "8", resource.CPU: "16"}
	j.Spec.Template.Spec.Scheduling.GangScheduling = &api.GangScheduling{}
	return j
}

func TestGangsAreAllOrNothingAndWaitForEachOther(t *testing.T) {
	c := start(t, 4, "")
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	jobs := c.Client.Jobs("default")
	first, err := jobs.Create(ctx, gang("first", 4), sdk.CreateOptions{Wait: time.Minute})
	if err != nil || first.Status.Phase != api.Running {
		t.Fatalf("first gang: %v, %+v", err, first)
	}
	list, err := c.Client.Allocations("").List(ctx, sdk.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, a := range list.Items {
		for _, g := range a.Status.Assignment.GPUs {
			seen[g.UUID] = true
		}
	}
	if len(list.Items) != 4 || len(seen) != 32 {
		t.Fatalf("%d members on %d distinct GPUs, want 4 on 32", len(list.Items), len(seen))
	}
	second, err := jobs.Create(ctx, gang("second", 4), sdk.CreateOptions{})
	if err != nil || second.Status.Phase != api.Queued {
		t.Fatalf("second gang: %v, %+v", err, second)
	}
	if _, err := jobs.Create(ctx, gang("big", 5), sdk.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	why, err := jobs.Explain(ctx, "big", sdk.ExplainOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Log(why.Summary)
	if _, err := jobs.Delete(ctx, "first", api.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	second, err = jobs.Get(ctx, "second", sdk.GetOptions{Wait: time.Minute})
	if err != nil || second.Status.Phase != api.Running {
		t.Fatalf("second gang after the first was deleted: %v, %+v", err, second)
	}
	big, err := jobs.Get(ctx, "big", sdk.GetOptions{})
	if err != nil || big.Status.Phase != api.Queued {
		t.Fatalf("gang of five: %v, %+v", err, big)
	}
}
