package agent_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/agent"
	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/devices/fake"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
)

// without is an inventory less one device, and with others at its end.
func without(inv *devices.Inventory, uuid string, more ...devices.Device) *devices.Inventory {
	next := &devices.Inventory{Driver: inv.Driver}
	for _, d := range inv.Devices {
		if d.UUID != uuid {
			next.Devices = append(next.Devices, d)
		}
	}
	next.Devices = append(next.Devices, more...)
	for i := range next.Devices {
		next.Devices[i].Index = i
		next.Links = append(next.Links, make([]devices.Link, len(next.Devices)))
		for j := range i {
			next.Links[i][j], next.Links[j][i] = devices.LinkSYS, devices.LinkSYS
		}
	}
	return next
}

// A card that a grant holds is replaced while the agent is down: the old card
// stays listed as lost and held, the new one is a device of its own, and a card
// that comes back is the grant's as before.
func TestAHeldDeviceThatIsGoneAfterARestartStaysListedAsLost(t *testing.T) {
	for name, forget := range map[string]bool{"it is described as it was": false, "without its description it has its UUID": true} {
		t.Run(name, func(t *testing.T) {
			w := newWatchedRig(t)
			profile, err := fake.Lookup("dgx-a100")
			if err != nil {
				t.Fatal(err)
			}
			found := profile.Inventory(node)
			var absent []string
			w.tune = func(c *agent.Config, d *agent.Deps) {
				c.Heartbeat = 20 * time.Millisecond
				d.Discovered.Inventory = found
				d.Watch = func(ctx context.Context, _ *devices.Inventory, missing []string, _ func(devices.Change)) error {
					absent = missing
					<-ctx.Done()
					return nil
				}
			}
			w.start()
			held := uuids(w.grant(w.lead(1), "held", 2))
			if err := w.end(); err != nil {
				t.Fatal(err)
			}
			at := slices.IndexFunc(found.Devices, func(d devices.Device) bool { return d.UUID == held[0] })
			gone := found.Devices[at]
			replacement := gone
			replacement.UUID = "GPU-replacement"
			found = without(found, gone.UUID, replacement)
			if forget {
				if err := os.Remove(filepath.Join(w.dir, "inventory.json")); err != nil {
					t.Fatal(err)
				}
			}
			w.start()
			inv := w.agent.Host().Inventory()
			last := inv.Devices[len(inv.Devices)-1]
			if len(inv.Devices) != 9 || last.UUID != gone.UUID || forget != (last.Model == "") {
				t.Fatalf("%d devices, the last is %+v; want 9 and the lost one", len(inv.Devices), last)
			}
			eventually(t, "the device is reported as lost", func() bool {
				s, err := w.agent.Snapshot(t.Context())
				return err == nil && devices.IsLost(devices.Tainted, s.Devices[8].Reason)
			})
			eventually(t, "the condition in a heartbeat", func() bool {
				for _, c := range (<-w.store.beats).GetConditions() {
					if c.GetType() == "DeviceLost" && c.GetStatus() == "True" && strings.HasPrefix(c.GetMessage(), gone.UUID+" ; ") {
						return true
					}
				}
				return false
			})
			l := w.lead(1)
			again := l.reserve("held", 2, time.Minute)
			mustBe(t, again, musterv1.Reply_HELD)
			if !slices.Equal(uuids(again), held) {
				t.Errorf("%v are held, before %v", uuids(again), held)
			}
			fresh := l.reserve("new", 7, time.Minute)
			mustBe(t, fresh, musterv1.Reply_RESERVED)
			if got := uuids(fresh); !slices.Contains(got, "GPU-replacement") || slices.Contains(got, gone.UUID) {
				t.Errorf("%v went out, want the replacement among them and not the lost device", got)
			}
			if err := w.end(); err != nil { // so that absent may be read
				t.Fatal(err)
			}
			if !slices.Equal(absent, []string{gone.UUID}) {
				t.Errorf("the watch begins with %v as lost, want %s", absent, gone.UUID)
			}
		})
	}
}

func TestAnInventoryFileIsNeverBelievedBeyondADescription(t *testing.T) {
	w := newRig(t)
	if err := os.WriteFile(filepath.Join(w.dir, "inventory.json"), []byte(strings.Repeat("[", 1<<16)), 0o600); err != nil {
		t.Fatal(err)
	}
	w.start()
	if n := len(w.agent.Host().Inventory().Devices); n != 8 {
		t.Errorf("%d devices", n)
	}
}
