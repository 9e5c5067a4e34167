package wire_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/numa"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/bitset"
	"github.com/musterd/muster/wire"
)

func drawRequest(t *rapid.T) resource.Request {
	r := resource.Request{
		Memory: resource.Bytes(rapid.Int64Range(0, int64(resource.MaxMemory)).Draw(t, "memory")),
		NUMA:   resource.NUMAPolicy(rapid.IntRange(0, 3).Draw(t, "numa")),
	}
	if rapid.Bool().Draw(t, "whole cores") {
		r.Cores = rapid.IntRange(1, resource.MaxCores).Draw(t, "cores")
	} else {
		r.CPU = resource.Millicores(rapid.Int64Range(1, int64(resource.MaxCPU)).Draw(t, "cpu"))
	}
	if rapid.Bool().Draw(t, "huge pages") {
		r.HugepageSize = drawPage(t)
		r.Hugepages = r.HugepageSize * resource.Bytes(rapid.Int64Range(1, 1<<10).Draw(t, "pages"))
	}
	switch rapid.IntRange(0, 3).Draw(t, "device kind") {
	case 1:
		r.GPUs = rapid.IntRange(1, resource.MaxGPUs).Draw(t, "gpus")
		r.Link = resource.LinkRequirement(rapid.IntRange(0, 2).Draw(t, "link"))
		r.GPUModel = rapid.StringMatching(`[A-Z0-9]{0,8}`).Draw(t, "model")
	case 2:
		r.GPUShare = resource.Milli(rapid.Int64Range(1, 999).Draw(t, "share"))
		r.GPUMemory = resource.Bytes(rapid.Int64Range(0, 1<<40).Draw(t, "gpu memory"))
	case 3:
		r.MIG, r.MIGProfile = rapid.IntRange(1, resource.MaxMIG).Draw(t, "instances"), drawProfile(t)
		r.GPUModel = rapid.StringMatching(`[A-Z0-9]{0,8}`).Draw(t, "model")
		r.GPUMemory = resource.Bytes(rapid.Int64Range(0, 1<<40).Draw(t, "instance memory"))
	}
	return r
}

func drawPage(t *rapid.T) resource.Bytes {
	return rapid.SampledFrom([]resource.Bytes{64 << 10, 2 << 20, 1 << 30, resource.MaxHugepageSize}).Draw(t, "page size")
}

func drawProfile(t *rapid.T) string {
	return rapid.SampledFrom([]string{"1g.10gb", "1g.10gb+me", "3g.40gb", "1c.3g.40gb"}).Draw(t, "profile")
}

func drawAscending(t *rapid.T, name string, most int) []int {
	set := bitset.Of(rapid.SliceOfN(rapid.IntRange(0, 300), 0, most).Draw(t, name)...)
	return set.Members()
}

func drawAssignment(t *rapid.T) resource.Assignment {
	var a resource.Assignment
	for _, id := range drawAscending(t, "cpus", 20) {
		a.CPUs = append(a.CPUs, resource.CPUGrant{ID: id, Milli: resource.Millicores(rapid.Int64Range(1, 1000).Draw(t, "milli"))})
	}
	for _, node := range drawAscending(t, "nodes", 4) {
		a.Memory = append(a.Memory, resource.MemoryGrant{Node: node, Bytes: resource.Bytes(rapid.Int64Range(1, 1<<50).Draw(t, "bytes"))})
	}
	for _, i := range drawAscending(t, "gpus", 8) {
		a.GPUs = append(a.GPUs, resource.GPUGrant{Index: i, UUID: rapid.StringMatching(`GPU-[0-9a-f]{8}`).Draw(t, "uuid"), Milli: resource.Milli(rapid.Int64Range(1, 1000).Draw(t, "milli"))})
	}
	for _, node := range drawAscending(t, "nodes of huge pages", 4) {
		for _, size := range []resource.Bytes{2 << 20, 1 << 30} {
			if pages := rapid.Int64Range(0, 1<<10).Draw(t, "pages"); pages > 0 {
				a.Hugepages = append(a.Hugepages, resource.HugepageGrant{Node: node, Size: size, Bytes: size * resource.Bytes(pages)})
			}
		}
	}
	for _, gpu := range drawAscending(t, "partitioned gpus", 4) {
		for k := range rapid.IntRange(1, devices.MaxMIGInstances).Draw(t, "instances") {
			a.MIG = append(a.MIG, resource.MIGGrant{GPU: gpu, Instance: k, UUID: rapid.StringMatching(`MIG-[0-9a-f]{8}`).Draw(t, "instance uuid"), Profile: drawProfile(t)})
		}
	}
	return a
}

