package work

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/agent"
	"github.com/musterd/muster/agent/script"
	"github.com/musterd/muster/agent/shim"
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/sdk"
)

// hostScript writes a script of the host and returns what runs it around members.
func hostScript(t *testing.T, text string) func(context.Context, shim.Folder, []string) error {
	path := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
		t.Fatal(err)
	}
	return func(ctx context.Context, _ shim.Folder, env []string) error {
		return script.Run(ctx, path, env, time.Minute)
	}
}

// tainted waits until some node has the taint of a failed script, and returns its name.
func (w *world) tainted(value string) string {
	w.t.Helper()
	for {
		nodes, err := w.cluster.Client.Nodes().List(w.ctx, sdk.ListOptions{})
		if err != nil {
			w.t.Fatalf("no node has the taint script-failed=%s: %v", value, err)
		}
		for _, n := range nodes.Items {
			if slices.ContainsFunc(n.Spec.Taints, func(t api.Taint) bool {
				return t.Key == "muster.dev/script-failed" && t.Value == value && t.Effect == "NoSchedule"
			}) {
				return n.Metadata.Name
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// TestAPrologThatFailsMovesTheJobToAnotherNode: the job has no retry and needs none; the
// node takes no work until the operator takes its taint off.
func TestAPrologThatFailsMovesTheJobToAnotherNode(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	// The first run fails, and each run leaves a line.
	w := openWith(t, 2, agent.RunConfig{
		Program: self,
		Prolog:  hostScript(t, fmt.Sprintf(`echo "prolog $MUSTER_MEMBER" >> %[1]s/diary; mkdir %[1]s/first 2> /dev/null && { echo the scratch disk is full; exit 7; }; exit 0`, dir)),
		Epilog:  hostScript(t, fmt.Sprintf(`echo "epilog $MUSTER_MEMBER $MUSTER_EXIT_CODE $MUSTER_EXIT_REASON" >> %s/diary`, dir)),
	})
	stdout, _ := w.muster("run", "--name", "train", "-g", "8", "--", "sh", "-c", "echo worked; exit 0").ends(0)
	if stdout != "worked\n" {
		t.Errorf("the output is %q, want that of one start", stdout)
	}
	bad := w.tainted("prolog")
	j := w.phase("train", api.Succeeded)
	if got := j.Status.Allocations[0].Node; got == bad || got == "" || j.Status.Retries != 0 {
		t.Errorf("the job ran on node %q with %d retries; node %s has the taint", got, j.Status.Retries, bad)
	}
	diary, err := os.ReadFile(filepath.Join(dir, "diary"))
	if want := "prolog 0\nepilog 0 126 PrologFailed\nprolog 0\nepilog 0 0 Completed\n"; err != nil || string(diary) != want {
		t.Errorf("the scripts have noted %q (%v), want %q", diary, err, want)
	}
	both := w.muster("run", "--name", "both", "-g", "8", "--nodes", "2", "--", "true")
	w.phase("both", api.Queued)
	if why, _ := w.muster("why", "both").ends(0); !strings.Contains(why, "muster.dev/script-failed") {
		t.Errorf("muster why does not name the taint:\n%s", why)
	}
	w.muster("taint", "node", bad, "muster.dev/script-failed-").ends(0)
	both.ends(0)
}

// TestAnEpilogThatFailsTaintsTheNodeAlone: the job has succeeded.
func TestAnEpilogThatFailsTaintsTheNodeAlone(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w := openWith(t, 1, agent.RunConfig{Program: self, Epilog: hostScript(t, "echo the GPU does not reset; exit 1")})
	w.muster("run", "--name", "train", "-g", "1", "--", "true").ends(0)
	node := w.tainted("epilog")
	if got := w.phase("train", api.Succeeded).Status.Allocations[0].Node; got != node {
		t.Errorf("node %s has the taint, and the job ran on %q", node, got)
	}
}
