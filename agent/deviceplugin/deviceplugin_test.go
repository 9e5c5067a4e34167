package deviceplugin_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterd/muster/agent/deviceplugin"
	"github.com/musterd/muster/agent/deviceplugin/kubelettest"
	"github.com/musterd/muster/agent/follow"
	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/devices/fake"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// host is an agent's ledger without the rest of the agent.
type host struct {
	mu     sync.Mutex
	ledger *ledger.Ledger
	now    time.Time
	pool   []string
	busy   []string
	plugin *deviceplugin.Plugin
}

func newHost(t *testing.T, pool ...int) *host {
	t.Helper()
	profile, err := fake.Lookup("dgx-a100")
	if err != nil {
		t.Fatal(err)
	}
	hardware, err := fit.NewHost(profile.Topology(), profile.Inventory("n1"), fit.Reserved{})
	if err != nil {
		t.Fatal(err)
	}
	h := &host{ledger: ledger.New(hardware), now: time.Unix(1000, 0)}
	for _, i := range pool {
		h.pool = append(h.pool, hardware.Inventory().Devices[i].UUID)
	}
	h.do(ledger.Start{Incarnation: resource.Incarnation{JournalID: "j1", BootID: "b1"}})
	h.do(ledger.Registered{Revision: 5})
	return h
}

// do decides a command, and fills the pool as the agent's owner does.
func (h *host) do(c ledger.Command) ledger.Reply {
	h.mu.Lock()
	defer h.mu.Unlock()
	var first ledger.Reply
	for i, c := range []ledger.Command{c, ledger.Pool{Devices: h.pool}} {
		reply, events := h.ledger.Decide(h.now, c)
		for _, e := range events {
			if err := h.ledger.Apply(e); err != nil {
				panic(err)
			}
		}
		if i == 0 {
			first = reply
		}
	}
	if h.plugin != nil {
		h.plugin.After(follow.Group{})
	}
	return first
}

func (h *host) View(context.Context) (*ledger.View, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ledger.Snapshot(), nil
}

func (h *host) Lend(_ context.Context, uuids []string) error {
	return refusal(h.do(ledger.Lend{Devices: uuids}))
}

func (h *host) Return(_ context.Context, uuids []string) error {
	return refusal(h.do(ledger.Return{Devices: uuids, Busy: h.busy}))
}

func refusal(r ledger.Reply) (err error) {
	for _, reason := range r.Reasons {
		err = errors.Join(err, errors.New(reason.Detail))
	}
	return err
}

func (h *host) time() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

func (h *host) advance(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(d)
}

// lent are the devices that the ledger has as lent.
func (h *host) lent() (list []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, g := range h.ledger.Snapshot().Grants {
		if uuid, lent, _ := ledger.PooledUUID(g.Tx); lent {
			list = append(list, uuid)
		}
	}
	return list
}

// start runs a plugin over the host until the test ends or stop is called.
func (h *host) start(t *testing.T, dir string, tune func(*deviceplugin.Config)) (stop func()) {
	t.Helper()
	c := deviceplugin.Config{Pool: h.pool, Sockets: dir, PodResources: kubelettest.PodResources(dir), Look: 2 * time.Millisecond, List: 2 * time.Millisecond}
	if tune != nil {
		tune(&c)
	}
	p, err := deviceplugin.New(c, h, slog.New(slog.DiscardHandler), h.time)
	if err != nil {
		t.Fatal(err)
	}
	h.mu.Lock()
	h.plugin = p
	h.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() { p.Run(ctx) })
	stop = func() { cancel(); ended.Wait() }
	t.Cleanup(stop)
	return stop
}

const gpu = deviceplugin.DefaultResource

// settle lets the plugin see enough lists that are far enough apart.
func settle(h *host, k *kubelettest.Kubelet) {
	for range 3 {
		h.advance(31 * time.Second)
		k.AwaitLists(2)
	}
}

