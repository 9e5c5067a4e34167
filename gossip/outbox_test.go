package gossip

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/memberlist"
	"pgregory.net/rapid"
)

func TestOutbox(t *testing.T) {
	const overhead = 2
	cases := map[string]struct {
		puts  []string // the first byte names the node
		limit int
		want  [][]string // of each packet
	}{
		"nothing waits": {limit: 100, want: [][]string{nil}},
		"a digest is sent as often as the ring's size asks for, and no more": {
			puts: []string{"a1"}, limit: 100, want: [][]string{{"a1"}, {"a1"}, {"a1"}, nil},
		},
		"a newer digest takes the place of its node's older one": {
			puts: []string{"a1", "a2"}, limit: 100, want: [][]string{{"a2"}},
		},
		"the newest comes first": {
			puts: []string{"a1", "b1", "c1"}, limit: 100, want: [][]string{{"c1", "b1", "a1"}},
		},
		"what was sent least comes first": {
			puts: []string{"a1", "b1", "c1"}, limit: 2 * (overhead + 2),
			want: [][]string{{"c1", "b1"}, {"a1", "c1"}, {"a1", "b1"}, {"a1", "b1"}, {"c1"}, nil},
		},
		"one that finds no room leaves it to a shorter one, and waits": {
			puts: []string{"b-a-long-one", "a1"}, limit: overhead + 4, want: [][]string{{"a1"}, {"a1"}, {"a1"}, nil},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			o := newOutbox(func() int { return 9 }, 3) // one digit: three times
			for _, text := range c.puts {
				o.put(text[:1], []byte(text))
			}
			var got [][]string
			for range c.want {
				var packet []string
				for _, m := range o.take(overhead, c.limit) {
					packet = append(packet, string(m))
				}
				got = append(got, packet)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("packets (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOutboxPacks holds an outbox against a list that is searched for each message:
// the message that was sent least, and of these the newest that fits.
func TestOutboxPacks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		members, mult := rapid.IntRange(0, 300).Draw(t, "members"), rapid.IntRange(1, 5).Draw(t, "mult")
		o := newOutbox(func() int { return members }, mult)
		m := &plainOutbox{most: mult * len(strconv.Itoa(members))}
		if members == 0 {
			m.most = 0
		}
		for version := range rapid.IntRange(1, 60).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "put") {
				node := strconv.Itoa(rapid.IntRange(0, 9).Draw(t, "node"))
				raw := fmt.Sprintf("%s:%d%s", node, version, strings.Repeat("x", rapid.IntRange(0, 9).Draw(t, "more")))
				o.put(node, []byte(raw))
				m.put(node, raw)
				continue
			}
			limit := rapid.IntRange(0, 60).Draw(t, "limit")
			var got []string
			for _, raw := range o.take(2, limit) {
				got = append(got, string(raw))
			}
			if diff := cmp.Diff(m.take(2, limit), got); diff != "" {
				t.Fatalf("a packet of %d bytes (-want +got):\n%s", limit, diff)
			}
			checkOutbox(t, o)
		}
	})
}

// plainOutbox is an outbox as simple as can be: the letters in the order of arrival.
type plainOutbox struct {
	most    int
	letters []letter
}

func (o *plainOutbox) put(node, raw string) {
	o.letters = slices.DeleteFunc(o.letters, func(l letter) bool { return l.node == node })
	o.letters = append(o.letters, letter{node: node, raw: []byte(raw)})
}

func (o *plainOutbox) take(overhead, limit int) (packet []string) {
	var sent []letter
	for {
		best := -1
		for i, l := range o.letters {
			if overhead+len(l.raw) <= limit && (best < 0 || l.sent <= o.letters[best].sent) {
				best = i
			}
		}
		if best < 0 {
			break
		}
		l := o.letters[best]
		o.letters = slices.Delete(o.letters, best, best+1)
		packet, limit = append(packet, string(l.raw)), limit-overhead-len(l.raw)
		if l.sent++; l.sent < o.most {
			sent = append([]letter{l}, sent...)
		}
	}
	o.letters = append(o.letters, sent...)
	return packet
}

// checkOutbox checks the invariant of an outbox.
func checkOutbox(t *rapid.T, o *outbox) {
	filed := 0
	for sent, tier := range o.tiers {
		for _, l := range tier {
			if filed++; l.sent != sent || o.letters[l.node] != l {
				t.Fatalf("the letter of %s, sent %d times, is in tier %d", l.node, l.sent, sent)
			}
		}
	}
	if filed != len(o.letters) {
		t.Fatalf("%d letters in tiers, %d by node", filed, len(o.letters))
	}
}

// named is a digest on its way through memberlist's queue.
type named struct {
	node string
	raw  []byte
}

func (n named) Name() string                          { return n.node }
func (n named) Message() []byte                       { return n.raw }
func (n named) Finished()                             {}
func (n named) Invalidates(memberlist.Broadcast) bool { return false }

// BenchmarkOutbox is a member's work for one digest of another node: the digest is put
// in and sent a dozen times, in packets of 4 KiB, beside those of 100 nodes.
func BenchmarkOutbox(b *testing.B) {
	const members, mult, sends = 101, 4, 12
	nodes := make([]string, members)
	for i := range nodes {
		nodes[i] = fmt.Sprintf("node-%d", i)
	}
	raw := make([]byte, 150)
	run := func(b *testing.B, put func(node string), take func() int) {
		b.ReportAllocs()
		i, due := 0, 0
		for b.Loop() {
			put(nodes[i%members])
			i++
			for due += sends; due > 0; {
				n := take()
				if due -= n; n == 0 {
					due = 0
				}
			}
		}
	}
	size := func() int { return members }
	b.Run("memberlist", func(b *testing.B) {
		q := &memberlist.TransmitLimitedQueue{NumNodes: size, RetransmitMult: mult}
		run(b, func(node string) { q.QueueBroadcast(named{node, raw}) }, func() int { return len(q.GetBroadcasts(3, 4<<10)) })
	})
	b.Run("outbox", func(b *testing.B) {
		o := newOutbox(size, mult)
		run(b, func(node string) { o.put(node, slices.Clip(raw)) }, func() int { return len(o.take(3, 4<<10)) })
	})
}
