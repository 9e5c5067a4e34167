//go:build cgo && linux

package nvml_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/devices"
	nvmltest "github.com/musterd/muster/test/nvml"
)

// threeCards is a host whose cards each have a place for lines of the script.
func threeCards(a, b, c string) []byte {
	var text strings.Builder
	text.WriteString("driver 1\n")
	for i, lines := range []string{a, b, c} {
		fmt.Fprintf(&text, "gpu 0000:0%d:00.0\nuuid GPU-%c\nname A\nmemory 1\n%s", i+1, 'a'+i, lines)
	}
	return []byte(text.String())
}

// A card hangs from the start, and for as long as the watch lasts. The others are
// watched: their errors and events are reported. The card is listed as unknown.
func TestTheOtherCardsAreWatchedWhileOneHangsFromTheStart(t *testing.T) {
	for _, call := range []string{"handle", "pci", "uuid", "name", "memory", "numa", "mig"} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			script := filepath.Join(t.TempDir(), "host.script")
			hang := "hang " + call + "\n"
			nvmltest.ReplaceScript(t, script, threeCards("ecc 0 0\n", hang, "ecc 0 0\n"))
			v := &viewer{child: startChild(t, nvmltest.Build(t), script, "plain"), ctx: patient(t)}
			got := v.must("look 1200ms")
			if len(got.Unknown) != 1 || got.Unknown[0].Position != 1 || !strings.Contains(got.Unknown[0].Why, "has not returned") {
				t.Fatalf("unknown cards %+v, want number 1", got.Unknown)
			}
			v.must("follow 2ms 30ms 1h") // no call is ever taken for one that hangs anew
			v.untilRunning()
			nvmltest.ReplaceScript(t, script, threeCards("ecc 0 1\n", hang, "ecc 0 0\nxid 13\n"))
			v.untilAll(
				devices.Event{UUID: "GPU-a", Kind: devices.EventECCUncorrected, Count: 1}.String(),
				devices.Event{UUID: "GPU-c", Kind: devices.EventXID, XID: 13}.String(),
			)
			v.must("unwatch") // while the call hangs
		})
	}
}

// Two of three cards hang later, at several rediscoveries; then they answer.
func TestTheOtherCardsAreWatchedWhileTwoHangLater(t *testing.T) {
	script := filepath.Join(t.TempDir(), "host.script")
	nvmltest.ReplaceScript(t, script, threeCards("", "", "ecc 0 0\n"))
	v := newViewer(t, nvmltest.Build(t), script, "2ms 30ms 200ms")
	v.untilRunning()
	nvmltest.ReplaceScript(t, script, threeCards("hang memory\n", "hang use\n", "ecc 0 0\n"))
	v.untilAll(devices.Event{UUID: "GPU-a", Kind: devices.EventHung}.String(), devices.Event{UUID: "GPU-b", Kind: devices.EventHung}.String())
	for n := 1; n <= 3; n++ {
		nvmltest.ReplaceScript(t, script, threeCards("hang memory\n", "hang use\n", fmt.Sprintf("ecc 0 %d\n", n)))
		v.untilAll(devices.Event{UUID: "GPU-c", Kind: devices.EventECCUncorrected, Count: uint64(n)}.String())
	}
	nvmltest.ReplaceScript(t, script, threeCards("xid 14\n", "", "ecc 0 3\n"))
	v.untilAll(
		devices.Event{UUID: "GPU-a", Kind: devices.EventAnswered}.String(), devices.Event{UUID: "GPU-b", Kind: devices.EventAnswered}.String(),
		devices.Event{UUID: "GPU-a", Kind: devices.EventXID, XID: 14}.String(),
	)
	if v.inventory == nil || len(v.inventory.Devices) != 3 {
		t.Errorf("the inventory is %+v, want three cards", v.inventory)
	}
	v.must("unwatch")
	v.must("close")
}

// A relation of two cards hangs: nobody knows because of which of them, so both are
// watched, and the known relations stay.
func TestBothCardsAreWatchedWhileTheirRelationHangs(t *testing.T) {
	script := filepath.Join(t.TempDir(), "host.script")
	relation := "ancestor 0000:01:00.0 0000:02:00.0 10\n"
	text := func(a, b string) []byte {
		return append([]byte(strings.Replace(string(threeCards("ecc 0 "+a+"\n", "ecc 0 "+b+"\n", "")), "driver 1\n", "driver 1\n"+relation, 1)), ""...)
	}
	hangs := func(text []byte) []byte {
		return []byte(strings.Replace(string(text), "uuid GPU-a\n", "uuid GPU-a\nhang ancestor\n", 1))
	}
	nvmltest.ReplaceScript(t, script, text("0", "0"))
	v := newViewer(t, nvmltest.Build(t), script, "2ms 30ms 100ms")
	before := v.inventory.Links
	v.untilRunning()
	nvmltest.ReplaceScript(t, script, hangs(text("0", "0")))
	v.awaitWarning("links: nvmlDeviceGetTopologyCommonAncestor", "has not returned")
	nvmltest.ReplaceScript(t, script, hangs(text("1", "1")))
	v.untilAll(devices.Event{UUID: "GPU-a", Kind: devices.EventECCUncorrected, Count: 1}.String(), devices.Event{UUID: "GPU-b", Kind: devices.EventECCUncorrected, Count: 1}.String())
	if diff := cmp.Diff(before, v.inventory.Links); diff != "" {
		t.Errorf("relations (-before +while the call hangs):\n%s", diff)
	}
	nvmltest.ReplaceScript(t, script, text("2", "2"))
	v.untilAll(devices.Event{UUID: "GPU-a", Kind: devices.EventECCUncorrected, Count: 2}.String())
	v.must("unwatch")
}

