package agent_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterd/muster/agent"
	"github.com/musterd/muster/agent/deviceplugin"
	"github.com/musterd/muster/agent/deviceplugin/kubelettest"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	schedulerv1 "github.com/musterd/muster/proto/scheduler/v1"
	"github.com/musterd/muster/resource"
)

// withKubelet gives the first n GPUs of the rig's machine to the kubelet of a folder.
func (r *rig) withKubelet(dir string, n int) (pool []string) {
	r.t.Helper()
	_, deps := r.config()
	for _, d := range deps.Discovered.Inventory.Devices[:n] {
		pool = append(pool, d.UUID)
	}
	r.tune = func(c *agent.Config, _ *agent.Deps) {
		c.Heartbeat = 5 * time.Millisecond
		c.Kubelet = &deviceplugin.Config{Pool: pool, Sockets: dir, PodResources: kubelettest.PodResources(dir), Look: 2 * time.Millisecond, List: 2 * time.Millisecond}
	}
	return slices.Sorted(slices.Values(pool))
}

// ofKubelet are the agent's grants of the kubelet: the pool, and what is lent.
func (r *rig) ofKubelet() (pool, lent []string) {
	s, err := r.agent.Snapshot(context.Background())
	if err != nil {
		r.t.Fatal(err)
	}
	for _, g := range s.Grants {
		switch g.State {
		case "POOL":
			pool = append(pool, g.Assignment.GPUs[0].UUID)
		case "KUBELET":
			lent = append(lent, g.Assignment.GPUs[0].UUID)
		}
	}
	return pool, lent
}

func TestTheLeaderPlansNothingOnTheKubeletsPool(t *testing.T) {
	r, dir := newRig(t), kubelettest.Dir(t)
	pool := r.withKubelet(dir, 2)
	k := kubelettest.Start(t, dir, nil)
	r.start()
	l := r.lead(1)
	k.Await(deviceplugin.DefaultResource, pool...)
	if got := l.reserve("seven", 7, time.Minute); got.GetState() == musterv1.Reply_RESERVED {
		t.Error("a device of the pool was promised to the leader")
	}
	six := l.reserve("six", 6, time.Minute)
	mustBe(t, six, musterv1.Reply_RESERVED)
	for _, uuid := range uuids(six) {
		if slices.Contains(pool, uuid) {
			t.Errorf("%s is in the pool and was promised", uuid)
		}
	}
	if _, err := k.Run("p", deviceplugin.DefaultResource, 1); err != nil {
		t.Fatal(err)
	}
	told := func(m *schedulerv1.HeartbeatRequest) string {
		for _, c := range m.GetConditions() {
			if c.GetType() == "KubeletPool" {
				return c.GetMessage()
			}
		}
		return ""
	}
	deadline := time.After(patient)
	for {
		select {
		case m := <-r.store.beats:
			if strings.Contains(told(m), ": default/p/main") {
				return
			}
		case <-deadline:
			t.Fatal("no heartbeat names the pod")
		}
	}
}

func TestADeviceIsOnDiskBeforeTheKubeletStartsAContainer(t *testing.T) {
	r, disk := newSyncedRig(t)
	dir := kubelettest.Dir(t)
	pool := r.withKubelet(dir, 2)
	k := kubelettest.Start(t, dir, nil)
	r.start()
	r.lead(1)
	k.Await(deviceplugin.DefaultResource, pool...)
	before := disk.written.Load()
	pod, err := k.Run("p", deviceplugin.DefaultResource, 1)
	if err != nil {
		t.Fatal(err)
	}
	if disk.written.Load() == before || !disk.durable() {
		t.Error("a power cut would lose the grant of a container")
	}
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	r.boot = "boot-2"
	r.start()
	r.lead(2)
	k.Await(deviceplugin.DefaultResource, pool...)
	if free, lent := r.ofKubelet(); !slices.Equal(lent, pod.Units) || len(free) != 1 {
		t.Errorf("after a restart the pool is %v, lent are %v, want %v lent", free, lent, pod.Units)
	}
}

