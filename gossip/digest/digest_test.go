package digest_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/musterd/muster/gossip/digest"
	"github.com/musterd/muster/resource"
)

// sample is a host with eight GPUs and two NUMA nodes.
func sample() digest.Digest {
	d := digest.Digest{
		NodeID: "node-3", Cell: "0", Revision: 4711, Sequence: 42,
		Flags: digest.Cordoned, FreeGPUs: 0b1111_0000, UnhealthyGPUs: 0b0000_0001,
		PriorityFloor: -5, EscrowFree: 2000, LedgerHash: 0x0123_4567_89ab_cdef,
	}
	for i := range 8 {
		d.GPUs = append(d.GPUs, digest.GPU{FreeMilli: uint16(125 * i), MIGSlices: uint8(i)})
	}
	for i := range 2 {
		d.NUMA = append(d.NUMA, digest.NUMANode{
			ID: uint16(i), FreeMillicores: 64_000, FreeCores: 30, FreeMemory: 512 << 30, FreeHugepages: 1024,
		})
	}
	return d
}

// largest fills every field of the layout.
func largest() digest.Digest {
	d := digest.Digest{
		NodeID: resource.NodeID(strings.Repeat("n", digest.MaxNodeID)), Cell: strings.Repeat("c", digest.MaxCell),
		Revision: 1<<63 - 1, Sequence: 1<<64 - 1, Flags: digest.Cordoned | digest.Quarantined | digest.Unregistered,
		FreeGPUs: 0xffff, UnhealthyGPUs: 0xffff, PriorityFloor: -1 << 31, EscrowFree: 1<<32 - 1, LedgerHash: 1<<64 - 1,
	}
	for range digest.MaxGPUs {
		d.GPUs = append(d.GPUs, digest.GPU{FreeMilli: 1000, MIGSlices: 255})
	}
	for i := range digest.MaxNUMANodes {
		d.NUMA = append(d.NUMA, digest.NUMANode{
			ID: uint16(1000 + i), FreeMillicores: 1<<32 - 1, FreeCores: 1<<16 - 1, FreeMemory: digest.MaxMemory, FreeHugepages: 1<<32 - 1,
		})
	}
	return d
}

func TestWorstCaseStaysWithinMaxSize(t *testing.T) {
	b := largest().Append(nil)
	if len(b) > digest.MaxSize {
		t.Fatalf("the largest digest takes %d bytes, want at most %d", len(b), digest.MaxSize)
	}
	if len(b) != largest().Size() {
		t.Fatalf("Size says %d, Append wrote %d", largest().Size(), len(b))
	}
	got, err := digest.Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(largest(), got); diff != "" {
		t.Fatalf("largest digest after a round trip (-want +got):\n%s", diff)
	}
}

// TestGoldenLayout pins version 1 to the byte: a change here is a new version.
func TestGoldenLayout(t *testing.T) {
	text, err := os.ReadFile("testdata/v1.hex")
	if err != nil {
		t.Fatal(err)
	}
	want, err := hex.DecodeString(strings.Join(strings.Fields(string(text)), ""))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(hex.Dump(want), hex.Dump(sample().Append(nil))); diff != "" {
		t.Fatalf("layout 1 (-want +got):\n%s", diff)
	}
	got, err := digest.Parse(want)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sample(), got); diff != "" {
		t.Fatalf("digest read from the golden bytes (-want +got):\n%s", diff)
	}
}

func TestParseRefuses(t *testing.T) {
	good := sample().Append(nil)
	edit := func(at int, with ...byte) []byte {
		b := bytes.Clone(good)
		copy(b[at:], with)
		return b
	}
	cases := map[string]struct {
		in        []byte
		wantError string
	}{
		"nothing at all":             {nil, "digest: version: want 1 more bytes, have 0"},
		"another version":            {edit(0, 2), "digest: version: have 2, want 1"},
		"a short message":            {good[:18], "digest: revision: want 8 more bytes, have 6"},
		"a trailing byte":            {append(bytes.Clone(good), 0), "digest: 1 trailing bytes after"},
		"an unknown flag":            {edit(1, 0x80), "digest: flags: unknown bits 0x8000"},
		"a node id that is too long": {edit(3, 64), "digest: nodeID: 64 bytes, want at most 63"},
		"a node id with a space":     {edit(4, ' '), `digest: nodeID: " ode-3": byte ' ' at 0`},
		"a negative revision":        {edit(12, 0xff), "digest: revision: -"},
		"a mask beyond the GPUs":     {edit(28, 0x01), "digest: freeGPUs: 0x1000000000000f0 names a GPU beyond the 8 listed"},
		"more than a whole GPU":      {edit(61, 0x03, 0xe9), "digest: gpus[0].freeMilli: 1001 is more than 1000"},
		"too many GPUs":              {edit(60, 17), "digest: gpus: 17 entries, want at most 16"},
		"NUMA nodes out of order":    {edit(86, 0, 1), "digest: numa[1].id: 1 does not follow 1"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := digest.Parse(c.in)
			if err == nil || !strings.Contains(err.Error(), c.wantError) {
				t.Fatalf("error %v, want it to contain %q", err, c.wantError)
			}
		})
	}
}

