package digest_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/devices/fake"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/gossip/digest"
	"github.com/musterd/muster/numa"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/bitset"
)

// state is a possible content of a ledger: the answers to requests of the past.
type state struct {
	free *fit.Free
	held []resource.Assignment
}

// step lets something be taken or given back, or a device change its health.
func (s *state) step(r *rand.Rand, h *fit.Host) error {
	switch n := r.IntN(8); {
	case n == 0:
		s.free.Unhealthy = r.Uint64() & r.Uint64() & r.Uint64()
		if devices := len(s.free.GPU); devices < 64 {
			s.free.Unhealthy &= 1<<devices - 1
		}
	case n <= 2 && len(s.held) > 0:
		i := r.IntN(len(s.held))
		a := s.held[i]
		s.held = slices.Delete(s.held, i, i+1)
		return h.Give(s.free, a)
	default:
		var a resource.Assignment
		if h.Assign(s.free, ask(r, h), &a) {
			s.held = append(s.held, a)
			return h.Take(s.free, a)
		}
	}
	return nil
}

// fromAfar is a coordinator's reading of the digest that travels.
func fromAfar(t *testing.T, m machine, f *fit.Free) *fit.Free {
	t.Helper()
	d := digest.Digest{NodeID: "n", Cell: "0"}
	d.Measure(m.host, f)
	if err := d.Validate(); err != nil {
		t.Fatalf("%s: %v", m.name, err)
	}
	got, err := digest.Parse(d.Append(nil))
	if err != nil {
		t.Fatalf("%s: %v", m.name, err)
	}
	view, err := m.twin.FreeOf(got.Summary())
	if err != nil {
		t.Fatalf("%s: %v", m.name, err)
	}
	return view
}

// TestADigestIsNeverMoreOptimisticThanItsHost asks 100,000 questions of random
// hosts in random states, each of the host itself and of its digest.
func TestADigestIsNeverMoreOptimisticThanItsHost(t *testing.T) {
	const questions, perState = 100_000, 5
	r := rand.New(rand.NewPCG(1, 2))
	all := machines(t, r)
	var yes, denied int
	deniedBy := map[string]int{}
	for n := 0; n < questions; {
		m := all[r.IntN(len(all))]
		s := state{free: m.host.NewFree()}
		for range 8 {
			for range 1 + r.IntN(3+len(m.host.Topology().Nodes)+len(m.host.Inventory().Devices)/4) {
				if err := s.step(r, m.host); err != nil {
					t.Fatalf("%s: %v", m.name, err)
				}
			}
			view := fromAfar(t, m, s.free)
			if err := m.twin.Check(view); err != nil {
				t.Fatalf("%s: %v", m.name, err)
			}
			for range perState {
				n++
				req := ask(r, m.host)
				var truth, same, guess resource.Assignment
				fits := m.host.Assign(s.free, req, &truth)
				if m.twin.Assign(s.free, req, &same) != fits || !truth.Equal(same) {
					t.Fatalf("%s: %+v: the host answers %+v, its twin on equal state %+v", m.name, req, truth, same)
				}
				switch believed := m.twin.Assign(view, req, &guess); {
				case believed && !fits:
					t.Fatalf("%s: the digest promises %+v, which the host refuses: %v\nfree %+v\nseen %+v",
						m.name, req, m.host.Explain(s.free, req), s.free, view)
				case fits:
					yes++
					if !believed {
						denied++
						deniedBy[kindOf(req)]++
					}
				}
			}
		}
	}
	t.Logf("%d of %d questions are granted; the digest denies %d of them needlessly (%.2f %%): %v", yes, questions, denied, 100*float64(denied)/float64(yes), deniedBy)
}

// kindOf sorts requests for a report.
func kindOf(req resource.Request) string {
	switch {
	case req.MIG > 0:
		return "MIG"
	case req.Hugepages > 0:
		return "huge pages"
	case req.GPUs > 0:
		return "GPUs"
	case req.GPUShare > 0:
		return "share"
	case req.Cores > 0:
		return "cores"
	}
	return "CPU and memory"
}

