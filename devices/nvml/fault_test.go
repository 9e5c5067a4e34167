//go:build cgo && linux

package nvml_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	nvmltest "github.com/musterd/muster/test/nvml"
)

// twoCards is a host with one card that the script's FAULT line concerns, and
// one that is well. DRIVER is the place of faults that concern no card.
const twoCards = `driver 550.54.15
DRIVER
gpu 0000:01:00.0
uuid GPU-bad
name NVIDIA L40S
memory 48305799168
numa 0
nvlink down 1
ecc 0 0
retired none
rows 0 0
mig off
FAULT
gpu 0000:02:00.0
uuid GPU-good
name NVIDIA L40S
memory 48305799168
numa 0
mig off
`

// patient is a context that outlasts every answer of a library that answers.
func patient(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func faulty(driver, card string) []byte {
	return []byte(strings.NewReplacer("DRIVER\n", driver, "FAULT\n", card).Replace(twoCards))
}

const bad, good = "0000:01:00.0", "0000:02:00.0"

// Each call of a discovery × each fault: the other card is usable, and where the
// faulty card or a fact about it is missing, a warning names call and card.
func TestEachCallMayHangFailOrLieAndTheHostIsUsable(t *testing.T) {
	both, rest := []string{bad, good}, []string{good}
	type outcome struct {
		cards []string
		warns bool
	}
	used, named, out := outcome{both, false}, outcome{both, true}, outcome{rest, true}
	calls := map[string]struct {
		function string
		want     map[string]outcome // by fault
	}{
		"handle":    {"nvmlDeviceGetHandleByIndex_v2", map[string]outcome{"hang": out, "3": out, "999": out, "15": out}},
		"pci":       {"nvmlDeviceGetPciInfo", map[string]outcome{"hang": out, "3": out, "999": out, "15": out, "garbage": out}},
		"uuid":      {"nvmlDeviceGetUUID", map[string]outcome{"hang": out, "3": out, "999": out, "15": out, "garbage": out}},
		"name":      {"nvmlDeviceGetName", map[string]outcome{"hang": out, "3": named, "999": named, "15": out, "garbage": named}},
		"memory":    {"nvmlDeviceGetMemoryInfo", map[string]outcome{"hang": out, "3": named, "999": out, "15": out, "garbage": named}},
		"numa":      {"nvmlDeviceGetMemoryAffinity", map[string]outcome{"hang": out, "3": used, "999": named, "15": out, "garbage": used}},
		"fabric":    {"nvmlDeviceGetGpuFabricInfoV", map[string]outcome{"hang": out, "3": used, "999": named, "15": out, "garbage": named}},
		"mig":       {"nvmlDeviceGetMigMode", map[string]outcome{"hang": out, "3": used, "999": named, "15": out}},
		"nvlink":    {"nvmlDeviceGetNvLinkState", map[string]outcome{"hang": named, "3": used, "999": named, "15": out}},
		"ancestor":  {"nvmlDeviceGetTopologyCommonAncestor", map[string]outcome{"hang": named, "3": named, "999": named, "15": named, "garbage": named}},
		"processes": {"nvmlDeviceGetComputeRunningProcesses", map[string]outcome{"hang": named, "3": used, "999": named, "15": used, "garbage": named}},
	}
	libDir := nvmltest.Build(t)
	for call, c := range calls {
		for fault, want := range c.want {
			t.Run(call+" "+fault, func(t *testing.T) {
				t.Parallel()
				line := fault + " " + call + "\n"
				if fault != "hang" && fault != "garbage" {
					line = "fail " + call + " " + fault + "\n"
				}
				script := filepath.Join(t.TempDir(), "host.script")
				nvmltest.ReplaceScript(t, script, faulty("", line))
				limit := "1m"
				if fault == "hang" {
					limit = "1800ms"
				}
				got := startTalkingChild(t, libDir, script, "plain").must("look " + limit)
				if diff := cmp.Diff(want.cards, addresses(got.Inventory)); diff != "" {
					t.Errorf("usable cards (-want +got):\n%s\n%q", diff, got.Warnings)
				}
				if len(want.cards) == 1 && (len(got.Unknown) != 1 || got.Unknown[0].Position != 0) {
					t.Errorf("unknown cards %+v, want number 0", got.Unknown)
				}
				if hangs := strings.Contains(got.Hangs, c.function); hangs != (fault == "hang") {
					t.Errorf("the call that hangs is %q", got.Hangs)
				}
				if warned := holdsAll(got.Warnings, c.function, bad) || holdsAll(got.Warnings, c.function, "GPU 0"); warned != want.warns {
					t.Errorf("a warning that names %s and the card: %t, want %t: %q", c.function, warned, want.warns, got.Warnings)
				}
			})
		}
	}
}

// holdsAll reports whether one of the texts holds all parts.
func holdsAll(texts []string, parts ...string) bool {
next:
	for _, text := range texts {
		for _, part := range parts {
			if !strings.Contains(text, part) {
				continue next
			}
		}
		return true
	}
	return false
}

// A library that lacks a function: only without a handle there is no GPU.
func TestEachFunctionMayBeAbsent(t *testing.T) {
	for function, c := range map[string]struct {
		cards int
		warns bool
	}{
		"nvmlShutdown":                             {2, false},
		"nvmlErrorString":                          {2, false},
		"nvmlSystemGetDriverVersion":               {2, true},
		"nvmlDeviceGetPciInfo_v3":                  {0, true},
		"nvmlDeviceGetUUID":                        {0, true},
		"nvmlDeviceGetName":                        {2, true},
		"nvmlDeviceGetMemoryInfo":                  {2, true},
		"nvmlDeviceGetMemoryInfo_v2":               {2, false},
		"nvmlDeviceGetUtilizationRates":            {2, false},
		"nvmlDeviceGetMemoryAffinity":              {2, false},
		"nvmlDeviceGetMigMode":                     {2, false},
		"nvmlDeviceGetGpuFabricInfoV":              {2, false},
		"nvmlDeviceGetGpuFabricInfo":               {2, false},
		"nvmlDeviceGetNvLinkState":                 {2, false},
		"nvmlDeviceGetNvLinkRemoteDeviceType":      {2, false},
		"nvmlDeviceGetTopologyCommonAncestor":      {2, false},
		"nvmlDeviceGetTotalEccErrors":              {2, false},
		"nvmlDeviceGetRetiredPagesPendingStatus":   {2, false},
		"nvmlDeviceGetRemappedRows":                {2, false},
		"nvmlEventSetCreate":                       {2, false},
		"nvmlEventSetWait":                         {2, false},
		"nvmlEventSetFree":                         {2, false},
		"nvmlDeviceRegisterEvents":                 {2, false},
		"nvmlDeviceGetSupportedEventTypes":         {2, false},
		"nvmlDeviceGetComputeRunningProcesses_v3":  {2, false},
		"nvmlDeviceGetGraphicsRunningProcesses_v3": {2, false},
		"nvmlDeviceGetMaxMigDeviceCount":           {2, false},
		"nvmlDeviceGetMigDeviceHandleByIndex":      {2, false},
		"nvmlDeviceGetAttributes_v2":               {2, false},
		"nvmlDeviceGetNvLinkRemotePciInfo_v2":      {2, false},
		"nvmlDeviceGetComputeRunningProcesses":     {2, false},
		"nvmlDeviceGetGraphicsRunningProcesses":    {2, false},
		"nvmlEventSetWait_v2":                      {2, false},
	} {
		t.Run(function, func(t *testing.T) {
			script := filepath.Join(t.TempDir(), "host.script")
			nvmltest.ReplaceScript(t, script, faulty("", "mig on\ninstance MIG-1 1g.10gb 9728 1 1\nfail name 999\n"))
			v := &viewer{child: startTalkingChild(t, nvmltest.BuildWithout(t, function), script, "plain"), ctx: patient(t)}
			got := v.must("look 1m")
			if len(got.Inventory.Devices) != c.cards {
				t.Errorf("%d cards: %q", len(got.Inventory.Devices), got.Warnings)
			}
			if warned := holdsAll(got.Warnings, "the library has no "+function); warned != c.warns {
				t.Errorf("a warning that names %s: %t, want %t: %q", function, warned, c.warns, got.Warnings)
			}
			v.must("follow 2ms 20ms 1h")
			nvmltest.ReplaceScript(t, script, faulty("", "process compute 4711\n"))
			nvmltest.ReplaceScript(t, script, append(faulty("", ""), "gpu 0000:03:00.0\nuuid GPU-new\nname A\nmemory 1\n"...))
			for c.cards > 0 && function != "nvmlShutdown" && len(got.Inventory.Devices) < 3 { // without the end there is no new start
				v.take()
				if v.inventory != nil {
					got.Inventory = v.inventory
				}
			}
			v.must("unwatch")
		})
	}
}

// Calls that concern no card.
func TestADriverThatHangsOrLiesIsAUsableHost(t *testing.T) {
	libDir := nvmltest.Build(t)
	for name, c := range map[string]struct {
		fault string
		cards int
		hangs string
		want  []string // parts of one warning, or of the error
	}{
		"it does not start":           {"hang init\n", 0, "nvmlInit_v2", []string{"nvmlInit_v2 has not returned for", "no GPU is known"}},
		"it does not end":             {"hang shutdown\n", 0, "nvmlShutdown", []string{"nvmlShutdown has not returned for"}},
		"it does not tell itself":     {"hang version\n", 0, "nvmlSystemGetDriverVersion", []string{"nvmlSystemGetDriverVersion has not returned for"}},
		"it does not count":           {"hang count\n", 0, "nvmlDeviceGetCount_v2", []string{"nvmlDeviceGetCount_v2 has not returned for"}},
		"its start fails oddly":       {"garbage init\n", 0, "", []string{"nvmlInit_v2", "NVML does not define", "31337"}},
		"it counts 4 billion cards":   {"garbage count\n", 2, "", []string{"nvmlDeviceGetCount_v2", "4294967280 GPUs"}},
		"its version is no text":      {"garbage version\n", 2, "", nil},
		"its events never end":        {"garbage wait\n", 2, "", nil},
		"it was replaced":             {"init 18\n", 0, "", []string{"nvmlInit_v2", "reboot"}},
		"it lacks what it once could": {"init 13\n", 0, "", []string{"nvmlInit_v2", "Function Not Found"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script := filepath.Join(t.TempDir(), "host.script")
			nvmltest.ReplaceScript(t, script, faulty(c.fault, ""))
			limit := "1m"
			if c.hangs != "" {
				limit = "500ms"
			}
			v := &viewer{child: startTalkingChild(t, libDir, script, "plain"), ctx: patient(t)}
			got := v.ask("look " + limit)
			texts := append(got.Warnings, got.Error)
			if c.want != nil && !holdsAll(texts, c.want...) {
				t.Errorf("no text holds %q: %q", c.want, texts)
			}
			if !strings.Contains(got.Hangs, c.hangs) || c.hangs == "" && got.Hangs != "" {
				t.Errorf("hanging is %q, want %q", got.Hangs, c.hangs)
			}
			if got.Inventory != nil && len(got.Inventory.Devices) != c.cards {
				t.Errorf("%d cards, want %d", len(got.Inventory.Devices), c.cards)
			}
			// Once the driver is well, the watch brings all cards in.
			v.inventory = got.Inventory
			v.must("follow 2ms 20ms 1h")
			nvmltest.ReplaceScript(t, script, append(faulty("", ""), "gpu 0000:03:00.0\nuuid GPU-new\nname A\nmemory 1\n"...))
			for v.inventory == nil || len(v.inventory.Devices) < 3 {
				v.take()
			}
			v.must("unwatch")
		})
	}
}

// The call about one card hangs at the start. The others are served; once the
// call returns, the card is a new one.
func TestACardThatAnswersLateIsFoundByTheWatch(t *testing.T) {
	script := filepath.Join(t.TempDir(), "host.script")
	nvmltest.ReplaceScript(t, script, faulty("", "hang name\n"))
	v := &viewer{child: startTalkingChild(t, nvmltest.Build(t), script, "plain"), ctx: patient(t)}
	got := v.must("look 600ms")
	if diff := cmp.Diff([]string{good}, addresses(got.Inventory)); diff != "" {
		t.Fatalf("usable cards (-want +got):\n%s", diff)
	}
	v.must("follow 2ms 1h 1h")
	nvmltest.ReplaceScript(t, script, faulty("", ""))
	for v.inventory == nil {
		v.take()
	}
	if diff := cmp.Diff([]string{good, bad}, addresses(v.inventory)); diff != "" {
		t.Errorf("cards after the late answer (-want +got):\n%s", diff)
	}
	v.must("unwatch")
}

// An agent may start before the driver: the cards come with the driver.
func TestADriverThatComesAfterTheAgentBringsItsCards(t *testing.T) {
	script := filepath.Join(t.TempDir(), "host.script")
	v := &viewer{child: startTalkingChild(t, nvmltest.Build(t), script, "plain"), ctx: patient(t)}
	if a := v.ask("look 1m"); !a.NoDriver {
		t.Fatalf("without a driver: %+v, want ErrNoDriver", a)
	}
	v.must("follow 2ms 1h 1h")
	nvmltest.ReplaceScript(t, script, faulty("", ""))
	for v.inventory == nil {
		v.take()
	}
	if diff := cmp.Diff([]string{bad, good}, addresses(v.inventory)); diff != "" {
		t.Errorf("cards after the driver came (-want +got):\n%s", diff)
	}
	v.must("unwatch")
}

// A watch over a call that never returns ends with its context.
func TestAWatchThatWaitsForALateCallEnds(t *testing.T) {
	script := filepath.Join(t.TempDir(), "host.script")
	nvmltest.ReplaceScript(t, script, faulty("", "hang uuid\n"))
	c := startTalkingChild(t, nvmltest.Build(t), script, "plain")
	if got := c.must("look 600ms"); !strings.Contains(got.Hangs, "nvmlDeviceGetUUID of GPU 0 at "+bad) {
		t.Errorf("hanging is %q", got.Hangs)
	}
	c.must("follow 2ms 1h 1h")
	c.must("unwatch")
	if again := c.ask("look 50ms"); !again.Hung {
		t.Errorf("a discovery while the call hangs answers %+v, want ErrHung", again)
	}
}
