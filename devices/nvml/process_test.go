//go:build cgo && linux

package nvml_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/devices"
	nvmltest "github.com/musterd/muster/test/nvml"
)

// busy is a host of which processes use a GPU, twice the same, an instance, and
// nothing at all.
const busy = `driver 1
gpu 0000:01:00.0
  uuid GPU-a
  process graphics 30
  process compute 20
  process compute 10
  process graphics 20
gpu 0000:02:00.0
  uuid GPU-b
gpu 0000:03:00.0
  uuid GPU-c
  mig on
  instance MIG-0 1g.10gb 9728 1 1
  instance MIG-1 1g.10gb 9728 1 1
  process compute 40 1
`

func TestWhatRunsIsToldOfEachDeviceAndInstance(t *testing.T) {
	whole := []devices.Running{{UUID: "GPU-a", PIDs: []int{10, 20, 30}}, {UUID: "GPU-b"}}
	parts := []devices.Running{{UUID: "MIG-0"}, {UUID: "MIG-1", PIDs: []int{40}}}
	for name, c := range map[string]struct {
		libDir       string
		old, instead string
		want         []devices.Running
	}{
		"a driver of today":               {nvmltest.Build(t), "", "", append(whole, parts...)},
		"a driver without MIG":            {nvmltest.BuildOld(t), "", "", append(whole, devices.Running{UUID: "GPU-c", PIDs: []int{40}})},
		"a card that does not tell":       {nvmltest.Build(t), "  uuid GPU-b\n", "  uuid GPU-b\n  fail processes 3\n", append(whole[:1:1], parts...)},
		"a card whose answer is an error": {nvmltest.Build(t), "  uuid GPU-a\n", "  uuid GPU-a\n  fail processes 999\n", append(whole[1:2:2], parts...)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script := filepath.Join(t.TempDir(), "host.script")
			nvmltest.ReplaceScript(t, script, []byte(strings.Replace(busy, c.old, c.instead, 1)))
			child := startChild(t, c.libDir, script, "plain")
			child.must("open")
			if diff := cmp.Diff(c.want, child.must("discover").Running); diff != "" {
				t.Errorf("running (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAWatchTellsWhatRunsAtItsStartAndWhatChanges(t *testing.T) {
	s := newStage(t, nvmltest.Build(t), "gpu2", onPoll)
	first, second := s.host.UUID(0), s.host.UUID(1)
	running := map[string][]int{}
	awaitRunning := func(want map[string][]int) {
		t.Helper()
		for !cmp.Equal(want, running) {
			if s.ctx.Err() != nil {
				t.Fatalf("running (-want +got):\n%s", cmp.Diff(want, running))
			}
			for _, c := range s.child.take(s.ctx) {
				for _, r := range c.Running {
					running[r.UUID] = r.PIDs
				}
			}
		}
	}
	awaitRunning(map[string][]int{first: nil, second: nil})
	s.host.Run(1, 7, 9)
	nvmltest.Act(t, s.script, s.host)
	awaitRunning(map[string][]int{first: nil, second: {7, 9}})
	s.host.Run(1)
	nvmltest.Act(t, s.script, s.host)
	awaitRunning(map[string][]int{first: nil, second: nil})
}
