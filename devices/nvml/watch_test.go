//go:build cgo && linux

package nvml_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/devices/fake"
	"github.com/musterd/muster/devices/fake/fakehost"
	nvmltest "github.com/musterd/muster/test/nvml"
)

// Intervals of a watch under test: POLL REDISCOVER HANGAFTER. One that never
// comes shows that another tells.
const (
	lively  = "2ms 40ms 1h"
	onEvent = "1h 1h 1h"
	onPoll  = "2ms 1h 1h"
)

// viewer is a child that watches, and what it was told.
type viewer struct {
	*child
	ctx       context.Context
	inventory *devices.Inventory // the last one
	events    []devices.Event    // that no await has asked for
	warnings  []string
	hangs     []string // the calls about the driver that hung, "" for each return
	asked     bool     // a card has answered
}

// newViewer discovers and begins to watch.
func newViewer(t *testing.T, libDir, script, intervals string) *viewer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	v := &viewer{child: startChild(t, libDir, script, "plain"), ctx: ctx}
	v.must("open")
	v.inventory = v.must("discover").Inventory
	v.must("watch " + intervals)
	return v
}

// take takes in what was told next.
func (v *viewer) take() {
	v.t.Helper()
	for _, c := range v.child.take(v.ctx) {
		v.events = append(v.events, c.Events...)
		v.warnings = append(v.warnings, c.Warnings...)
		if c.Hangs != nil {
			v.hangs = append(v.hangs, *c.Hangs)
		}
		v.asked = v.asked || len(c.Running) > 0 || len(c.Use) > 0
		if c.Inventory != nil {
			if err := c.Inventory.Validate(); err != nil {
				v.t.Fatal(err)
			}
			v.inventory = c.Inventory
		}
	}
}

// essence is what two watches have to agree on: the words are each one's own.
func essence(events []devices.Event) []string {
	var list []string
	for _, e := range events {
		e.Detail = ""
		list = append(list, e.String())
	}
	return list
}

// await waits until these events are told, in any order, and refuses others.
func (v *viewer) await(want ...devices.Event) []devices.Event {
	v.t.Helper()
	for len(v.events) < len(want) {
		v.take()
	}
	got := v.events
	v.events = nil
	a, b := essence(want), essence(got)
	slices.Sort(a)
	slices.Sort(b)
	if diff := cmp.Diff(a, b); diff != "" {
		v.t.Fatalf("events (-want +got):\n%s", diff)
	}
	return got
}

// awaitInventory waits until the inventory is the wanted one.
func (v *viewer) awaitInventory(want *devices.Inventory) {
	v.t.Helper()
	for !cmp.Equal(want, v.inventory) {
		if v.ctx.Err() != nil {
			v.t.Fatalf("inventory (-want +got):\n%s", cmp.Diff(want, v.inventory))
		}
		v.take()
	}
}

// awaitWarning waits for a warning that holds all parts.
func (v *viewer) awaitWarning(parts ...string) {
	v.t.Helper()
	for !slices.ContainsFunc(v.warnings, func(w string) bool {
		return !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(w, p) })
	}) {
		v.take()
	}
}

// stage is a host, the script that acts it and a viewer.
type stage struct {
	*viewer
	host   *fakehost.Host
	script string
	marks  uint64
}

func newStage(t *testing.T, libDir, profile, intervals string, absent ...int) *stage {
	t.Helper()
	p, err := fake.Lookup(profile)
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{host: fakehost.New(p, "n1", absent...), script: filepath.Join(t.TempDir(), "host.script")}
	nvmltest.Act(t, s.script, s.host)
	s.viewer = newViewer(t, libDir, s.script, intervals)
	return s
}

// told is what the host itself tells since the last call.
func (s *stage) told() []devices.Event {
	s.t.Helper()
	ended, cancel := context.WithCancel(s.ctx)
	cancel()
	var events []devices.Event
	if err := s.host.Watch(ended, func(c devices.Change) { events = append(events, c.Events...) }); err != nil {
		s.t.Fatal(err)
	}
	return events
}

