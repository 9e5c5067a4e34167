package integration

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/devices/fake"
	"github.com/musterd/muster/devices/fake/fakehost"
	nvmltest "github.com/musterd/muster/test/nvml"
	"github.com/musterd/muster/test/programs"
)

// actedHost makes the fake driver of a cluster's first agent act a host, and
// returns a function that shows the driver what has become of it.
func (c *cluster) actedHost(absent ...int) (host *fakehost.Host, act func()) {
	c.t.Helper()
	profile, err := fake.Lookup("dgx-a100")
	if err != nil {
		c.t.Fatal(err)
	}
	a := c.agents[0]
	host = fakehost.New(profile, a.name, absent...)
	script := filepath.Join(filepath.Dir(a.file), "acted.script")
	a.env = nvmltest.Environ(nvmltest.Build(c.t), script)
	act = func() { nvmltest.Act(c.t, script, host) }
	act()
	return host, act
}

// device is one of a node's GPUs as operators see it.
func (c *cluster) device(node string, gpu int) api.DeviceStatus {
	c.t.Helper()
	n := c.node(node)
	if len(n.Status.Devices) <= gpu {
		return api.DeviceStatus{}
	}
	return n.Status.Devices[gpu]
}

// awaitHealth waits until a device is in a state.
func (c *cluster) awaitHealth(node string, gpu int, want string) api.DeviceStatus {
	c.t.Helper()
	var d api.DeviceStatus
	programs.Eventually(c.t, patience, fmt.Sprintf("GPU %d of %s is %s", gpu, node, want), func() error {
		if d = c.device(node, gpu); d.Health != want {
			return fmt.Errorf("it is %q (%s)", d.Health, d.HealthReason)
		}
		return nil
	})
	return d
}

// TestADyingCardIsTakenOutOfServiceWhileItsSiblingsWork drives a real agent
// through the driver's library: an XID taints one card, which keeps its work
// and gets no more; the other seven still go out as one gang.
func TestADyingCardIsTakenOutOfServiceWhileItsSiblingsWork(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	node := c.agents[0].name
	host, act := c.actedHost()
	c.agents[0].start()
	c.coordinator.start()
	c.awaitLeader()
	c.awaitNodes(1)
	c.submit(gang("one", 1, gpus(1)))
	c.awaitRunning("one")
	held := -1
	for i := range 8 {
		if c.device(node, i).Free == 0 {
			held = i
		}
	}
	if held < 0 {
		t.Fatal("no device is held")
	}
	host.XID(held, 31) // the application's own
	host.XID(held, 79)
	act()
	if d := c.awaitHealth(node, held, "tainted"); !strings.Contains(d.HealthReason, "XID 79") {
		t.Errorf("it is tainted for %q, want XID 79", d.HealthReason)
	}
	c.awaitRunning("one")
	c.submit(gang("seven", 1, gpus(7)))
	c.awaitRunning("seven")
	c.remove("one")
	c.submit(gang("waits", 1, gpus(1)))
	if out := c.muster("why", "job/waits"); !strings.Contains(out, "unhealthy") && !strings.Contains(out, "Unhealthy") {
		t.Errorf("why does not name the card's health:\n%s", out)
	}
	if out := c.muster("describe", "node", node); !strings.Contains(out, "XID 79") {
		t.Errorf("describe node does not tell why the card is tainted:\n%s", out)
	}
}

// TestACardThatIsAddedWhileTheAgentRunsGoesOut starts with seven cards, all of
// them held, and plugs in the eighth.
func TestACardThatIsAddedWhileTheAgentRunsGoesOut(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	a := c.agents[0]
	host, act := c.actedHost(7)
	a.configure(a.settings.clone().set("discovery.rediscover", "200ms"))
	a.start()
	c.coordinator.start()
	c.awaitLeader()
	c.awaitNodes(1)
	c.submit(gang("seven", 1, gpus(7)))
	c.awaitRunning("seven")
	before := c.holdings()
	c.submit(gang("waits", 1, gpus(1)))
	c.wantPhase("waits", api.Queued)
	host.Plug(7)
	act()
	c.awaitRunning("waits")
	after := c.holdings()
	for name, h := range before {
		if fmt.Sprint(after[name]) != fmt.Sprint(h) {
			t.Errorf("%s held %v, now %v", name, h, after[name])
		}
	}
	if devices, _ := distinctGPUs(t, c.allocations()); devices != 8 {
		t.Errorf("%d devices are held, want 8", devices)
	}
}