func TestAPoolThatIsConfiguredNoMoreIsFree(t *testing.T) {
	r, dir := newRig(t), kubelettest.Dir(t)
	pool := r.withKubelet(dir, 2)
	k := kubelettest.Start(t, dir, nil)
	r.start()
	r.lead(1)
	k.Await(deviceplugin.DefaultResource, pool...)
	if _, err := k.Run("p", deviceplugin.DefaultResource, 1); err != nil {
		t.Fatal(err)
	}
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	r.tune = nil
	r.start()
	l := r.lead(2)
	mustBe(t, l.reserve("all", 8, time.Minute), musterv1.Reply_RESERVED)
}

func TestThePoolIsLentWithoutACoordinator(t *testing.T) {
	r, dir := newRig(t), kubelettest.Dir(t)
	pool := r.withKubelet(dir, 1)
	k := kubelettest.Start(t, dir, nil)
	r.start()
	r.lead(1)
	k.Await(deviceplugin.DefaultResource, pool...)
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	r.store.set(func(s *store) { s.away = true })
	r.start()
	k.Await(deviceplugin.DefaultResource, pool...)
	if _, err := k.Run("p", deviceplugin.DefaultResource, 1); err != nil {
		t.Fatal(err)
	}
	if _, lent := r.ofKubelet(); !slices.Equal(lent, pool) {
		t.Errorf("lent are %v, want %v", lent, pool)
	}
}

func TestThePoolIsInTheMetrics(t *testing.T) {
	r, dir := newRig(t), kubelettest.Dir(t)
	pool := r.withKubelet(dir, 3)
	registry := prometheus.NewRegistry()
	tune := r.tune
	r.tune = func(c *agent.Config, d *agent.Deps) { tune(c, d); d.Metrics = registry }
	k := kubelettest.Start(t, dir, nil)
	r.start()
	r.lead(1)
	k.Await(deviceplugin.DefaultResource, pool...)
	if _, err := k.Run("p", deviceplugin.DefaultResource, 1); err != nil {
		t.Fatal(err)
	}
	k.AwaitLists(2)
	s, err := r.agent.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if s.Capacity[resource.GPU] != 8000 || s.Allocatable[resource.GPU] != 5000 || s.Available[resource.GPU] != 5000 {
		t.Errorf("of %d thousandths of GPUs %d are allocatable and %d available, want 8000, 5000 and 5000", s.Capacity[resource.GPU], s.Allocatable[resource.GPU], s.Available[resource.GPU])
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			labels := ""
			for _, l := range m.GetLabel() {
				if l.GetName() != "node" {
					labels = l.GetValue()
				}
			}
			if name, ok := strings.CutPrefix(f.GetName(), "muster_agent_kubelet_"); ok {
				got[strings.TrimSpace(name+" "+labels)] = m.GetGauge().GetValue()
			}
		}
	}
	if want := map[string]float64{"devices free": 2, "devices lent": 1, "reachable": 1, "units muster.io/gpu": 3}; !maps.Equal(got, want) {
		t.Errorf("the metrics are %v, want %v", got, want)
	}
}

// awaitReport waits for a heartbeat in which the devices have these states, by UUID, and
// returns its report.
func (r *rig) awaitReport(what string, want map[string]string) *schedulerv1.KubeletReport {
	r.t.Helper()
	return r.awaitDevices(what, want, (*schedulerv1.KubeletDevice).GetState)
}

// awaitHolder waits for a heartbeat in which this device alone is in the report, joining,
// and held by this work. The pool and the grants are read one after the other: the first
// report with the device may be of grants from before the work.
func (r *rig) awaitHolder(uuid, holder string) {
	r.t.Helper()
	r.awaitDevices("while work holds the device", map[string]string{uuid: "Joining, of " + holder}, func(d *schedulerv1.KubeletDevice) string {
		return d.GetState() + ", of " + d.GetHolder()
	})
}