// act has the library act what was done to the host, and waits until the watch
// has told just that.
func (s *stage) act() {
	s.t.Helper()
	nvmltest.Act(s.t, s.script, s.host)
	s.await(s.told()...)
	s.awaitInventory(s.host.Inventory())
}

// mark acts an XID of the GPU that stands for nothing: all that went before has
// been told once the watch tells it.
func (s *stage) mark(gpu int) {
	s.t.Helper()
	s.marks++
	s.host.XID(gpu, 1000+s.marks)
	s.act()
}

func TestWatchTellsWhatHappensToTheCards(t *testing.T) {
	libDir := nvmltest.Build(t)
	small := devices.MIGInstance{Profile: "1g.10gb", Memory: 9728 << 20}
	for name, c := range map[string]struct {
		profile string
		absent  []int
		steps   []func(*fakehost.Host)
	}{
		"XIDs": {"dgx-a100", nil, []func(*fakehost.Host){
			func(h *fakehost.Host) { h.XID(3, 79) },
			func(h *fakehost.Host) { h.XID(3, 79); h.XID(3, 13); h.XID(5, 48) },
		}},
		"memory errors": {"dgx-a100", nil, []func(*fakehost.Host){
			func(h *fakehost.Host) { h.ECC(1, 0, 1) },
			func(h *fakehost.Host) { h.ECC(1, 20, 0) },
			func(h *fakehost.Host) { h.ECC(1, 1, 1); h.ECC(7, 3, 0) },
		}},
		"pages that wait for a reset": {"gpu2", nil, []func(*fakehost.Host){
			func(h *fakehost.Host) { h.Retire(1, true) },
			func(h *fakehost.Host) { h.Retire(1, false) },
		}},
		"rows that cannot be remapped": {"gpu2", nil, []func(*fakehost.Host){
			func(h *fakehost.Host) { h.Remap(0, true, false) },
			func(h *fakehost.Host) { h.Remap(0, true, true); h.Retire(0, true) },
			func(h *fakehost.Host) { h.Remap(0, false, true) },
			func(h *fakehost.Host) { h.Retire(0, false); h.Remap(0, false, false) },
		}},
		"a card falls off the bus and returns": {"pcie-8x2", nil, []func(*fakehost.Host){
			func(h *fakehost.Host) { h.XID(2, 79) },
			func(h *fakehost.Host) { h.Lose(2) },
			func(h *fakehost.Host) { h.Return(2) },
		}},
		"a card is taken out and put back": {"pcie-8x2", nil, []func(*fakehost.Host){
			func(h *fakehost.Host) { h.Unplug(0) },
			func(h *fakehost.Host) { h.Plug(0) },
		}},
		"cards are added behind the known ones": {"dgx-h100", []int{1, 4}, []func(*fakehost.Host){
			func(h *fakehost.Host) { h.Plug(4) },
			func(h *fakehost.Host) { h.XID(4, 94) },
			func(h *fakehost.Host) { h.Plug(1) },
		}},
		"a card is added while another is lost": {"pcie-8x2", []int{1}, []func(*fakehost.Host){
			func(h *fakehost.Host) { h.Lose(3) },
			func(h *fakehost.Host) { h.Plug(1) },
			func(h *fakehost.Host) { h.Return(3) },
		}},
		"a card is partitioned anew": {"mig-a100", nil, []func(*fakehost.Host){
			func(h *fakehost.Host) { h.Partition(3, small, small) },
			func(h *fakehost.Host) { h.Partition(3, small) },
			func(h *fakehost.Host) { h.Partition(3) },
			func(h *fakehost.Host) { h.Unpartition(3); h.Unpartition(0) },
		}},
		"the driver goes and returns": {"dgx-a100", []int{6}, []func(*fakehost.Host){
			func(h *fakehost.Host) { h.Lose(2); h.ECC(1, 9, 9) },
			func(h *fakehost.Host) { h.UnloadDriver() },
			func(h *fakehost.Host) { h.Return(2); h.Lose(3); h.Plug(6); h.Retire(5, true) },
			func(h *fakehost.Host) { h.LoadDriver() },
			func(h *fakehost.Host) { h.ECC(1, 1, 1) },
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, libDir, c.profile, lively, c.absent...)
			s.mark(0)
			for _, step := range c.steps {
				step(s.host)
				s.act()
			}
			if name != "a card is taken out and put back" {
				s.mark(0)
			}
			s.must("unwatch")
			s.must("close")
		})
	}
}