// TestACardThatHangsForEverSilencesNoOther has one card hang from the first look at
// its errors on, and another one later. The errors of a third card are seen, the rest
// goes out, and the agent ends while both hang.
func TestACardThatHangsForEverSilencesNoOther(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	a := c.agents[0]
	host, act := c.actedHost()
	host.Hang(7)
	act()
	a.configure(a.settings.clone().set("discovery.hangAfter", "500ms"))
	a.start()
	c.coordinator.start()
	c.awaitLeader()
	c.awaitNodes(1)
	for _, gpu := range []int{7, 1} {
		host.Hang(gpu)
		act()
		if d := c.awaitHealth(a.name, gpu, "suspect"); !strings.Contains(d.HealthReason, "has not returned") {
			t.Errorf("GPU %d is suspect for %q, want a call that has not returned", gpu, d.HealthReason)
		}
	}
	host.XID(2, 79)
	act()
	if d := c.awaitHealth(a.name, 2, "tainted"); !strings.Contains(d.HealthReason, "XID 79") {
		t.Errorf("GPU 2 is tainted for %q, want XID 79", d.HealthReason)
	}
	c.submit(gang("five", 1, gpus(5)))
	c.awaitRunning("five")
	a.stop()
}

// TestADriverThatHangsIsAConditionOfItsNode has the driver's wait for events hang. While it hangs the node has the condition DriverHangs, work without
// GPUs is placed and ends, and errors of a card are seen; the condition ends with the call.
func TestADriverThatHangsIsAConditionOfItsNode(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	a := c.agents[0]
	host, act := c.actedHost()
	actHanging := func() {
		text := strings.Replace(string(host.NVMLScript()), "\ngpu ", "\nhang wait\ngpu ", 1)
		nvmltest.ReplaceScript(t, filepath.Join(filepath.Dir(a.file), "acted.script"), []byte(text))
	}
	a.configure(a.settings.clone().set("discovery.hangAfter", "500ms"))
	a.start()
	c.coordinator.start()
	c.awaitLeader()
	c.awaitNodes(1)
	c.submit(gang("one", 1, gpus(1)))
	c.awaitRunning("one")
	hangs := func() string {
		for _, condition := range c.node(a.name).Status.Conditions {
			if condition.Type == "DriverHangs" {
				return condition.Message
			}
		}
		return ""
	}
	await := func(want string, ok func(string) bool) {
		t.Helper()
		programs.Eventually(t, patience, want, func() error {
			if got := hangs(); !ok(got) {
				return fmt.Errorf("the condition DriverHangs says %q", got)
			}
			return nil
		})
	}
	actHanging()
	await("the wait for events hangs", func(s string) bool { return strings.Contains(s, "nvmlEventSetWait has not returned") })
	host.Lose(7)
	actHanging()
	c.awaitHealth(a.name, 7, "tainted")
	c.submit(gang("two", 1, gpus(2)))
	c.awaitRunning("two")
	c.remove("two")
	if out := c.muster("describe", "node", a.name); !strings.Contains(out, "DriverHangs") {
		t.Errorf("describe node does not name the condition:\n%s", out)
	}
	host.XID(2, 79)
	act()
	await("the wait for events has returned", func(s string) bool { return s == "" })
	if d := c.awaitHealth(a.name, 2, "tainted"); !strings.Contains(d.HealthReason, "XID 79") {
		t.Errorf("GPU 2 is tainted for %q, want XID 79", d.HealthReason)
	}
}
