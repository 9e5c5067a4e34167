package gpuallocator_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/bits"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/NVIDIA/go-gpuallocator/gpuallocator"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/musterd/muster/agent/deviceplugin"
	"github.com/musterd/muster/agent/deviceplugin/kubelettest"
	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/resource"
)

// ownHost is a host whose GPUs are all in the kubelet's pool.
type ownHost struct{ view *ledger.View }

func (h ownHost) View(context.Context) (*ledger.View, error) { return h.view, nil }
func (h ownHost) Lend(context.Context, []string) error       { return nil }
func (h ownHost) Return(context.Context, []string) error     { return nil }

// plugin starts Muster's device plugin over a host, with all its GPUs in the pool, and
// returns a client of it, as the kubelet has one.
func plugin(t testing.TB, h *fit.Host) pluginapi.DevicePluginClient {
	t.Helper()
	l := ledger.New(h)
	var pool []string
	for _, d := range h.Inventory().Devices {
		pool = append(pool, d.UUID)
	}
	for _, c := range []ledger.Command{
		ledger.Start{Incarnation: resource.Incarnation{JournalID: "j", BootID: "b"}}, ledger.Registered{Revision: 1}, ledger.Pool{Devices: pool},
	} {
		_, events := l.Decide(time.Unix(1000, 0), c)
		for _, e := range events {
			if err := l.Apply(e); err != nil {
				t.Fatal(err)
			}
		}
	}
	dir := kubelettest.Dir(t)
	kubelet := kubelettest.Start(t, dir, nil)
	p, err := deviceplugin.New(deviceplugin.Config{Pool: pool, Sockets: dir, PodResources: kubelettest.PodResources(dir), Look: time.Millisecond},
		ownHost{l.Snapshot()}, slog.New(slog.DiscardHandler), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); p.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	kubelet.Await(deviceplugin.DefaultResource, pool...)
	socket := filepath.Join(dir, "muster-muster-io-gpu.sock")
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return pluginapi.NewDevicePluginClient(conn)
}

// preferred asks the plugin for k of the available GPUs, the required ones among them.
func preferred(t testing.TB, client pluginapi.DevicePluginClient, available, required uint, k int) (set uint) {
	t.Helper()
	answer, err := client.GetPreferredAllocation(context.Background(), &pluginapi.PreferredAllocationRequest{ContainerRequests: []*pluginapi.ContainerPreferredAllocationRequest{{
		AvailableDeviceIDs: names(available), MustIncludeDeviceIDs: names(required), AllocationSize: int32(k),
	}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range answer.GetContainerResponses()[0].GetDeviceIDs() {
		i, err := strconv.Atoi(strings.TrimPrefix(id, "GPU-"))
		if err != nil {
			t.Fatal(err)
		}
		set |= 1 << i
	}
	return set
}

func names(set uint) (list []string) {
	for ; set != 0; set &= set - 1 {
		list = append(list, fmt.Sprintf("GPU-%d", bits.TrailingZeros(set)))
	}
	return list
}

// theirsWith is the library's choice with required devices.
func theirsWith(list []*gpuallocator.Device, available, required uint, k int) (set uint) {
	some := func(mask uint) (some []*gpuallocator.Device) {
		for i, d := range list {
			if mask>>i&1 == 1 {
				some = append(some, d)
			}
		}
		return some
	}
	for _, d := range gpuallocator.NewBestEffortPolicy().Allocate(some(available), some(required), k) {
		set |= 1 << d.Index
	}
	return set
}

// comparePreferred asks the device plugin, over its socket, for every size of every set
// of available GPUs.
func comparePreferred(t testing.TB, p topology) (chosen tally) {
	list, pairs, client := p.library(t), p.pairs(t), plugin(t, p.host(t))
	for available := uint(1); available < 1<<len(list); available++ {
		for k := 1; k <= bits.OnesCount(available); k++ {
			a, b := preferred(t, client, available, 0, k), theirs(list, available, k)
			if bits.OnesCount(a) != k || a&^available != 0 {
				t.Fatalf("%d of %08b: %08b", k, available, a)
			}
			scoreA, scoreB := setScore(pairs, a), setScore(pairs, b)
			if chosen.add(scoreA, scoreB); scoreA < scoreB {
				t.Errorf("%d of %08b: ours %08b scores %d, theirs %08b %d", k, available, a, scoreA, b, scoreB)
			}
		}
	}
	return chosen
}

// compareRequired does the same where a container of the pod has one or two of the GPUs
// already, and all GPUs are available.
func compareRequired(t testing.TB, p topology) (chosen tally) {
	list, pairs, client := p.library(t), p.pairs(t), plugin(t, p.host(t))
	all := uint(1)<<len(list) - 1
	for required := uint(1); required <= all; required++ {
		has := bits.OnesCount(required)
		if has > 2 {
			continue
		}
		for k := has; k <= len(list); k++ {
			a, b := preferred(t, client, all, required, k), theirsWith(list, all, required, k)
			if bits.OnesCount(a) != k || a&required != required {
				t.Fatalf("%d with %08b: %08b", k, required, a)
			}
			scoreA, scoreB := setScore(pairs, a), setScore(pairs, b)
			if chosen.add(scoreA, scoreB); scoreA < scoreB {
				t.Errorf("%d with %08b: ours %08b scores %d, theirs %08b %d", k, required, a, scoreA, b, scoreB)
			}
		}
	}
	return chosen
}

// TestOurPreferenceIsNeverWorseConnected compares on each of the library's own topologies.
func TestOurPreferenceIsNeverWorseConnected(t *testing.T) {
	for _, p := range own() {
		t.Run(p.name, func(t *testing.T) { t.Logf("chosen: %s", comparePreferred(t, p)) })
	}
}

// TestRequiredDevicesAreAmongThePreferred: with required GPUs our choice is never worse.
func TestRequiredDevicesAreAmongThePreferred(t *testing.T) {
	for _, p := range own() {
		t.Run(p.name, func(t *testing.T) { t.Logf("chosen: %s", compareRequired(t, p)) })
	}
}

// BenchmarkPreferences counts how often our preference is better connected than the
// library's, without and with required GPUs.
func BenchmarkPreferences(b *testing.B) {
	for _, p := range own() {
		b.Run(p.name, func(b *testing.B) {
			var free, required tally
			for b.Loop() {
				free, required = comparePreferred(b, p), compareRequired(b, p)
			}
			free.report(b, "")
			required.report(b, "required-")
		})
	}
}

// BenchmarkPreferred is a call of GetPreferredAllocation over the plugin's socket.
func BenchmarkPreferred(b *testing.B) {
	for _, q := range questions() {
		b.Run(q.name(), func(b *testing.B) {
			client := plugin(b, q.host(b))
			all := uint(1)<<len(q.nodes) - 1
			b.ReportAllocs()
			for b.Loop() {
				if set := preferred(b, client, all, 0, q.k); bits.OnesCount(set) != q.k {
					b.Fatal("refused")
				}
			}
		})
	}
}