func drawHost(t *rapid.T) grant.Host {
	h := grant.Host{
		Hostname: rapid.StringMatching(`[a-z0-9-]{1,20}`).Draw(t, "hostname"), Topology: &numa.Topology{}, Inventory: &devices.Inventory{},
		ReservedCPUs:   bitset.Of(drawAscending(t, "reserved", 4)...),
		ReservedMemory: resource.Bytes(rapid.Int64Range(0, 1<<40).Draw(t, "reserved memory")),
	}
	if rapid.Bool().Draw(t, "labelled") {
		h.Labels = map[string]string{"zone": rapid.String().Draw(t, "zone")}
	}
	nodes := drawAscending(t, "numa nodes", 4)
	if len(nodes) == 0 {
		nodes = []int{0}
	}
	perNode := rapid.IntRange(0, 6).Draw(t, "cpus per node")
	for n, id := range nodes {
		node := numa.Node{ID: id, Memory: resource.Bytes(rapid.Int64Range(0, 1<<40).Draw(t, "memory")), MemoryOnly: perNode == 0}
		for i := range perNode {
			cpu := n*perNode + i
			node.CPUs.Add(cpu)
			h.Topology.CPUs = append(h.Topology.CPUs, numa.CPU{
				ID: cpu, Socket: rapid.IntRange(-1, 3).Draw(t, "socket"), Core: i, L3: rapid.IntRange(-1, 9).Draw(t, "l3"), NUMA: id,
				Kind:   numa.CoreKind(rapid.IntRange(0, int(numa.LowPower)).Draw(t, "kind")),
				Online: rapid.Bool().Draw(t, "online"), Isolated: rapid.Bool().Draw(t, "isolated"), Siblings: bitset.Of(cpu),
			})
		}
		if rapid.Bool().Draw(t, "huge") {
			node.Hugepages = map[int]int64{2048: rapid.Int64Range(0, 1<<20).Draw(t, "pages")}
		}
		h.Topology.Nodes = append(h.Topology.Nodes, node)
	}
	if rapid.Bool().Draw(t, "distances") {
		for range nodes {
			h.Topology.Distances = append(h.Topology.Distances, rapid.SliceOfN(rapid.IntRange(10, 255), len(nodes), len(nodes)).Draw(t, "row"))
		}
	}
	gpus := rapid.IntRange(0, 8).Draw(t, "gpus")
	for i := range gpus {
		d := devices.Device{
			Index: i, UUID: strings.Repeat("g", i+1), Model: "M", Memory: 80 << 30, PCIBusID: "0000:07:00.0",
			NUMANode: rapid.IntRange(-1, 1).Draw(t, "gpu node"), Health: devices.Health(rapid.IntRange(0, 3).Draw(t, "health")),
		}
		if rapid.Bool().Draw(t, "mig") {
			d.MIG = devices.MIG{Enabled: true, Instances: []devices.MIGInstance{{UUID: "MIG-" + d.UUID, Profile: "1g.10gb", Memory: 10 << 30}}}
		}
		h.Inventory.Devices = append(h.Inventory.Devices, d)
		h.Inventory.Links = append(h.Inventory.Links, make([]devices.Link, gpus))
	}
	for i := range gpus {
		for j := range i {
			l := rapid.SampledFrom([]devices.Link{devices.LinkSYS, devices.LinkPIX, devices.NVLink(1), devices.NVLink(devices.MaxNVLinks)}).Draw(t, "link")
			h.Inventory.Links[i][j], h.Inventory.Links[j][i] = l, l
		}
	}
	return h
}