func TestAPodGetsADeviceOfThePoolAndGivesItBack(t *testing.T) {
	h, dir := newHost(t, 0, 1), kubelettest.Dir(t)
	k := kubelettest.Start(t, dir, nil)
	h.start(t, dir, nil)
	k.Await(gpu, h.sorted()...)
	for _, d := range k.Devices(gpu) {
		if n := d.GetTopology().GetNodes(); len(n) != 1 || n[0].GetID() != 3 {
			t.Errorf("unit %s has topology %v, want NUMA node 3", d.GetID(), n)
		}
	}
	pod, err := k.Run("a", gpu, 1)
	if err != nil {
		t.Fatal(err)
	}
	if want := pod.Units[0]; pod.Answer.GetEnvs()["NVIDIA_VISIBLE_DEVICES"] != want {
		t.Errorf("the answer is %v, want %s", pod.Answer, want)
	}
	if !slices.Equal(h.lent(), pod.Units) {
		t.Errorf("lent are %v, want %v", h.lent(), pod.Units)
	}
	settle(h, k)
	if !slices.Equal(h.lent(), pod.Units) {
		t.Fatal("a device was returned while its pod had it")
	}
	k.End("a")
	settle(h, k)
	if len(h.lent()) > 0 {
		t.Errorf("%v are still lent", h.lent())
	}
}

// sorted are the UUIDs of the pool, ascending.
func (h *host) sorted() []string { return slices.Sorted(slices.Values(h.pool)) }

func TestARestartOfTheKubeletIsFollowedByARegistration(t *testing.T) {
	h, dir := newHost(t, 0, 1), kubelettest.Dir(t)
	k := kubelettest.Start(t, dir, nil)
	h.start(t, dir, nil)
	k.Await(gpu, h.sorted()...)
	pod, err := k.Run("a", gpu, 1)
	if err != nil {
		t.Fatal(err)
	}
	for name, keep := range map[string]bool{"with its checkpoint": true, "its checkpoint is lost": false} {
		memory := k.Stop()
		if !keep {
			memory = nil
		}
		k = kubelettest.Start(t, dir, memory)
		k.Await(gpu, h.sorted()...)
		k.AwaitLists(2)
		if !slices.Equal(h.lent(), pod.Units) {
			t.Errorf("%s: lent are %v, want %v: two lists of which were less than 30 s apart", name, h.lent(), pod.Units)
		}
	}
}

// A kubelet that drops a plugin says so to nobody.
func TestAKubeletThatHasLostThePluginGetsItAgain(t *testing.T) {
	h, dir := newHost(t, 0, 1), kubelettest.Dir(t)
	k := kubelettest.Start(t, dir, nil)
	h.start(t, dir, nil)
	k.Await(gpu, h.sorted()...)
	k.Drop(gpu)
	k.Await(gpu) // the kubelet has no units
	for range 5 {
		h.advance(time.Second)
		k.AwaitLists(2)
	}
	k.Await(gpu, h.sorted()...)
	if _, err := k.Run("a", gpu, 2); err != nil {
		t.Error(err)
	}
}

