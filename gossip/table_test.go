package gossip

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/musterd/muster/gossip/digest"
	"github.com/musterd/muster/resource"
)

func encoded(node string, revision resource.Revision, sequence uint64) []byte {
	return digest.Digest{NodeID: resource.NodeID(node), Cell: "0", Revision: revision, Sequence: sequence}.Append(nil)
}

func quietTable() *table { return newTable("self", "0", func(DigestEvent) {}) }

func TestTableOffers(t *testing.T) {
	otherCell := digest.Digest{NodeID: "a", Cell: "b"}.Append(nil)
	cases := map[string]struct {
		offers   [][]byte
		want     Counters
		wantNode map[string]uint64 // node → sequence
	}{
		"a newer sequence replaces":            {[][]byte{encoded("a", 1, 1), encoded("a", 1, 2)}, Counters{Accepted: 2}, map[string]uint64{"a": 2}},
		"an older one is stale":                {[][]byte{encoded("a", 1, 2), encoded("a", 1, 1)}, Counters{Accepted: 1, Stale: 1}, map[string]uint64{"a": 2}},
		"a repeated one is stale":              {[][]byte{encoded("a", 1, 2), encoded("a", 1, 2)}, Counters{Accepted: 1, Stale: 1}, map[string]uint64{"a": 2}},
		"a newer registration starts over":     {[][]byte{encoded("a", 1, 9), encoded("a", 2, 1)}, Counters{Accepted: 2}, map[string]uint64{"a": 1}},
		"a stranger's is set aside":            {[][]byte{encoded("z", 1, 1)}, Counters{Early: 1}, nil},
		"this node's own is not believed":      {[][]byte{encoded("self", 9, 9)}, Counters{Outranked: 1}, nil},
		"an empty message is dropped":          {[][]byte{{}}, Counters{Malformed: 1}, nil},
		"a cut message is dropped":             {[][]byte{encoded("a", 1, 1)[:20]}, Counters{Malformed: 1}, nil},
		"a message of another cell is dropped": {[][]byte{otherCell}, Counters{Malformed: 1}, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			tab := quietTable()
			tab.join("a", "127.0.0.1:1")
			for _, raw := range c.offers {
				tab.offer(raw)
			}
			if diff := cmp.Diff(c.want, tab.counters()); diff != "" {
				t.Errorf("counters (-want +got):\n%s", diff)
			}
			var got map[string]uint64
			for _, d := range tab.digests() {
				if got == nil {
					got = make(map[string]uint64)
				}
				got[string(d.NodeID)] = d.Sequence
			}
			if diff := cmp.Diff(c.wantNode, got); diff != "" {
				t.Errorf("digests (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTableKeepsNothingOfTheMessage(t *testing.T) {
	tab := quietTable()
	tab.join("a", "127.0.0.1:1")
	raw := encoded("a", 1, 1)
	_, news := tab.offer(raw)
	want := slices.Clone(news)
	clear(raw)
	if !slices.Equal(news, want) || tab.digests()[0].NodeID != "a" {
		t.Error("overwriting the message changed the table")
	}
}

func TestADigestThatComesBeforeItsNodeJoins(t *testing.T) {
	var heard []DigestEvent
	tab := newTable("self", "0", func(e DigestEvent) { heard = append(heard, e) })
	tab.offer(encoded("a", 1, 2))
	tab.offer(encoded("a", 1, 1))
	if len(tab.digests()) != 0 || len(heard) != 0 {
		t.Fatal("a digest of a node that is no member shows")
	}
	tab.join("a", "127.0.0.1:1")
	tab.leave("a")
	tab.offer(encoded("a", 1, 3)) // late gossip about a node that left
	var got []string
	for _, e := range heard {
		got = append(got, fmt.Sprintf("%s %d %t", e.Digest.NodeID, e.Digest.Sequence, e.Gone))
	}
	if want := []string{"a 2 false", "a 0 true"}; !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
	if len(tab.digests()) != 0 {
		t.Error("late gossip brought back a node that left")
	}
}

func TestStrangersCannotFillTheTable(t *testing.T) {
	tab := quietTable()
	for i := range 10 * maxEarly {
		tab.offer(encoded(fmt.Sprintf("stranger-%d", i), 1, 1))
	}
	if len(tab.early) > maxEarly {
		t.Errorf("%d digests set aside, want at most %d", len(tab.early), maxEarly)
	}
}

func TestMergeTakesWhatItCanRead(t *testing.T) {
	frame := func(out []byte, raw []byte) []byte {
		return append(binary.BigEndian.AppendUint16(out, uint16(len(raw))), raw...)
	}
	state := frame(frame([]byte{stateVersion}, encoded("a", 1, 1)), []byte("garbage"))
	state = frame(state, encoded("b", 1, 1))
	state = append(state, 0xff, 0xff, 1)
	tab := quietTable()
	tab.join("a", "127.0.0.1:1")
	tab.join("b", "127.0.0.1:2")
	tab.merge(state)
	tab.merge([]byte{stateVersion + 1})
	tab.merge(nil)
	if diff := cmp.Diff(Counters{Accepted: 2, Malformed: 3}, tab.counters()); diff != "" {
		t.Errorf("counters (-want +got):\n%s", diff)
	}
}

// TestTablesConverge: with digests in any order, and tables exchanged in any
// way, two members end with the newest of each node.
func TestTablesConverge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		left, right := quietTable(), quietTable()
		newest := make(map[resource.NodeID]digest.Digest)
		for i := range 4 {
			id := resource.NodeID(fmt.Sprintf("n%d", i))
			left.join(id, "127.0.0.1:4")
			right.join(id, "127.0.0.1:4")
		}
		for range rapid.IntRange(0, 40).Draw(t, "digests") {
			d := digest.Digest{
				NodeID: resource.NodeID(fmt.Sprintf("n%d", rapid.IntRange(0, 3).Draw(t, "node"))), Cell: "0",
				Revision: resource.Revision(rapid.IntRange(0, 3).Draw(t, "revision")), Sequence: rapid.Uint64Max(5).Draw(t, "sequence"),
			}
			if old, ok := newest[d.NodeID]; !ok || digest.Newer(d, old) {
				newest[d.NodeID] = d
			}
			if rapid.Bool().Draw(t, "side") {
				left.offer(d.Append(nil))
			} else {
				right.offer(d.Append(nil))
			}
		}
		left.merge(right.state())
		right.merge(left.state())
		if diff := cmp.Diff(left.digests(), right.digests()); diff != "" {
			t.Fatalf("the tables differ (-left +right):\n%s", diff)
		}
		if len(left.digests()) != len(newest) {
			t.Fatalf("%d nodes known, want %d", len(left.digests()), len(newest))
		}
		for _, d := range left.digests() {
			if diff := cmp.Diff(newest[d.NodeID], d); diff != "" {
				t.Fatalf("%s is not the newest (-want +got):\n%s", d.NodeID, diff)
			}
		}
	})
}

func FuzzMerge(f *testing.F) {
	source := quietTable()
	source.join("a", "127.0.0.1:1")
	source.offer(encoded("a", 1, 1))
	f.Add(source.state())
	f.Add([]byte{stateVersion, 0, 0})
	f.Add([]byte{stateVersion, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, in []byte) {
		tab := quietTable()
		tab.join("a", "127.0.0.1:1")
		tab.merge(in)
		again := quietTable()
		again.join("a", "127.0.0.1:1")
		again.merge(tab.state())
		if diff := cmp.Diff(tab.digests(), again.digests()); diff != "" {
			t.Fatalf("the table after a second exchange (-first +second):\n%s", diff)
		}
	})
}

// BenchmarkOffer is the cost of each digest to each member of the ring: of a new one, and
// of a copy of the newest, as which the ring brings each digest about eleven times more
// in a ring of 100.
func BenchmarkOffer(b *testing.B) {
	d := digest.Digest{NodeID: "node-3", Cell: "0", GPUs: make([]digest.GPU, 8), NUMA: []digest.NUMANode{{ID: 0}, {ID: 1}}}
	for name, step := range map[string]uint64{"new": 1, "copy": 0} {
		b.Run(name, func(b *testing.B) {
			tab := quietTable()
			tab.join("node-3", "127.0.0.1:3")
			buf := make([]byte, 0, digest.MaxSize)
			b.ReportAllocs()
			for b.Loop() {
				d.Sequence += step
				tab.offer(d.Append(buf[:0]))
			}
		})
	}
}