func TestMeasureTellsWhatIsFree(t *testing.T) {
	topology := &numa.Topology{Nodes: []numa.Node{{ID: 0, Memory: 64 * gib, Hugepages: map[int]int64{2048: 100, 64: 3}}, {ID: 2, Memory: gib, MemoryOnly: true}}}
	for id := range 8 {
		topology.CPUs = append(topology.CPUs, numa.CPU{ID: id, NUMA: 0, Online: true, Siblings: bitset.Of(id%4, id%4+4)})
		topology.Nodes[0].CPUs.Add(id)
	}
	instances := []devices.MIGInstance{{UUID: "MIG-a", Profile: "3g.40gb"}, {UUID: "MIG-b", Profile: "2g.20gb"}, {UUID: "MIG-c", Profile: "2g.20gb"}}
	inventory := &devices.Inventory{
		Devices: []devices.Device{{Index: 0, UUID: "GPU-0", MIG: devices.MIG{Enabled: true, Instances: instances}}, {Index: 1, UUID: "GPU-1"}, {Index: 2, UUID: "GPU-2"}},
		Links:   [][]devices.Link{{0, 1, 1}, {1, 0, 1}, {1, 1, 0}},
	}
	m := newMachine(t, "three GPUs", topology, inventory, fit.Reserved{})
	f := m.host.NewFree()
	for _, req := range []resource.Request{{CPU: 500, Memory: gib}, {Cores: 2, GPUs: 1}, {MIG: 1, MIGProfile: "2g.20gb"}, {Hugepages: 20 << 20, HugepageSize: 2 << 20}} {
		var a resource.Assignment
		if !m.host.Assign(f, req, &a) {
			t.Fatal(m.host.Explain(f, req))
		}
		if err := m.host.Take(f, a); err != nil {
			t.Fatal(err)
		}
	}
	f.Unhealthy = 1
	got := digest.Digest{NodeID: "n", Cell: "0", FreeGPUs: 7}
	got.Measure(m.host, f)
	want := digest.Digest{
		NodeID: "n", Cell: "0", FreeGPUs: 1 << 2, UnhealthyGPUs: 1, GPUs: []digest.GPU{{MIGSlices: 5}, {}, {FreeMilli: 1000}},
		NUMA: []digest.NUMANode{{FreeMillicores: 3500, FreeCores: 1, FreeMemory: 63*gib - 200<<20 - 192<<10, FreeHugepages: 180}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("measured (-want +got):\n%s", diff)
	}
	again := testing.AllocsPerRun(10, func() { got.Measure(m.host, f) })
	if again > 1 {
		t.Errorf("measuring again allocates %v times, want its room to be reused", again)
	}
}

func TestSummaryOfAFoldedDigest(t *testing.T) {
	d := sample()
	d.GPUs, d.NUMA, d.FreeGPUs = nil, nil, 1<<19
	for i := range 20 {
		d.GPUs = append(d.GPUs, digest.GPU{FreeMilli: 500, MIGSlices: uint8(3 + i%2)})
	}
	d.GPUs[19].FreeMilli = 1000
	d.NUMA = append(d.NUMA, digest.NUMANode{ID: 4, FreeHugepages: 3})
	s := d.Folded().Summary()
	if !s.Folded || len(s.GPUs) != fit.MaxGPUs {
		t.Fatalf("summary of %d GPUs, folded %v; want all there can be", len(s.GPUs), s.Folded)
	}
	want := map[int]fit.GPUSummary{
		1: {Milli: 500, MIGSlices: 4}, 14: {Milli: 500, MIGSlices: 3},
		15: {Milli: 500, MIGSlices: 3, AtLeast: true}, 19: {Milli: 1000, MIGSlices: 3, AtLeast: true}, 63: {Milli: 500, MIGSlices: 3, AtLeast: true},
	}
	for i, g := range want {
		if s.GPUs[i] != g {
			t.Errorf("GPU %d is %+v, want %+v", i, s.GPUs[i], g)
		}
	}
	if want := []fit.NodeSummary{{ID: 4, Hugepages: 3 << 20}}; !slices.Equal(s.Nodes, want) {
		t.Errorf("nodes are %+v, want %+v", s.Nodes, want)
	}
}

func BenchmarkMeasureAndFreeOf(b *testing.B) {
	profile, err := fake.Lookup("dgx-h100")
	if err != nil {
		b.Fatal(err)
	}
	m := newMachine(b, "dgx-h100", profile.Topology(), profile.Inventory("n"), fit.Reserved{})
	f := m.host.NewFree()
	d := digest.Digest{NodeID: "n", Cell: "0"}
	b.Run("Measure", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			d.Measure(m.host, f)
		}
	})
	d.Measure(m.host, f)
	s := d.Summary()
	b.Run("FreeOf", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := m.twin.FreeOf(s); err != nil {
				b.Fatal(err)
			}
		}
	})
}