// sent passes a message through its encoding, as a peer would see it.
func sent[M proto.Message](t *rapid.T, m, empty M) M {
	data, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if err := proto.Unmarshal(data, empty); err != nil {
		t.Fatal(err)
	}
	return empty
}

func TestWhatIsSentIsWhatIsRead(t *testing.T) {
	t.Run("request", rapid.MakeCheck(func(t *rapid.T) {
		want := drawRequest(t)
		got, err := wire.FromRequest(sent(t, wire.ToRequest(want), &musterv1.Request{}))
		if d := cmp.Diff(want, got); err != nil || d != "" {
			t.Fatalf("%v\n%s", err, d)
		}
	}))
	t.Run("member", rapid.MakeCheck(func(t *rapid.T) {
		want, member := drawAssignment(t), rapid.IntRange(0, 1<<20).Draw(t, "member")
		gotMember, got, err := wire.FromMember(sent(t, wire.ToMember(member, want), &musterv1.MemberAssignment{}))
		if d := cmp.Diff(want, got); err != nil || d != "" || gotMember != member {
			t.Fatalf("%v member %d\n%s", err, gotMember, d)
		}
	}))
	t.Run("host", rapid.MakeCheck(func(t *rapid.T) {
		want := drawHost(t)
		got, err := wire.FromHost(sent(t, wire.ToHost(want), &musterv1.Host{}))
		if d := cmp.Diff(want, got); err != nil || d != "" {
			t.Fatalf("%v\n%s", err, d)
		}
	}))
	t.Run("reasons", func(t *testing.T) {
		want := []resource.Reason{
			{Code: resource.ReasonInsufficient, Resource: resource.GPU, Want: 8000, Have: 3000},
			{Code: resource.ReasonCordoned, Detail: "drained"},
		}
		got, err := wire.FromReasons(wire.ToReasons(want))
		if d := cmp.Diff(want, got); err != nil || d != "" {
			t.Fatalf("%v\n%s", err, d)
		}
	})
	t.Run("incarnation", func(t *testing.T) {
		for _, want := range []resource.Incarnation{{}, {JournalID: "j", BootID: "b"}} {
			if got, err := wire.FromIncarnation(wire.ToIncarnation(want)); err != nil || got != want {
				t.Errorf("%v: got %v, %v", want, got, err)
			}
		}
	})
}