func TestNewer(t *testing.T) {
	at := func(revision resource.Revision, sequence uint64) digest.Digest {
		return digest.Digest{Revision: revision, Sequence: sequence}
	}
	cases := map[string]struct {
		a, b digest.Digest
		want bool
	}{
		"a later sequence wins":                     {at(1, 2), at(1, 1), true},
		"an earlier sequence loses":                 {at(1, 1), at(1, 2), false},
		"the same digest does not replace itself":   {at(1, 1), at(1, 1), false},
		"a later registration wins at any sequence": {at(2, 0), at(1, 9), true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := digest.Newer(c.a, c.b); got != c.want {
				t.Fatalf("Newer(%d/%d, %d/%d) = %t, want %t",
					c.a.Revision, c.a.Sequence, c.b.Revision, c.b.Sequence, got, c.want)
			}
		})
	}
}

func TestLargerHostsAreFoldedToTheLeast(t *testing.T) {
	d := sample()
	d.GPUs, d.NUMA = nil, nil
	for i := range 20 {
		d.GPUs = append(d.GPUs, digest.GPU{FreeMilli: uint16(1000 - i), MIGSlices: 7})
		d.NUMA = append(d.NUMA, digest.NUMANode{ID: uint16(2 * i), FreeMillicores: uint32(5000 - i), FreeCores: 4, FreeMemory: resource.Bytes(1000 + i)})
	}
	d.GPUs[17].MIGSlices = 0
	d.FreeGPUs = 1 << 19
	got, err := digest.Parse(d.Append(nil))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(d.Folded(), got); diff != "" {
		t.Fatalf("Folded and the round trip differ (-folded +parsed):\n%s", diff)
	}
	if got.Flags&digest.Truncated == 0 {
		t.Error("a folded digest does not say so")
	}
	if want := (digest.GPU{FreeMilli: 981, MIGSlices: 0}); got.GPUs[15] != want {
		t.Errorf("GPU entry 16 is %+v, want the least of the rest %+v", got.GPUs[15], want)
	}
	if want := (digest.NUMANode{ID: 30, FreeMillicores: 4981, FreeCores: 4, FreeMemory: 1015}); got.NUMA[15] != want {
		t.Errorf("NUMA entry 16 is %+v, want the least of the rest %+v", got.NUMA[15], want)
	}
	if len(d.GPUs) != 20 || d.GPUs[15].FreeMilli != 985 {
		t.Error("folding changed the digest it was given")
	}
}

func TestEveryValidDigestSurvivesARoundTrip(t *testing.T) {
	name := func(most int) *rapid.Generator[string] {
		return rapid.StringMatching(fmt.Sprintf(`[A-Za-z0-9._-]{1,%d}`, most))
	}
	rapid.Check(t, func(t *rapid.T) {
		d := digest.Digest{
			NodeID:        resource.NodeID(name(digest.MaxNodeID).Draw(t, "id")),
			Cell:          name(digest.MaxCell).Draw(t, "cell"),
			Revision:      resource.Revision(rapid.Int64Min(0).Draw(t, "revision")),
			Sequence:      rapid.Uint64().Draw(t, "sequence"),
			Flags:         digest.Flags(rapid.Uint16Max(15).Draw(t, "flags")),
			PriorityFloor: rapid.Int32().Draw(t, "floor"),
			EscrowFree:    rapid.Uint32().Draw(t, "escrow"),
			LedgerHash:    rapid.Uint64().Draw(t, "hash"),
		}
		for range rapid.IntRange(0, 24).Draw(t, "gpus") {
			d.GPUs = append(d.GPUs, digest.GPU{FreeMilli: rapid.Uint16Max(1000).Draw(t, "milli"), MIGSlices: rapid.Uint8().Draw(t, "slices")})
		}
		if n := len(d.GPUs); n > 0 {
			d.FreeGPUs = rapid.Uint64Max(1<<n-1).Draw(t, "free")
			d.UnhealthyGPUs = rapid.Uint64Max(1<<n-1).Draw(t, "unhealthy")
		}
		for i := range rapid.IntRange(0, 24).Draw(t, "nodes") {
			d.NUMA = append(d.NUMA, digest.NUMANode{
				ID: uint16(3 * i), FreeMillicores: rapid.Uint32().Draw(t, "cpu"), FreeCores: rapid.Uint16().Draw(t, "cores"),
				FreeMemory: resource.Bytes(rapid.Int64Min(0).Draw(t, "memory")), FreeHugepages: rapid.Uint32().Draw(t, "huge"),
			})
		}
		if err := d.Validate(); err != nil {
			t.Fatalf("the generator made an invalid digest: %v", err)
		}
		b := d.Append(nil)
		if len(b) != d.Size() || len(b) > digest.MaxSize {
			t.Fatalf("wrote %d bytes, Size says %d, most is %d", len(b), d.Size(), digest.MaxSize)
		}
		got, err := digest.Parse(b)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(d.Folded(), got); diff != "" {
			t.Fatalf("after a round trip (-want +got):\n%s", diff)
		}
	})
}