func TestARestartOfThePluginKeepsWhatPodsHave(t *testing.T) {
	h, dir := newHost(t, 0, 1), kubelettest.Dir(t)
	k := kubelettest.Start(t, dir, nil)
	stop := h.start(t, dir, nil)
	k.Await(gpu, h.sorted()...)
	if _, err := k.Run("a", gpu, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Run("b", gpu, 1); err != nil {
		t.Fatal(err)
	}
	stop()
	k.Await(gpu)
	k.End("b")
	h.start(t, dir, nil)
	k.Await(gpu, h.sorted()...)
	settle(h, k)
	if lent := h.lent(); len(lent) != 1 {
		t.Errorf("lent are %v, want one device, that of pod a", lent)
	}
}

func TestAnUnhealthyDeviceIsNotOffered(t *testing.T) {
	h, dir := newHost(t, 0, 1), kubelettest.Dir(t)
	k := kubelettest.Start(t, dir, nil)
	h.start(t, dir, nil)
	k.Await(gpu, h.sorted()...)
	h.do(ledger.SetHealth{Device: 0, Health: devices.Tainted, Reason: "XID 79"})
	k.Await(gpu, h.pool[1])
	h.do(ledger.SetHealth{Device: 0, Health: devices.OK})
	k.Await(gpu, h.sorted()...)
}

func TestADeviceThatWorkHoldsJoinsWhenTheWorkEnds(t *testing.T) {
	h, dir := newHost(t), kubelettest.Dir(t)
	all := h.ledger.Snapshot().Host.Inventory().Devices
	k := kubelettest.Start(t, dir, nil)
	const work = resource.TxID("u.1.1.0")
	if r := h.do(grant.Reserve{Tx: work, Unit: "u", Epoch: 1, TTL: time.Hour, Members: []grant.MemberRequest{{Request: resource.Request{GPUs: 7}}}}); r.Refused() {
		t.Fatal(r.Reasons)
	}
	free := slices.IndexFunc(h.ledger.Snapshot().GPUs, func(g ledger.GPUFree) bool { return g.Milli > 0 })
	held := (free + 1) % 8
	h.pool = []string{all[free].UUID, all[held].UUID}
	h.do(ledger.Tick{})
	h.start(t, dir, nil)
	k.Await(gpu, all[free].UUID)
	h.do(grant.Abort{Tx: work, Epoch: 1})
	k.Await(gpu, h.sorted()...)
	if _, err := k.RunOn("x", gpu, all[(free+2)%8].UUID); err == nil || !strings.Contains(err.Error(), "is not offered on this node") {
		t.Errorf("a unit outside the pool: %v", err)
	}
}

func TestAFailedListReturnsNothing(t *testing.T) {
	h, dir := newHost(t, 0), kubelettest.Dir(t)
	k := kubelettest.Start(t, dir, nil)
	h.start(t, dir, nil)
	k.Await(gpu, h.pool...)
	if _, err := k.Run("a", gpu, 1); err != nil {
		t.Fatal(err)
	}
	k.Break(true)
	k.End("a")
	h.advance(time.Hour)
	k.Break(false)
	k.AwaitLists(2)
	if len(h.lent()) != 1 {
		t.Error("the device was returned though the lists without it were not 30 s apart")
	}
	settle(h, k)
	if len(h.lent()) != 0 {
		t.Errorf("lent are %v", h.lent())
	}
}

func TestABusyDeviceIsNotReturned(t *testing.T) {
	h, dir := newHost(t, 0), kubelettest.Dir(t)
	k := kubelettest.Start(t, dir, nil)
	h.busy = h.pool
	h.start(t, dir, nil)
	k.Await(gpu, h.pool...)
	if _, err := k.Run("a", gpu, 1); err != nil {
		t.Fatal(err)
	}
	k.End("a")
	settle(h, k)
	if len(h.lent()) != 1 {
		t.Error("a device on which a process runs was returned")
	}
}

func TestSharesAreAResourceOfTheirOwn(t *testing.T) {
	h, dir := newHost(t, 0, 1), kubelettest.Dir(t)
	k := kubelettest.Start(t, dir, nil)
	h.start(t, dir, func(c *deviceplugin.Config) {
		c.Shares = map[string]int{h.pool[0]: 2}
		c.Strategies = []deviceplugin.Strategy{deviceplugin.CDICRI}
	})
	k.Await(gpu, h.pool[1])
	k.Await(gpu+".shared", h.pool[0]+"::0", h.pool[0]+"::1")
	for _, name := range []string{"a", "b"} {
		pod, err := k.Run(name, gpu+".shared", 1)
		if err != nil {
			t.Fatal(err)
		}
		if got := pod.Answer.GetCdiDevices(); len(got) != 1 || got[0].GetName() != deviceplugin.DefaultCDIKind+"="+h.pool[0] {
			t.Errorf("pod %s: %v", name, got)
		}
	}
	k.End("a")
	settle(h, k)
	if !slices.Equal(h.lent(), h.pool[:1]) {
		t.Errorf("lent are %v while one share is used", h.lent())
	}
	k.End("b")
	settle(h, k)
	if len(h.lent()) > 0 {
		t.Errorf("lent are %v", h.lent())
	}
}
