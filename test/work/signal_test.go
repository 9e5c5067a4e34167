package work

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterd/muster/api"
)

// A command gets its signal before its deadline, once. What the command does then counts:
// here it ends with success.
func TestACommandGetsASignalBeforeItsDeadline(t *testing.T) {
	w := open(t, 1)
	path := filepath.Join(t.TempDir(), "job.yaml")
	document := `{apiVersion: muster/v1, kind: Job, metadata: {name: saves}, spec: {activeDeadlineSeconds: 3600, template: {spec: {signal: USR1, signalBefore: 3598s,
resources: {requests: {cpu: 100m, memory: 1Mi}}, command: [sh, -c], args: ["trap 'echo saved; exit 0' USR1; echo up; while :; do sleep 0.05; done"]}}}}`
	if err := os.WriteFile(path, []byte(document), 0o600); err != nil {
		t.Fatal(err)
	}
	w.muster("submit", "-f", path).ends(0)
	if got := w.phase("saves", api.Succeeded).Status.Allocations[0]; got.ExitCode == nil || *got.ExitCode != 0 || got.ExitReason != "Completed" {
		t.Errorf("the member is %+v, want a success", got)
	}
	stdout, _ := w.muster("logs", "saves").ends(0)
	if !strings.HasPrefix(stdout, "up\n") || strings.Count(stdout, "saved\n") != 1 {
		t.Errorf("the output is %q", stdout)
	}
}
