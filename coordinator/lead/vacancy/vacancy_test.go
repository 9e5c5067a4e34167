package vacancy_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/coordinator/lead/vacancy"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

var start = time.UnixMilli(946_684_800_000)

// story is a Book and the nodes that have freed their members.
type story struct {
	vacancy.Book
	freed map[resource.NodeID]bool
}

func (s *story) note(tx resource.TxID, second int) {
	at := start.Add(time.Duration(second) * time.Second)
	for _, id := range []resource.NodeID{"n1", "n2", "n3"} {
		if s.freed[id] {
			s.Note(tx, id, at, at.UnixMilli())
		}
	}
}

func at(second int) int64 { return start.UnixMilli() + int64(second)*1000 }

func TestTheFirstInstantOfANodeStays(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(*story)
		want []record.FreedNode
	}{
		"nobody has freed anything":      {do: func(s *story) { s.note("a", 1) }},
		"one node":                       {func(s *story) { s.freed["n2"] = true; s.note("a", 1) }, []record.FreedNode{{Node: "n2", AtMillis: at(1)}}},
		"the second message says no new": {func(s *story) { s.freed["n2"] = true; s.note("a", 1); s.note("a", 5) }, []record.FreedNode{{Node: "n2", AtMillis: at(1)}}},
		"nodes ascend": {func(s *story) { s.freed["n2"] = true; s.note("a", 1); s.freed["n1"] = true; s.note("a", 5) },
			[]record.FreedNode{{Node: "n1", AtMillis: at(5)}, {Node: "n2", AtMillis: at(1)}}},
		"what an earlier leader knew stays": {func(s *story) {
			s.Restore("a", []record.FreedNode{{Node: "n2", AtMillis: at(-9)}})
			s.note("a", 0)
			s.freed["n2"] = true
			s.note("a", 1)
		}, []record.FreedNode{{Node: "n2", AtMillis: at(-9)}}},
		"a dead node that is back": {func(s *story) { s.freed["n2"] = true; s.note("a", 1); s.Retract("a", "n2", start) }, []record.FreedNode{}},
		"a dead node that is back and frees again": {func(s *story) {
			s.freed["n2"] = true
			s.note("a", 1)
			s.Retract("a", "n2", start)
			s.note("a", 7)
		}, []record.FreedNode{{Node: "n2", AtMillis: at(7)}}},
		"another transaction":  {func(s *story) { s.freed["n2"] = true; s.note("b", 1) }, nil},
		"its record has ended": {func(s *story) { s.freed["n2"] = true; s.note("a", 1); s.Forget("a") }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := &story{Book: vacancy.New(), freed: map[resource.NodeID]bool{}}
			c.do(s)
			if d := cmp.Diff(c.want, s.Of("a")); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

// TestAKeyIsWrittenOnce: a second after the last change, and not while a write is under way;
// a write without an answer holds the key back for 10 s.
func TestAKeyIsWrittenOnce(t *testing.T) {
	s := &story{Book: vacancy.New(), freed: map[resource.NodeID]bool{"n1": true}}
	s.note("a", 0)
	due := func(millis int) int { return len(s.Due(start.Add(time.Duration(millis) * time.Millisecond))) }
	on := func(millis int, nodes ...resource.NodeID) int {
		list := s.Ahead(nodes, start.Add(time.Duration(millis)*time.Millisecond), func(resource.TxID) (vacancy.Key, []resource.NodeID, bool) { return vacancy.Key{}, nil, true })
		if len(list) > 0 {
			s.Answered(list[0].Tx, list[0].Ready)
		}
		return len(list)
	}
	if due(999) != 0 || due(1000) != 1 {
		t.Errorf("due after 999 ms: %d, after 1 s: %d; want 0 and 1", due(999), due(1000))
	}
	if on(0, "n1", "n2") != 1 || on(0, "n2") != 0 {
		t.Errorf("on n1 %d, on n2 %d; want 1 and 0", on(0, "n1", "n2"), on(0, "n2"))
	}
	s.Ask("a", start.Add(time.Second))
	if due(5000) != 0 || on(5000, "n1") != 0 || due(11_000) != 1 || on(11_000, "n1") != 1 {
		t.Error("a write under way holds the key back for other than 10 s")
	}
	s.Answered("a", record.Ready{Freed: s.Of("a")})
	if due(5000) != 1 || on(5000, "n1") != 1 {
		t.Errorf("after the answer: due %d, on %d; want 1 and 1", due(5000), on(5000, "n1"))
	}
}

// TestNotesLeaveEarlierListsAlone: records under way have them.
func TestNotesLeaveEarlierListsAlone(t *testing.T) {
	s := &story{Book: vacancy.New(), freed: map[resource.NodeID]bool{"n2": true, "n3": true}}
	s.note("a", 1)
	before := s.Of("a")
	s.freed["n1"] = true
	s.note("a", 2)
	s.Retract("a", "n2", start)
	if d := cmp.Diff([]record.FreedNode{{Node: "n2", AtMillis: at(1)}, {Node: "n3", AtMillis: at(1)}}, before); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// TestAPreemptorsVictim: only the preemptor gets the devices, so a moment is not written.
func TestAPreemptorsVictim(t *testing.T) {
	for name, c := range map[string]struct {
		claimed bool
		after   time.Duration
		end     int64 // of the record, behind the freeing
		want    int
	}{
		"claimed, a moment ago":      {true, 999 * time.Millisecond, 1, 0},
		"claimed, a second ago":      {true, time.Second, 1, 1},
		"another one, a moment ago":  {false, time.Millisecond, 1, 1},
		"another one, a while ago":   {false, time.Hour, 1, 1},
		"at the end of the record":   {false, 0, 0, 0},
		"claimed, for a whole grace": {true, 10 * time.Minute, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := &story{Book: vacancy.New(), freed: map[resource.NodeID]bool{"n1": true}}
			s.note("a", 0)
			if got := len(s.AtEnd("a", at(0)+c.end, c.claimed, start.Add(c.after))); got != c.want {
				t.Errorf("%d nodes, want %d", got, c.want)
			}
		})
	}
}

// TestTheEndOfARecord is the last freeing of all nodes, once the book has all.
func TestTheEndOfARecord(t *testing.T) {
	s := &story{Book: vacancy.New(), freed: map[resource.NodeID]bool{"n1": true}}
	if got := s.End("a", 1, at(9)); got != at(9) {
		t.Errorf("without a freeing: %d, want %d", got, at(9))
	}
	s.note("a", 1)
	s.freed["n2"] = true
	s.note("a", 3)
	if one, both := s.End("a", 3, at(9)), s.End("a", 2, at(9)); one != at(9) || both != at(3) {
		t.Errorf("with two of three nodes %d, with both of two %d; want %d and %d", one, both, at(9), at(3))
	}
}

// TestAnEndThatFails has the instant of the first try.
func TestAnEndThatFails(t *testing.T) {
	s := &story{Book: vacancy.New(), freed: map[resource.NodeID]bool{"n1": true, "n2": true}}
	s.Close("a", at(1))
	s.Close("a", at(2))
	s.Reopen("a", []resource.NodeID{"n2", "n1"}, start)
	want := []record.FreedNode{{Node: "n1", AtMillis: at(1)}, {Node: "n2", AtMillis: at(1)}}
	if d := cmp.Diff(want, s.Of("a")); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if s.Forget("a"); !s.IsEmpty() {
		t.Error("the book is not empty after the end")
	}
	if s.Reopen("a", []resource.NodeID{"n2", "n1"}, start); !s.IsEmpty() {
		t.Error("a transaction comes back after its end")
	}
}

// TestARecordWhoseEndIsBeingWrittenHasFreedAllNodes at the instant of the first try, or before.
func TestARecordWhoseEndIsBeingWrittenHasFreedAllNodes(t *testing.T) {
	s := &story{Book: vacancy.New(), freed: map[resource.NodeID]bool{"n2": true}}
	s.note("a", 1)
	s.Close("a", at(3))
	s.Close("b", at(4))
	keys := map[resource.TxID]vacancy.Key{"a": {Ready: record.Ready{AtMillis: 5}}, "b": {}}
	carried := func(nodes ...resource.NodeID) []vacancy.Write {
		return s.Ahead(nodes, start, func(tx resource.TxID) (vacancy.Key, []resource.NodeID, bool) {
			return keys[tx], []resource.NodeID{"n1", "n2"}, true
		})
	}
	freed := map[resource.TxID][]record.FreedNode{
		"a": {{Node: "n1", AtMillis: at(3)}, {Node: "n2", AtMillis: at(1)}},
		"b": {{Node: "n1", AtMillis: at(4)}, {Node: "n2", AtMillis: at(4)}},
	}
	want := []vacancy.Write{{Tx: "a", Ready: record.Ready{AtMillis: 5, Freed: freed["a"]}}, {Tx: "b", Ready: record.Ready{Freed: freed["b"]}}}
	if d := cmp.Diff(want, carried("n1")); d != "" {
		t.Errorf("the commit of the next holder carries other keys (-want +got)\n%s", d)
	}
	if got := carried("n3"); len(got) > 0 {
		t.Errorf("a commit on another node carries %+v", got)
	}
	keys["b"] = vacancy.Key{Ready: record.Ready{Freed: freed["b"]}, Revision: 7}
	if got := carried("n1"); len(got) > 0 {
		t.Errorf("a key with all nodes is written again: %+v", got)
	}
	if s.Forget("a"); s.IsEmpty() {
		t.Error("the book is empty while the end of b is being written")
	}
}

// TestKeysOfOthersAreBounded: a commit carries at most 16, and leaves out those that have all.
func TestKeysOfOthersAreBounded(t *testing.T) {
	s := &story{Book: vacancy.New(), freed: map[resource.NodeID]bool{"n1": true}}
	for i := range 40 {
		s.note(resource.TxID(rune('A'+i)), 0)
	}
	has := vacancy.Key{Ready: record.Ready{AtMillis: 5, Freed: []record.FreedNode{{Node: "n1", AtMillis: at(0)}}}, Revision: 3}
	list := s.Ahead([]resource.NodeID{"n1"}, start, func(tx resource.TxID) (vacancy.Key, []resource.NodeID, bool) {
		switch tx {
		case "A":
			return vacancy.Key{}, nil, false
		case "B":
			return has, nil, true
		}
		return vacancy.Key{Ready: record.Ready{AtMillis: 5}}, nil, true
	})
	if len(list) != 16 || list[0].Tx != "C" || list[0].Ready.AtMillis != 5 || len(list[0].Ready.Freed) != 1 {
		t.Errorf("%d keys, %+v; want 16 from C on", len(list), list)
	}
}

// TestAKeyKeepsTheInstantOfItsFirstWrite while the first write has no answer, and no longer.
func TestAKeyKeepsTheInstantOfItsFirstWrite(t *testing.T) {
	freed := []record.FreedNode{{Node: "n1", AtMillis: at(2)}}
	for name, c := range map[string]struct {
		do    func(b *vacancy.Book)
		known int64 // of the key that the leader has
		want  int64
	}{
		"no write":                           {func(*vacancy.Book) {}, 0, 0},
		"a first write without an answer":    {func(b *vacancy.Book) { b.First("a", at(1)) }, 0, at(1)},
		"of another transaction":             {func(b *vacancy.Book) { b.First("b", at(1)) }, 0, 0},
		"a first write that was refused":     {func(b *vacancy.Book) { b.Answered("a", b.First("a", at(1))) }, 0, 0},
		"a later write that was refused":     {func(b *vacancy.Book) { b.First("a", at(1)); b.Answered("a", record.Ready{Freed: freed}) }, 0, at(1)},
		"the end of the record":              {func(b *vacancy.Book) { b.First("a", at(1)); b.Forget("a") }, 0, 0},
		"a key that has an instant already":  {func(b *vacancy.Book) { b.First("a", at(1)) }, at(0), at(0)},
		"a second first write, after a fail": {func(b *vacancy.Book) { b.Answered("a", b.First("a", at(1))); b.First("a", at(3)) }, 0, at(3)},
	} {
		t.Run(name, func(t *testing.T) {
			b := vacancy.New()
			c.do(&b)
			key := vacancy.Key{Ready: record.Ready{AtMillis: c.known}}
			if d := cmp.Diff(record.Ready{AtMillis: c.want, Freed: freed}, b.With("a", key, freed)); d != "" {
				t.Errorf("the key without the instant loses when the unit was ready (-want +got)\n%s", d)
			}
		})
	}
	signaled := vacancy.Key{Ready: record.Ready{SignaledMillis: at(1)}}
	if got := signaled.Written(record.Ready{AtMillis: at(0)}, 7); got.SignaledMillis != at(1) || got.AtMillis != at(0) || got.Revision != 7 {
		t.Errorf("after a write the key is %+v, want the instant of the signal too", got)
	}
}