// awaitDevices waits for a heartbeat in which the devices look like this, by UUID, and
// returns its report.
func (r *rig) awaitDevices(what string, want map[string]string, look func(*schedulerv1.KubeletDevice) string) *schedulerv1.KubeletReport {
	r.t.Helper()
	deadline := time.After(patient)
	var got map[string]string
	for {
		select {
		case m := <-r.store.beats:
			got = map[string]string{}
			for _, d := range m.GetKubelet().GetDevices() {
				got[d.GetUuid()] = look(d)
			}
			if maps.Equal(got, want) {
				return m.GetKubelet()
			}
		case <-deadline:
			r.t.Fatalf("%s: the last heartbeat has %v, want %v", what, got, want)
		}
	}
}

func TestThePoolFollowsTheOperatorsWithoutARestart(t *testing.T) {
	r, dir := newRig(t), kubelettest.Dir(t)
	configured := r.withKubelet(dir, 2)
	_, deps := r.config()
	more := deps.Discovered.Inventory.Devices[7].UUID
	k := kubelettest.Start(t, dir, nil)
	r.start()
	l := r.lead(1)
	k.Await(deviceplugin.DefaultResource, configured...)
	l.send(&musterv1.KubeletPool{Add: []string{more}, Remove: configured[:1]})
	l.until("the agent confirms the wish", func(m *musterv1.AgentMessage) bool {
		return slices.Equal(m.GetOccupancy().GetKubeletPool().GetAdd(), []string{more})
	})
	now := slices.Sorted(slices.Values([]string{configured[1], more}))
	k.Await(deviceplugin.DefaultResource, now...)
	six := l.reserve("six", 6, time.Minute)
	mustBe(t, six, musterv1.Reply_RESERVED) // the removed device is Muster's again
	if !slices.Contains(uuids(six), configured[0]) {
		t.Errorf("the removed device %s is not among %v", configured[0], uuids(six))
	}
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	r.start()
	k.Await(deviceplugin.DefaultResource, now...)
	r.lead(2)
	r.awaitReport("after a restart of the agent", map[string]string{now[0]: "Free", now[1]: "Free"})
}

func TestAHeldDeviceJoinsWhenItsGrantEndsAndALentOneLeavesWhenNoPodHasIt(t *testing.T) {
	r, dir := newRig(t), kubelettest.Dir(t)
	tune := func(c *agent.Config, _ *agent.Deps) {
		c.Heartbeat = 5 * time.Millisecond
		c.Kubelet = &deviceplugin.Config{Sockets: dir, PodResources: kubelettest.PodResources(dir), Look: 2 * time.Millisecond, List: 2 * time.Millisecond, Absent: 200 * time.Millisecond}
	}
	r.tune = tune
	k := kubelettest.Start(t, dir, nil)
	r.start()
	l := r.lead(1)
	held := r.grant(l, "work", 8)
	mustBe(t, held, musterv1.Reply_HELD)
	wanted := uuids(held)[0]
	l.send(&musterv1.KubeletPool{Add: []string{wanted}})
	r.awaitHolder(wanted, "work")
	l.send(&musterv1.Release{Tx: "work", Epoch: l.epoch})
	k.Await(deviceplugin.DefaultResource, wanted)
	if _, err := k.Run("p", deviceplugin.DefaultResource, 1); err != nil {
		t.Fatal(err)
	}
	report := r.awaitReport("while a pod has the device", map[string]string{wanted: "Lent"})
	l.send(&musterv1.KubeletPool{})
	r.awaitReport("after the device was removed", map[string]string{wanted: "Leaving"})
	if report.GetDevices()[0].GetSince() == 0 {
		t.Error("nothing says since when the device is lent")
	}
	k.End("p")
	r.awaitReport("after the pod has ended", map[string]string{})
	mustBe(t, l.reserve("all", 8, time.Minute), musterv1.Reply_RESERVED)
}

