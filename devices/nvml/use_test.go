//go:build cgo && linux

package nvml_test

import (
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/devices"
	nvmltest "github.com/musterd/muster/test/nvml"
)

// loaded is a host with a busy card, an idle card, a card whose driver does not
// measure the percentage, and a card in MIG mode.
const loaded = `driver 1
gpu 0000:01:00.0
  uuid GPU-a
  memory 1000
  use 37 400
gpu 0000:02:00.0
  uuid GPU-b
  memory 1000
  use 0 0
gpu 0000:03:00.0
  uuid GPU-c
  memory 1000
  use - 10
gpu 0000:04:00.0
  uuid GPU-d
  memory 10000000
  mig on
  instance MIG-0 1g.10gb 1 1 1
  instance MIG-1 1g.10gb 1 1 1
  use 50 5000
  use 60 4000 1
`

// user is a viewer that keeps the use of each device.
type user struct {
	*viewer
	use map[string]devices.Use
}

// awaitUse waits until these are the uses of all devices.
func (u *user) awaitUse(want ...devices.Use) {
	u.t.Helper()
	wanted := map[string]devices.Use{}
	for _, w := range want {
		wanted[w.UUID] = w
	}
	for !maps.Equal(wanted, u.use) {
		if u.ctx.Err() != nil {
			u.t.Fatalf("use (-want +got):\n%s", cmp.Diff(wanted, u.use))
		}
		for _, c := range u.child.take(u.ctx) {
			for _, now := range c.Use {
				u.use[now.UUID] = now
			}
			u.viewer.warnings = append(u.viewer.warnings, c.Warnings...)
		}
	}
}

func TestTheUseOfEachDeviceAndInstanceIsReported(t *testing.T) {
	const unknown = devices.UnknownUse
	a, b, c := devices.Use{UUID: "GPU-a", Percent: 37, Memory: 400}, devices.Use{UUID: "GPU-b"}, devices.Use{UUID: "GPU-c", Percent: unknown, Memory: 10}
	parts := []devices.Use{
		{UUID: "GPU-d", Percent: unknown, Memory: 5000}, {UUID: "MIG-0", Percent: unknown}, {UUID: "MIG-1", Percent: unknown, Memory: 4000},
	}
	for name, p := range map[string]struct {
		libDir       string
		old, instead string
		want         []devices.Use
		warning      string
	}{
		"a driver of today":    {nvmltest.Build(t), "", "", append(parts, a, b, c), ""},
		"a driver without MIG": {nvmltest.BuildOld(t), "mig on", "mig off", []devices.Use{a, b, c, {UUID: "GPU-d", Percent: 50, Memory: 5000}}, ""},
		"a card that supports no memory information": {
			nvmltest.Build(t), "use 37 400", "use 37 400\nfail memory 3",
			append(parts, devices.Use{UUID: "GPU-a", Percent: 37, Memory: unknown}, b, c), "",
		},
		"a card whose answer is an error": {
			nvmltest.Build(t), "use 37 400", "use 37 400\nfail use 999",
			append(parts, devices.Use{UUID: "GPU-a", Percent: unknown, Memory: 400}, b, c), "nvmlDeviceGetUtilizationRates",
		},
		"a card that reports nonsense": {
			nvmltest.Build(t), "use 37 400", "use 37 400\ngarbage use",
			append(parts, devices.Use{UUID: "GPU-a", Percent: unknown, Memory: 400}, b, c), "what is too much is unknown",
		},
		"more memory in use than the card has": {
			nvmltest.Build(t), "use 37 400", "use 37 1001",
			append(parts, devices.Use{UUID: "GPU-a", Percent: 37, Memory: unknown}, b, c), "what is too much is unknown",
		},
		"a library without the function": {
			nvmltest.BuildWithout(t, "nvmlDeviceGetUtilizationRates"), "", "",
			append(parts, devices.Use{UUID: "GPU-a", Percent: unknown, Memory: 400}, devices.Use{UUID: "GPU-b", Percent: unknown}, c), "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script := filepath.Join(t.TempDir(), "host.script")
			text := loaded
			if strings.Contains(p.instead, "mig off") {
				text = text[:strings.Index(text, "  mig on")] + "  use 50 5000\n"
			} else {
				text = strings.Replace(text, p.old, p.instead, 1)
			}
			nvmltest.ReplaceScript(t, script, []byte(text))
			u := &user{newViewer(t, p.libDir, script, onPoll), map[string]devices.Use{}}
			u.awaitUse(p.want...)
			if p.warning != "" {
				u.awaitWarning(p.warning)
			}
		})
	}
}

// Once a card is lost or hangs, its last use is not its present one: the same use
// is reported again when the card answers.
func TestTheUseIsReportedAgainOnceACardAnswersAgain(t *testing.T) {
	s := newStage(t, nvmltest.Build(t), "gpu2", "2ms 20ms 1h")
	first := devices.Use{UUID: s.host.UUID(0), Percent: devices.UnknownUse}
	busy := devices.Use{UUID: s.host.UUID(1), Percent: 90, Memory: 1 << 30}
	u := &user{s.viewer, map[string]devices.Use{}}
	s.host.Use(1, 90, 1<<30)
	nvmltest.Act(t, s.script, s.host)
	u.awaitUse(first, busy)
	s.told()
	for name, c := range map[string]struct{ away, back func() }{
		"lost":     {func() { s.host.Lose(1) }, func() { s.host.Return(1) }},
		"unloaded": {s.host.UnloadDriver, s.host.LoadDriver},
	} {
		u.use = map[string]devices.Use{}
		c.away()
		s.act()
		c.back()
		nvmltest.Act(t, s.script, s.host)
		for u.use[busy.UUID] != busy {
			if u.ctx.Err() != nil {
				t.Fatalf("%s: the use is not reported again: %v", name, u.use)
			}
			for _, c := range u.child.take(u.ctx) {
				for _, now := range c.Use {
					u.use[now.UUID] = now
				}
			}
		}
		s.told()
	}
}