func TestWatchNeedsNoPollForXIDsAndTheLossOfACard(t *testing.T) {
	s := newStage(t, nvmltest.Build(t), "dgx-a100", onEvent)
	s.mark(0)
	s.host.ECC(4, 0, 1)
	s.act()
	s.host.Lose(3)
	s.act()
	s.mark(0)
	s.host.XID(7, 31)
	s.act()
}

func TestWatchNeedsNoRediscoveryForWhatACardItselfTells(t *testing.T) {
	s := newStage(t, nvmltest.Build(t), "mig-a100", onPoll)
	s.mark(0)
	for _, step := range []func(){
		func() { s.host.Lose(1) },
		func() { s.host.Return(1) },
		func() { s.host.Unpartition(0) },
		func() { s.host.UnloadDriver() },
		func() { s.host.LoadDriver() },
	} {
		step()
		s.act()
	}
}

func TestWatchSaysInWhichInstanceAnXIDWas(t *testing.T) {
	for name, c := range map[string]struct {
		libDir string
		want   string
	}{
		"a driver that tells the instance": {nvmltest.Build(t), "in GPU instance 5"},
		"a driver that does not":           {nvmltest.BuildOld(t), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script := filepath.Join(t.TempDir(), "host.script")
			host := "driver 1\ngpu 0000:01:00.0\nuuid GPU-a\nmig on\ninstance MIG-1 1g.10gb 9728 1 1\n"
			nvmltest.ReplaceScript(t, script, []byte(host))
			v := newViewer(t, c.libDir, script, onEvent)
			nvmltest.ReplaceScript(t, script, []byte(host+"xid 13 5\nxid 79\n"))
			got := v.await(devices.Event{UUID: "GPU-a", Kind: devices.EventXID, XID: 13}, devices.Event{UUID: "GPU-a", Kind: devices.EventXID, XID: 79})
			if got[0].Detail != c.want || got[1].Detail != "" {
				t.Errorf("details %q and %q, want %q and none", got[0].Detail, got[1].Detail, c.want)
			}
		})
	}
}

func TestWatchThroughAnOldDriverTellsWhatItKnows(t *testing.T) {
	s := newStage(t, nvmltest.BuildOld(t), "gpu2", lively)
	s.inventory = s.host.Inventory() // an old driver tells no NUMA nodes
	check := func(want ...devices.Event) {
		t.Helper()
		nvmltest.Act(t, s.script, s.host)
		s.await(want...)
	}
	of := func(gpu int, e devices.Event) devices.Event { e.UUID = s.host.UUID(gpu); return e }
	s.host.XID(0, 62)
	check(of(0, devices.Event{Kind: devices.EventXID, XID: 62}))
	s.host.ECC(1, 5, 2)
	check(of(1, devices.Event{Kind: devices.EventECCCorrected, Count: 5}), of(1, devices.Event{Kind: devices.EventECCUncorrected, Count: 2}))
	s.host.Remap(0, true, true) // unknown to it
	s.host.Retire(1, true)
	check(of(1, devices.Event{Kind: devices.EventPageRetirementPending}))
	s.host.Lose(1)
	check(of(1, devices.Event{Kind: devices.EventLost}))
}