func TestBadMessagesAreRefusedByField(t *testing.T) {
	host := func(change func(*musterv1.Host)) func() error {
		return func() error {
			m := &musterv1.Host{
				Topology: &musterv1.Topology{
					Nodes: []*musterv1.NUMANode{{Id: 0, Cpus: "0-1"}},
					Cpus:  []*musterv1.CPU{{Id: 0, Siblings: "0"}, {Id: 1, Siblings: "1"}},
				},
				Inventory: &musterv1.Inventory{Devices: []*musterv1.Device{{Uuid: "GPU-1", Health: "ok"}}, Links: []byte{0}},
			}
			change(m)
			_, err := wire.FromHost(m)
			return err
		}
	}
	assignment := func(m *musterv1.Assignment) func() error {
		return func() error {
			_, _, err := wire.FromMember(&musterv1.MemberAssignment{Member: 7, Assignment: m})
			return err
		}
	}
	hugepages := func(size int32, count int64) func(*musterv1.Host) {
		return func(m *musterv1.Host) { m.Topology.Nodes[0].Hugepages = map[int32]int64{size: count} }
	}
	huge := func(node int32, size, bytes int64) *musterv1.Assignment {
		return &musterv1.Assignment{Hugepages: []*musterv1.HugepageGrant{{Node: node, Size: size, Bytes: bytes}}}
	}
	mig := func(gpu, instance int32) *musterv1.Assignment {
		return &musterv1.Assignment{Mig: []*musterv1.MIGGrant{{Gpu: gpu, Instance: instance, Uuid: "MIG-1", Profile: "1g.10gb"}}}
	}
	request := func(m *musterv1.Request) func() error {
		return func() error { _, err := wire.FromRequest(m); return err }
	}
	for name, c := range map[string]struct {
		read func() error
		want string
	}{
		"no request":                  {request(nil), "request: missing"},
		"a negative request":          {request(&musterv1.Request{Cpu: -1}), "request.cpu: -1"},
		"an unknown NUMA policy":      {request(&musterv1.Request{Cpu: 1, NumaPolicy: 256}), "request.numa_policy: 256"},
		"an unknown link":             {request(&musterv1.Request{Gpus: 1, Link: 9}), "gpu link requirement 9"},
		"a negative member":           {func() error { _, _, err := wire.FromMember(&musterv1.MemberAssignment{Member: -1}); return err }, "member: -1"},
		"a CPU twice":                 {assignment(&musterv1.Assignment{Cpus: []*musterv1.CPUGrant{{Id: 1, Milli: 1}, {Id: 1, Milli: 1}}}), "member 7: assignment.cpus[1].id: 1"},
		"too much of a CPU":           {assignment(&musterv1.Assignment{Cpus: []*musterv1.CPUGrant{{Id: 1, Milli: 1001}}}), "assignment.cpus[0].milli: 1001"},
		"no memory":                   {assignment(&musterv1.Assignment{Memory: []*musterv1.MemoryGrant{{}}}), "assignment.memory[0].bytes: 0"},
		"a huge node number":          {assignment(&musterv1.Assignment{Memory: []*musterv1.MemoryGrant{{Node: 1 << 20, Bytes: 1}}}), "assignment.memory[0].node: 1048576"},
		"a GPU without UUID":          {assignment(&musterv1.Assignment{Gpus: []*musterv1.GPUGrant{{Milli: 1}}}), "assignment.gpus[0].uuid"},
		"none of a GPU":               {assignment(&musterv1.Assignment{Gpus: []*musterv1.GPUGrant{{Uuid: "GPU-1"}}}), "assignment.gpus[0].milli: 0"},
		"a reason without code":       {func() error { _, err := wire.FromReasons([]*musterv1.Reason{{}}); return err }, "reasons[0].code"},
		"half an incarnation":         {func() error { _, err := wire.FromIncarnation(&musterv1.Incarnation{BootId: "b"}); return err }, `journal_id ""`},
		"the other half of one":       {func() error { _, err := wire.FromIncarnation(&musterv1.Incarnation{JournalId: "j"}); return err }, `boot_id ""`},
		"no host":                     {func() error { _, err := wire.FromHost(nil); return err }, "host: missing"},
		"a bad CPU list":              {host(func(m *musterv1.Host) { m.Topology.Nodes[0].Cpus = "0-x" }), "host.topology.nodes[0].cpus"},
		"a negative CPU":              {host(func(m *musterv1.Host) { m.Topology.Cpus[1].Id = -4 }), "host.topology.cpus[1].id: -4"},
		"a negative socket":           {host(func(m *musterv1.Host) { m.Topology.Cpus[1].Socket = -2 }), "host.topology.cpus[1].socket: -2"},
		"a CPU on no node":            {host(func(m *musterv1.Host) { m.Topology.Cpus[1].Numa = 5 }), "cpu 1 is on node 5"},
		"too few distances":           {host(func(m *musterv1.Host) { m.Topology.Distances = []int32{1, 2} }), "host.topology.distances: 2 entries"},
		"negative hugepages":          {host(hugepages(2048, -1)), "host.topology.nodes[0].hugepages[2048]: -1 pages is outside 0..536870912"},
		"hugepages beyond any memory": {host(hugepages(1<<20, 1<<20+1)), "host.topology.nodes[0].hugepages[1048576]: 1048577 pages is outside 0..1048576"},
		"hugepages of no size":        {host(hugepages(0, 1)), "host.topology.nodes[0].hugepages[0]: want a page size of 1..16777216 kB"},
		"hugepages of 32 GiB":         {host(hugepages(32<<20, 1)), "host.topology.nodes[0].hugepages[33554432]: want a page size of 1..16777216 kB"},
		"an unknown kind of core":     {host(func(m *musterv1.Host) { m.Topology.Cpus[1].Kind = 4 }), "host.topology.cpus[1].kind: 4 is no kind of core"},
		"cores and CPU":               {request(&musterv1.Request{Cpu: 1, Cores: 1}), "request.muster.io/cores: 1 whole cores and 1 millicores of cpu exclude each other"},
		"half a huge page":            {request(&musterv1.Request{Hugepages: 1 << 20, HugepageSize: 2 << 20}), "request.hugepages-2Mi: 1048576 bytes is not a whole number of pages"},
		"huge pages of no size":       {request(&musterv1.Request{Hugepages: 1 << 20}), "request.hugepages: 1048576 bytes in pages of 0 bytes"},
		"MIG of no profile":           {request(&musterv1.Request{Mig: 1}), `request.mig: 1 instances of profile ""`},
		"MIG of a wrong profile":      {request(&musterv1.Request{Mig: 1, MigProfile: "10gb"}), `request.MIG profile "10gb"`},
		"MIG and a GPU":               {request(&musterv1.Request{Mig: 1, MigProfile: "1g.10gb", Gpus: 1}), "request.nvidia.com/mig-1g.10gb: 1 MIG instances and 1000 milli"},
		"a grant of half a page":      {assignment(huge(0, 2<<20, 1<<20)), "assignment.hugepages[0].bytes: 1048576 is no positive multiple of the page size 2097152"},
		"a grant of no page":          {assignment(huge(0, 2<<20, 0)), "assignment.hugepages[0].bytes: 0 is no positive"},
		"a page of no size":           {assignment(huge(0, 0, 1)), "assignment.hugepages[0].size: 0; want whole KiB up to 17179869184"},
		"a page of a byte too many":   {assignment(huge(0, 1025, 1025)), "assignment.hugepages[0].size: 1025"},
		"huge pages on no node":       {assignment(huge(-1, 2<<20, 2<<20)), "assignment.hugepages[0].node: -1"},
		"huge pages out of order": {
			assignment(&musterv1.Assignment{Hugepages: append(huge(1, 1<<30, 1<<30).Hugepages, huge(1, 2<<20, 2<<20).Hugepages...)}),
			"assignment.hugepages[1]: node 1, size 2097152 follows node 1, size 1073741824",
		},
		"an instance twice": {
			assignment(&musterv1.Assignment{Mig: append(mig(2, 3).Mig, mig(2, 3).Mig...)}),
			"assignment.mig[1]: GPU 2, instance 3 follows GPU 2, instance 3",
		},
		"an instance beyond any":      {assignment(mig(0, 16)), "assignment.mig[0].instance: 16 is outside 0..15"},
		"an instance of no GPU":       {assignment(mig(-1, 0)), "assignment.mig[0].gpu: -1"},
		"an instance without UUID":    {assignment(&musterv1.Assignment{Mig: []*musterv1.MIGGrant{{Profile: "1g.10gb"}}}), "assignment.mig[0].uuid: empty"},
		"an instance without profile": {assignment(&musterv1.Assignment{Mig: []*musterv1.MIGGrant{{Uuid: "MIG-1"}}}), "assignment.mig[0].profile: 0 bytes is outside 1..64"},
		"an unknown health":           {host(func(m *musterv1.Host) { m.Inventory.Devices[0].Health = "sick" }), `host.inventory.devices[0].health: health "sick"`},
		"links of another size":       {host(func(m *musterv1.Host) { m.Inventory.Links = nil }), "host.inventory.links: 0 entries for 1 devices"},
		"an unknown link class":       {host(func(m *musterv1.Host) { m.Inventory.Links = []byte{250} }), "host.inventory.links[0]: 250"},
		"a device without UUID":       {host(func(m *musterv1.Host) { m.Inventory.Devices[0].Uuid = "" }), "has no UUID"},
		"negative reserved memory":    {host(func(m *musterv1.Host) { m.ReservedMemory = -1 }), "host.reserved_memory: -1"},
		"a bad list of reserved CPUs": {host(func(m *musterv1.Host) { m.ReservedCpus = "9-1" }), "host.reserved_cpus"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.read(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func FuzzHost(f *testing.F) {
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		m := &musterv1.Host{}
		if proto.Unmarshal(data, m) != nil {
			return
		}
		h, err := wire.FromHost(m)
		if err != nil {
			return
		}
		again, err := wire.FromHost(wire.ToHost(h))
		if d := cmp.Diff(h, again); err != nil || d != "" {
			t.Fatalf("%v\n%s", err, d)
		}
	})
}

func FuzzAssignment(f *testing.F) {
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		m := &musterv1.Assignment{}
		if proto.Unmarshal(data, m) != nil {
			return
		}
		a, err := wire.FromAssignment(m)
		if err != nil {
			return
		}
		again, err := wire.FromAssignment(wire.ToAssignment(a))
		if d := cmp.Diff(a, again); err != nil || d != "" {
			t.Fatalf("%v\n%s", err, d)
		}
	})
}