// withKubeletOfOperators gives an agent without the key a kubelet.
func (r *rig) withKubeletOfOperators(dir string) {
	r.tune = func(c *agent.Config, d *agent.Deps) {
		c.Heartbeat = 5 * time.Millisecond
		d.Kubelet = deviceplugin.Config{Sockets: dir, PodResources: kubelettest.PodResources(dir), Look: 2 * time.Millisecond, List: 2 * time.Millisecond, Absent: 200 * time.Millisecond}
	}
}

// Operators take a device back while a pod has it: the agent has no key kubelet and the
// pool is empty, but nobody else can say when the pod has ended.
func TestADeviceThatAPodHasLeavesAnAgentWithoutTheKey(t *testing.T) {
	for name, restarts := range map[string]bool{"in one run": false, "over a restart": true} {
		t.Run(name, func(t *testing.T) {
			r, dir := newRig(t), kubelettest.Dir(t)
			r.withKubeletOfOperators(dir)
			_, deps := r.config()
			uuid := deps.Discovered.Inventory.Devices[0].UUID
			k := kubelettest.Start(t, dir, nil)
			r.start()
			l := r.lead(1)
			l.send(&musterv1.KubeletPool{Add: []string{uuid}})
			k.Await(deviceplugin.DefaultResource, uuid)
			if _, err := k.Run("p", deviceplugin.DefaultResource, 1); err != nil {
				t.Fatal(err)
			}
			r.awaitReport("while a pod has the device", map[string]string{uuid: "Lent"})
			l.send(&musterv1.KubeletPool{})
			r.awaitReport("after the device was removed", map[string]string{uuid: "Leaving"})
			if restarts {
				if err := r.end(); err != nil {
					t.Fatal(err)
				}
				r.start()
				l = r.lead(2)
				r.awaitReport("after a restart", map[string]string{uuid: "Leaving"})
			}
			k.AwaitLists(3)
			if got := l.reserve("all", 8, time.Minute); got.GetState() == musterv1.Reply_RESERVED {
				t.Error("a device that a pod has was promised to the leader")
			}
			k.End("p")
			r.awaitReport("after the pod has ended", map[string]string{})
			mustBe(t, l.reserve("all", 8, time.Minute), musterv1.Reply_RESERVED)
		})
	}
}

// The names of an agent's report are those that operators type.
func TestTheHolderOfADeviceIsNamedAsOperatorsKnowIt(t *testing.T) {
	for name, holder := range map[string]string{
		"default/alloc/notebook/0": "default/notebook", "default/job/train/1": "job default/train", "": "work", "default/train": "work",
	} {
		t.Run(name, func(t *testing.T) {
			r, dir := newRig(t), kubelettest.Dir(t)
			r.withKubeletOfOperators(dir)
			r.start()
			l := r.lead(1)
			l.send(&musterv1.Reserve{
				Tx: "work", Unit: "u", Name: name, Epoch: l.epoch, Members: []*musterv1.MemberRequest{want(8)}, TtlMillis: time.Minute.Milliseconds(),
			})
			reserved := l.reply("work")
			mustBe(t, reserved, musterv1.Reply_RESERVED)
			wanted := uuids(reserved)[0]
			l.send(&musterv1.KubeletPool{Add: []string{wanted}})
			r.awaitHolder(wanted, holder)
		})
	}
}

func TestAnAgentWithoutTheKeyFollowsTheOperatorsToo(t *testing.T) {
	r := newRig(t)
	r.tune = func(c *agent.Config, _ *agent.Deps) { c.Heartbeat = 5 * time.Millisecond }
	_, deps := r.config()
	uuid := deps.Discovered.Inventory.Devices[0].UUID
	r.start()
	l := r.lead(1)
	l.send(&musterv1.KubeletPool{Add: []string{uuid}})
	r.awaitReport("after the device was added", map[string]string{uuid: "Free"})
	if got := l.reserve("eight", 8, time.Minute); got.GetState() == musterv1.Reply_RESERVED {
		t.Error("a device of the pool was promised to the leader")
	}
	l.send(&musterv1.KubeletPool{})
	r.awaitReport("after the device was removed", map[string]string{})
	mustBe(t, l.reserve("all", 8, time.Minute), musterv1.Reply_RESERVED)
}