func TestWatchTellsAHangAndItsEnd(t *testing.T) {
	libDir := nvmltest.Build(t)
	const host = "driver 1\n%sgpu 0000:01:00.0\nuuid GPU-a\n%sgpu 0000:02:00.0\nuuid GPU-b\nxid 13\n"
	for name, c := range map[string]struct {
		driver, card string
		want         string // UUID
	}{
		"a card does not tell its memory": {"", "hang memory\n", "GPU-a"},
		"a card takes no events":          {"", "hang events\n", "GPU-a"},
		"a card is not found":             {"", "hang handle\n", "GPU-a"},
		"a card does not tell its name":   {"", "hang name\n", "GPU-a"},
		"a card does not tell its use":    {"", "hang use\n", "GPU-a"},
		"the library does not start":      {"hang init\n", "", ""},
		"the library does not end":        {"hang shutdown\n", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script := filepath.Join(t.TempDir(), "host.script")
			healthy := fmt.Appendf(nil, host, "", "")
			nvmltest.ReplaceScript(t, script, healthy)
			v := newViewer(t, libDir, script, "2ms 40ms 150ms")
			v.until(devices.Event{UUID: "GPU-b", Kind: devices.EventXID, XID: 13})
			nvmltest.ReplaceScript(t, script, fmt.Appendf(nil, host, c.driver, c.card))
			v.until(devices.Event{UUID: c.want, Kind: devices.EventHung})
			if c.want != "" { // the other card is heard meanwhile
				nvmltest.ReplaceScript(t, script, append(fmt.Appendf(nil, host, c.driver, c.card), "xid 14\n"...))
				v.until(devices.Event{UUID: "GPU-b", Kind: devices.EventXID, XID: 14})
				nvmltest.ReplaceScript(t, script, append(healthy, "xid 14\n"...))
				v.until(devices.Event{UUID: c.want, Kind: devices.EventAnswered})
				nvmltest.ReplaceScript(t, script, append(healthy, "xid 14\nxid 15\n"...))
				v.until(devices.Event{UUID: "GPU-b", Kind: devices.EventXID, XID: 15})
				v.must("unwatch")
				return
			}
			nvmltest.ReplaceScript(t, script, append(healthy, "xid 14\n"...))
			v.until(devices.Event{UUID: c.want, Kind: devices.EventAnswered})
			v.until(devices.Event{UUID: "GPU-b", Kind: devices.EventXID, XID: 14})
			if len(v.hangs) < 2 || !strings.Contains(v.hangs[0], "has not returned") || v.hangs[len(v.hangs)-1] != "" {
				t.Errorf("the calls about the driver that hung are %q, want one that has not returned, and its return", v.hangs)
			}
			v.must("unwatch")
		})
	}
}

// until waits for one event; what else a slow machine takes for a hang is
// passed over.
func (v *viewer) until(want devices.Event) {
	v.t.Helper()
	for {
		for i, e := range v.events {
			if essence(v.events[i : i+1])[0] == want.String() {
				v.events = v.events[i+1:]
				return
			}
			if e.Kind != devices.EventHung && e.Kind != devices.EventAnswered {
				v.t.Fatalf("%s while waiting for %s", e, want)
			}
		}
		v.events = nil
		v.take()
	}
}

func TestAWatchEndsWhileACallHangsAndTheSourceWaitsForTheCall(t *testing.T) {
	script := filepath.Join(t.TempDir(), "host.script")
	const host = "driver 1\ngpu 0000:01:00.0\nuuid GPU-a\n"
	nvmltest.ReplaceScript(t, script, []byte(host))
	// A slow call before the one that hangs must not be taken for it.
	v := newViewer(t, nvmltest.Build(t), script, "2ms 1h 2s")
	nvmltest.ReplaceScript(t, script, []byte(host+"hang memory\n"))
	v.until(devices.Event{UUID: "GPU-a", Kind: devices.EventHung})
	v.must("unwatch")
	for _, command := range []string{"close", "discover", "watch-wait"} {
		if a := v.ask(command); !a.Hung {
			t.Errorf("%s while a call hangs: %+v, want ErrHung", command, a)
		}
	}
	nvmltest.ReplaceScript(t, script, []byte(host))
	for {
		a := v.ask("close")
		if a.Error == "" {
			break
		}
		if !a.Hung || v.ctx.Err() != nil {
			t.Fatalf("close after the call returned: %+v", a)
		}
	}
}