func FuzzRequest(f *testing.F) {
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		m := &musterv1.Request{}
		if proto.Unmarshal(data, m) != nil {
			return
		}
		r, err := wire.FromRequest(m)
		if err != nil {
			return
		}
		again, err := wire.FromRequest(wire.ToRequest(r))
		if err != nil || r != again {
			t.Fatalf("%v: %+v became %+v", err, r, again)
		}
	})
}

func BenchmarkAssignment(b *testing.B) {
	var a resource.Assignment
	for i := range 32 {
		a.CPUs = append(a.CPUs, resource.CPUGrant{ID: i, Milli: 1000})
	}
	for b.Loop() {
		if _, err := wire.FromAssignment(wire.ToAssignment(a)); err != nil {
			b.Fatal(err)
		}
	}
}

func TestLinksOfAnOlderAgentAreRead(t *testing.T) {
	const v1NV12, v1PIX = 5 + 12, 5
	m := &musterv1.Inventory{Links: []byte{0, v1NV12, v1PIX, v1NV12, 0, 1, v1PIX, 1, 0}}
	for _, uuid := range []string{"GPU-1", "GPU-2", "GPU-3"} {
		m.Devices = append(m.Devices, &musterv1.Device{Uuid: uuid, Health: "ok", NumaNode: -1})
	}
	inv, err := wire.FromInventory(m)
	if err != nil {
		t.Fatal(err)
	}
	if a, b, c := inv.Link(0, 1), inv.Link(0, 2), inv.Link(1, 2); a != devices.NVLink(12) || b != devices.LinkPIX || c != devices.LinkSYS {
		t.Errorf("links %s, %s, %s, want NV12, PIX, SYS", a, b, c)
	}
	m.Links[1] = 5 + devices.MaxNVLinks + 1
	if _, err := wire.FromInventory(m); err == nil || !strings.Contains(err.Error(), "inventory.links[1]") {
		t.Errorf("33 NVLinks: %v, want a refusal of inventory.links[1]", err)
	}
}