// The wait for events hangs over several rediscoveries: the cards are polled all the
// same, no card counts as silent, and events are received again once the wait returns.
func TestTheCardsArePolledWhileTheWaitForEventsHangs(t *testing.T) {
	script := filepath.Join(t.TempDir(), "host.script")
	text := func(driver, errors, xids string) []byte {
		return []byte(strings.Replace(string(threeCards("ecc 0 "+errors+"\n", "", xids)), "driver 1\n", "driver 1\n"+driver, 1))
	}
	nvmltest.ReplaceScript(t, script, text("", "0", ""))
	v := newViewer(t, nvmltest.Build(t), script, "2ms 30ms 300ms")
	v.untilRunning()
	nvmltest.ReplaceScript(t, script, text("hang wait\n", "0", ""))
	for len(v.hangs) == 0 {
		v.take()
	}
	if want := "XIDs are not received: nvmlEventSetWait has not returned for"; !strings.HasPrefix(v.hangs[0], want) {
		t.Errorf("the driver hangs with %q, want %q", v.hangs[0], want)
	}
	for n := 1; n <= 4; n++ {
		nvmltest.ReplaceScript(t, script, text("hang wait\n", fmt.Sprint(n), "xid 13\n"))
		v.await(devices.Event{UUID: "GPU-a", Kind: devices.EventECCUncorrected, Count: uint64(n)})
	}
	nvmltest.ReplaceScript(t, script, text("", "4", "xid 13\nxid 14\n"))
	for len(v.hangs) < 2 {
		v.take()
	}
	if v.hangs[1] != "" {
		t.Errorf("the driver hangs with %q after the return", v.hangs[1])
	}
	v.await(devices.Event{UUID: "GPU-c", Kind: devices.EventXID, XID: 13}, devices.Event{UUID: "GPU-c", Kind: devices.EventXID, XID: 14})
	v.must("unwatch")
	v.must("close")
}

// A watch ends at once while its wait for events hangs, and the library is shut down
// once the wait has returned.
func TestAWatchEndsWhileTheWaitForEventsHangs(t *testing.T) {
	script := filepath.Join(t.TempDir(), "host.script")
	healthy := threeCards("", "", "")
	nvmltest.ReplaceScript(t, script, healthy)
	v := newViewer(t, nvmltest.Build(t), script, "2ms 1h 300ms")
	v.untilRunning()
	nvmltest.ReplaceScript(t, script, []byte(strings.Replace(string(healthy), "driver 1\n", "driver 1\nhang wait\n", 1)))
	for len(v.hangs) == 0 {
		v.take()
	}
	v.must("unwatch")
	if a := v.ask("close"); !a.Hung {
		t.Errorf("close while the wait hangs: %+v, want ErrHung", a)
	}
	nvmltest.ReplaceScript(t, script, healthy)
	for a := v.ask("close"); a.Error != ""; a = v.ask("close") {
		if !a.Hung || v.ctx.Err() != nil {
			t.Fatalf("close after the wait returned: %+v", a)
		}
	}
}

// Another call about the driver hangs and returns while the wait for events hangs: the
// wait still counts as the call that hangs.
func TestTheWaitForEventsStaysNamedAfterAnotherCallReturned(t *testing.T) {
	script := filepath.Join(t.TempDir(), "host.script")
	text := func(driver string) []byte {
		return []byte(strings.Replace(string(threeCards("", "", "")), "driver 1\n", "driver 1\n"+driver, 1))
	}
	nvmltest.ReplaceScript(t, script, text(""))
	v := newViewer(t, nvmltest.Build(t), script, "2ms 30ms 100ms")
	v.untilRunning()
	nvmltest.ReplaceScript(t, script, text("hang wait\n"))
	for len(v.hangs) == 0 {
		v.take()
	}
	nvmltest.ReplaceScript(t, script, text("hang wait\nhang count\n"))
	for len(v.hangs) < 2 {
		v.take()
	}
	nvmltest.ReplaceScript(t, script, text("hang wait\n"))
	for len(v.hangs) < 3 {
		v.take()
	}
	if !strings.Contains(v.hangs[1], "nvmlDeviceGetCount") || !strings.HasPrefix(v.hangs[2], "XIDs are not received: nvmlEventSetWait") {
		t.Errorf("the calls about the driver that hung are %q, want the wait, the count and the wait again", v.hangs)
	}
	nvmltest.ReplaceScript(t, script, text(""))
	for v.hangs[len(v.hangs)-1] != "" {
		v.take()
	}
	v.must("unwatch")
	v.must("close")
}

// untilRunning waits until the watch has asked a card.
func (v *viewer) untilRunning() {
	v.t.Helper()
	for !v.asked {
		v.take()
	}
}

// untilAll waits for these events, in any order, and passes others over.
func (v *viewer) untilAll(want ...string) {
	v.t.Helper()
	missing := map[string]bool{}
	for _, w := range want {
		missing[w] = true
	}
	for {
		for _, e := range essence(v.events) {
			delete(missing, e)
		}
		v.events = nil
		if len(missing) == 0 {
			return
		}
		v.take()
	}
}