func TestASourceIsWatchedOnceAndNotClosedMeanwhile(t *testing.T) {
	s := newStage(t, nvmltest.Build(t), "gpu2", lively)
	s.mark(0)
	for command, want := range map[string]string{"watch-wait": "watched already", "close": "being watched"} {
		if a := s.ask(command); !strings.Contains(a.Error, want) {
			t.Errorf("%s during a watch: %+v, want an error with %q", command, a, want)
		}
	}
	if diff := cmp.Diff(s.host.Inventory(), s.must("discover").Inventory); diff != "" {
		t.Errorf("discovery during a watch (-want +got):\n%s", diff)
	}
	s.must("unwatch")
	s.must("watch " + lively)
	s.mark(1)
	s.must("unwatch")
	s.must("close")
	if a := s.ask("watch-wait"); !strings.Contains(a.Error, "closed") {
		t.Errorf("watch of a closed source: %+v", a)
	}
}

func TestADriverThatWasReplacedIsGoneUntilTheProcessIsNew(t *testing.T) {
	s := newStage(t, nvmltest.Build(t), "gpu2", lively)
	s.mark(0)
	nvmltest.ReplaceScript(t, s.script, append([]byte("init 18\n"), s.host.NVMLScript()...))
	got := s.await(devices.Event{Kind: devices.EventDriverGone})
	if !strings.Contains(got[0].Detail, "restart") {
		t.Errorf("the event says %q, want it to ask for a restart", got[0].Detail)
	}
	nvmltest.Act(t, s.script, s.host)
	s.await(devices.Event{Kind: devices.EventDriverBack})
	s.mark(1)
}

func TestPartitionsThatCannotBeReadStayAsTheyWere(t *testing.T) {
	s := newStage(t, nvmltest.Build(t), "mig-a100", lively)
	s.mark(0)
	text := string(s.host.NVMLScript())
	uuid := s.host.UUID(0)
	nvmltest.ReplaceScript(t, s.script, []byte(strings.Replace(text, "uuid "+uuid, "uuid "+uuid+"\nfail mig 999", 1)))
	s.awaitWarning(uuid, "what was known stays", "Unknown Error")
	s.awaitWarning("GPU 0 at 0000:01:00.0", "MIG mode") // of a rediscovery
	s.mark(0)
}

func TestMoreGPUsThanAreSupportedAreLeftOut(t *testing.T) {
	libDir := nvmltest.Build(t)
	script := filepath.Join(t.TempDir(), "host.script")
	host := func(gpus int) []byte {
		text := []byte("driver 1\n")
		for i := range gpus {
			text = fmt.Appendf(text, "gpu 0000:%02x:00.0\nuuid GPU-%d\nname A\nmemory 1\n", i, i)
		}
		return text
	}
	nvmltest.ReplaceScript(t, script, host(devices.MaxDevices+1))
	c := startChild(t, libDir, script, "plain")
	c.must("open")
	a := c.must("discover")
	if diff := cmp.Diff([]string{"GPU GPU-64 at 0000:40:00.0 left out: the host has 64 GPUs already, the most that are supported"}, a.Warnings); diff != "" || len(a.Inventory.Devices) != devices.MaxDevices {
		t.Errorf("%d GPUs, warnings (-want +got):\n%s", len(a.Inventory.Devices), diff)
	}
	nvmltest.ReplaceScript(t, script, host(devices.MaxDevices))
	v := newViewer(t, libDir, script, lively)
	nvmltest.ReplaceScript(t, script, append(host(devices.MaxDevices+1), "xid 13\n"...))
	v.awaitWarning("GPU-64", "0000:40:00.0", "64")
	nvmltest.ReplaceScript(t, script, []byte(strings.Replace(string(host(devices.MaxDevices+1)), "uuid GPU-5\n", "uuid GPU-5\nxid 79\n", 1)))
	v.await(devices.Event{UUID: "GPU-5", Kind: devices.EventXID, XID: 79})
	if len(v.inventory.Devices) != devices.MaxDevices {
		t.Errorf("%d devices", len(v.inventory.Devices))
	}
}