// TestAFoldedEntryIsTrueOfEveryHostPartItStandsFor: the least of each amount may
// be on another node each.
func TestAFoldedEntryIsTrueOfEveryHostPartItStandsFor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := sample()
		d.GPUs, d.NUMA, d.FreeGPUs, d.UnhealthyGPUs = nil, nil, 0, 0
		for i := range rapid.IntRange(digest.MaxNUMANodes+1, 2*digest.MaxNUMANodes).Draw(t, "parts") {
			few := rapid.IntRange(0, 9)
			d.GPUs = append(d.GPUs, digest.GPU{FreeMilli: uint16(few.Draw(t, "milli")), MIGSlices: uint8(few.Draw(t, "slices"))})
			d.NUMA = append(d.NUMA, digest.NUMANode{
				ID: uint16(i), FreeMillicores: uint32(few.Draw(t, "millicores")), FreeCores: uint16(few.Draw(t, "cores")),
				FreeMemory: resource.Bytes(few.Draw(t, "memory")), FreeHugepages: uint32(few.Draw(t, "huge")),
			})
		}
		folded := d.Folded()
		gpu, node := folded.GPUs[digest.MaxGPUs-1], folded.NUMA[digest.MaxNUMANodes-1]
		for _, g := range d.GPUs[digest.MaxGPUs-1:] {
			if gpu.FreeMilli > g.FreeMilli || gpu.MIGSlices > g.MIGSlices {
				t.Fatalf("the folded GPU has %+v, one that it stands for %+v", gpu, g)
			}
		}
		for _, n := range d.NUMA[digest.MaxNUMANodes-1:] {
			if node.FreeMillicores > n.FreeMillicores || node.FreeCores > n.FreeCores || node.FreeMemory > n.FreeMemory || node.FreeHugepages > n.FreeHugepages {
				t.Fatalf("the folded NUMA node has %+v, one that it stands for %+v", node, n)
			}
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add(sample().Append(nil))
	f.Add(largest().Append(nil))
	f.Add([]byte{1})
	f.Fuzz(func(t *testing.T, in []byte) {
		node := digest.NodeIn(in) // of any bytes
		d, err := digest.Parse(in)
		if err != nil {
			return
		}
		if string(node) != string(d.NodeID) {
			t.Fatalf("NodeIn has %q and Parse %q", node, d.NodeID)
		}
		if out := d.Append(nil); !bytes.Equal(in, out) {
			t.Fatalf("Append of what Parse read:\n%x\nwant\n%x", out, in)
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	d := sample()
	buf := make([]byte, 0, digest.MaxSize)
	b.ReportAllocs()
	for b.Loop() {
		buf = d.Append(buf[:0])
	}
}

func BenchmarkParse(b *testing.B) {
	buf := sample().Append(nil)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := digest.Parse(buf); err != nil {
			b.Fatal(err)
		}
	}
}

func TestAppendAllocatesNothing(t *testing.T) {
	d := sample()
	buf := make([]byte, 0, digest.MaxSize)
	if n := testing.AllocsPerRun(100, func() { buf = d.Append(buf[:0]) }); n != 0 {
		t.Fatalf("Append into a large enough buffer allocates %v times, want 0", n)
	}
}

func ExampleParse() {
	b := digest.Digest{NodeID: "node-3", Cell: "0", Revision: 7, Sequence: 1}.Append(nil)
	d, err := digest.Parse(b)
	fmt.Println(d.NodeID, d.Revision, d.Sequence, err)
	_, err = digest.Parse(b[:5])
	fmt.Println(err)
	// Output:
	// node-3 7 1 <nil>
	// digest: nodeID: want 6 more bytes, have 1
}
