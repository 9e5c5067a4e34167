package ledger_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// samples has every kind of event once, and grants of every shape.
func samples() []ledger.Event {
	counted := ledger.Holding{
		Index:   1,
		Request: resource.Request{CPU: 1000, Counts: "ephemeral-storage=1024,example.com/fpga=2"},
		Assignment: resource.Assignment{
			CPUs:   []resource.CPUGrant{{ID: 4, Milli: 1000}},
			Counts: []resource.CountGrant{{Name: "ephemeral-storage", Amount: 1024}, {Name: "example.com/fpga", Amount: 2}, {Name: "pods", Amount: 1}},
		},
	}
	return append(version4Samples(),
		ledger.Granted{Grant: ledger.Grant{Tx: "t", State: grant.Held, Members: []ledger.Holding{counted}}},
		ledger.KubeletPoolSet{Add: []string{"GPU-a", "MIG-b"}, Remove: []string{"GPU-c"}},
		ledger.KubeletPoolSet{Remove: []string{"GPU-a"}},
		ledger.KubeletPoolSet{},
	)
}

// version4Samples has what version 4 could say beyond version 3.
func version4Samples() []ledger.Event {
	two := ledger.Grant{Tx: "t", State: grant.Reserved, Members: []ledger.Holding{{Index: 1}}, Name: "default/job/train/0", UnitMembers: 2}
	return append(version3Samples(),
		ledger.Granted{Grant: two},
		ledger.Granted{Grant: ledger.Grant{Tx: "t", State: grant.Tombstone, UnitMembers: ledger.MaxUnitMembers}},
	)
}

// version3Samples has what version 3 could say beyond version 2.
func version3Samples() []ledger.Event {
	named := ledger.Grant{
		Tx: "t", State: grant.Held, Members: []ledger.Holding{{}}, Name: "default/job/train/1", Tenant: "team-a", Disowned: true,
	}
	return append(version2Samples(),
		ledger.Started{Incarnation: incarnation("j", "b"), At: boot(1), Heard: 1 << 40, Forgotten: ledger.Attempt{Epoch: 7, Counter: 1 << 63}},
		ledger.Enrolled{Revision: 77, Store: 1 << 40},
		ledger.Granted{Grant: named},
		ledger.Noticed{Tx: "t", By: "p", Since: boot(5), Deadline: boot(6), Grace: time.Second, Revision: 12},
		ledger.StopBegun{Tx: "t", Since: boot(5), Deadline: boot(6), Grace: time.Second, Reason: "done", Revision: 12},
		ledger.Buried{Tx: "t", Revision: 13},
		ledger.Dropped{Tx: "t", Revision: 14},
		ledger.Quarantined{Heard: 100, Store: 99},
		ledger.Reconciled{Epoch: 98, Revision: 101},
		ledger.Reconciled{Epoch: 98, Revision: 101, Released: []resource.TxID{"a", "b"}, Grace: time.Minute},
	)
}

// version2Samples has the events that version 2 has beyond version 1.
func version2Samples() []ledger.Event {
	exclusive := ledger.Holding{
		Index:   1,
		Request: resource.Request{Cores: 2, Hugepages: 6 << 20, HugepageSize: 2 << 20, MIG: 2, MIGProfile: "1g.10gb+me"},
		Assignment: resource.Assignment{
			CPUs:      []resource.CPUGrant{{ID: 4, Milli: 1000}, {ID: 5, Milli: 1000}},
			Hugepages: []resource.HugepageGrant{{Node: 0, Size: 2 << 20, Bytes: 4 << 20}, {Node: 0, Size: 1 << 30, Bytes: 1 << 30}, {Node: 3, Size: 2 << 20, Bytes: 2 << 20}},
			MIG: []resource.MIGGrant{
				{GPU: 1, Instance: 6, UUID: "MIG-a", Profile: "1g.10gb+me"}, {GPU: 2, Instance: 0, UUID: "MIG-b", Profile: "1g.10gb"},
			},
		},
	}
	return append(version1Samples(),
		ledger.Granted{Grant: ledger.Grant{Tx: "t", State: grant.Held, Members: []ledger.Holding{exclusive}}},
		ledger.HealthChanged{UUID: "GPU-a", Health: devices.Tainted, Reason: "xid 79: GPU has fallen off the bus"},
	)
}

func TestEveryEventReadsBackAsItWasWritten(t *testing.T) {
	events := samples()
	for _, e := range events {
		b := ledger.AppendEvent(nil, e)
		got, err := ledger.ParseEvent(b)
		if err != nil {
			t.Fatalf("%#v: %v", e, err)
		}
		if diff := cmp.Diff(e, got); diff != "" {
			t.Errorf("%T: %s", e, diff)
		}
		for n := range b {
			if _, err := ledger.ParseEvent(b[:n]); err == nil {
				t.Errorf("%T: its first %d of %d bytes were taken for an event", e, n, len(b))
			}
		}
		if _, err := ledger.ParseEvent(append(b, 0)); err == nil {
			t.Errorf("%T: a trailing byte was taken", e)
		}
	}
	got, err := ledger.ParseEvents(ledger.AppendEvents(nil, events))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(events, got); diff != "" {
		t.Error(diff)
	}
}

func TestBytesThatNobodyWroteAreRefused(t *testing.T) {
	committed := ledger.AppendEvent(nil, ledger.Committed{Tx: "t", Revision: 1})
	cases := map[string]struct {
		bytes []byte
		want  string
	}{
		"nothing":                     {nil, "ends within"},
		"another version":             {[]byte{7, 10, 0}, "version 7"},
		"an unknown kind":             {[]byte{1, 99}, "kind 99"},
		"a padded number":             {[]byte{1, 3, 0x80, 0x00}, "padded"},
		"a text longer than the rest": {[]byte{1, 10, 200, 1, 'x'}, "length of a text"},
		"a bool of two":               {[]byte{1, 12, 2}, "neither 0 nor 1"},
		"version 0":                   {[]byte{0, 10, 0}, "version 0"},
		"a reason in version 1":       {[]byte{1, 13, 1, 'x', 2, 1, 'y'}, "follow"},
		"no reason in version 2":      {[]byte{2, 13, 1, 'x', 2}, "ends within"},
		"an unknown health":           {[]byte{1, 13, 1, 'x', 9}, "health 9"},
		"a quarantine in version 2":   {[]byte{2, 14, 4, 2}, "kind 14 is unknown"},
		"a quarantine without cause":  {[]byte{3, 14, 4, 4}, "has not gone back"},
		"no revision in version 3":    {[]byte{3, 10, 1, 'x'}, "ends within"},
		"a revision in version 2":     {[]byte{2, 10, 1, 'x', 2}, "follow"},
		"half a page":                 {member(0, 0, 0, 1, 0, 3, 4), "whole pages"},
		"pages out of order":          {member(0, 0, 0, 2, 1, 2, 2, 0, 2, 2), "out of order"},
		"the same pages twice":        {member(0, 0, 0, 2, 1, 2, 2, 1, 2, 2), "out of order"},
		"pages of no size":            {member(0, 0, 0, 1, 0, 0, 2), "bytes of a page"},
		"an instance twice":           {member(0, 0, 0, 0, 2, 1, 1, 1, 'x', 6, '1', 'g', '.', '1', 'g', 'b', 1, 1, 1, 'y', 6, '1', 'g', '.', '1', 'g', 'b'), "out of order"},
		"an instance without a UUID":  {member(0, 0, 0, 0, 1, 1, 1, 0, 6, '1', 'g', '.', '1', 'g', 'b'), "no UUID"},
		"an instance of no profile":   {member(0, 0, 0, 0, 1, 1, 1, 1, 'x', 1, '?'), "MIG profile"},
		"a 17th instance":             {member(0, 0, 0, 0, 1, 1, 16, 1, 'x', 6, '1', 'g', '.', '1', 'g', 'b'), "16 is greater than 15"},
		"more memory than any host":   {member(0, 1, 0, 0x81, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 2, 0, 0, 0), "outside 1.."},
		"a member beyond its unit":    {unitMembers(7, 7), "member 7 is not one of 7"},
		"a unit of too many members":  {unitMembers(0, ledger.MaxUnitMembers+1), "members of the unit"},
		"a grant without its unit's":  {unitMembers(0, 1)[:len(unitMembers(0, 1))-1], "ends within"},
		"a unit's members, version 3": {append([]byte{3}, unitMembers(0, 1)[1:]...), "follow"},
		"unknown flags of a grant":    {[]byte{1, 4, 0xf0, 0, 1}, "flags"},
		"flags of version 3":          {[]byte{2, 4, 4, 0, 1}, "flags"},
		"a grant in no state":         {[]byte{1, 4, 0, 0, 0}, "state 0"},
		"a payload cut in a length":   {[]byte{1, 0}, "length"},
		"an event after its end":      {append(bytes.Clone(committed), 7), "follow"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			parse := func(b []byte) error { _, err := ledger.ParseEvent(b); return err }
			if strings.HasPrefix(name, "a payload") {
				parse = func(b []byte) error { _, err := ledger.ParseEvents(b); return err }
			}
			if err := parse(c.bytes); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want a message with %q", err, c.want)
			}
		})
	}
}

// member is a Granted event whose only member has no request and this encoded
// assignment: the counts and entries of CPUs, memory, GPUs, huge pages and MIG
// instances.
func member(assignment ...byte) []byte {
	head := ledger.AppendEvent(nil, ledger.Granted{Grant: ledger.Grant{Tx: "t", State: grant.Held, Members: []ledger.Holding{{}}}})
	return append(append(head[:len(head)-9], assignment...), 0, 0, 0, 0) // it ends with no counted resource, no name, no tenant and no number of members
}

// unitMembers is a Granted event with one member of a unit that has n.
func unitMembers(index, n int) []byte {
	return ledger.AppendEvent(nil, ledger.Granted{Grant: ledger.Grant{Tx: "t", State: grant.Held, Members: []ledger.Holding{{Index: index}}, UnitMembers: n}})
}

func TestAppendAllocatesNothingWhereThereIsRoom(t *testing.T) {
	buffer := make([]byte, 0, 4096)
	for _, e := range samples() {
		if n := testing.AllocsPerRun(10, func() { buffer = ledger.AppendEvent(buffer[:0], e) }); n != 0 {
			t.Errorf("%T: %v allocations", e, n)
		}
	}
}

func TestGrantHashTellsAssignmentsApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) (resource.TxID, []ledger.Holding) {
			var members []ledger.Holding
			for i := range rapid.IntRange(1, 2).Draw(t, name+" members") {
				a := resource.Assignment{}
				for id := range rapid.IntRange(0, 2).Draw(t, "cpus") {
					a.CPUs = append(a.CPUs, resource.CPUGrant{ID: id, Milli: resource.Millicores(rapid.IntRange(1, 2).Draw(t, "milli"))})
				}
				for at := range rapid.IntRange(0, 2).Draw(t, "gpus") {
					a.GPUs = append(a.GPUs, resource.GPUGrant{Index: at, UUID: "x", Milli: 1})
				}
				for at := range rapid.IntRange(0, 2).Draw(t, "instances") {
					a.MIG = append(a.MIG, resource.MIGGrant{GPU: at / 2, Instance: at % 2, UUID: "x", Profile: "1g.10gb"})
				}
				for node := range rapid.IntRange(0, 2).Draw(t, "pools") {
					size := resource.Bytes(2<<20) << (9 * rapid.IntRange(0, 1).Draw(t, "size"))
					a.Hugepages = append(a.Hugepages, resource.HugepageGrant{Node: node, Size: size, Bytes: size})
				}
				members = append(members, ledger.Holding{Index: i, Assignment: a})
			}
			return resource.TxID(rapid.SampledFrom([]string{"a", "b", "ab", "longer-than-eight"}).Draw(t, name)), members
		}
		tx1, m1 := draw("one")
		tx2, m2 := draw("two")
		same := tx1 == tx2 && cmp.Equal(m1, m2)
		if equal := ledger.GrantHash(tx1, m1) == ledger.GrantHash(tx2, m2); equal != same {
			t.Fatalf("hashes equal: %v, grants equal: %v", equal, same)
		}
	})
}

// FuzzParseEvents: no bytes make the parser panic, and it takes only bytes that
// AppendEvents writes, or wrote in an earlier version.
func FuzzParseEvents(f *testing.F) {
	for _, e := range samples() {
		f.Add(ledger.AppendEvents(nil, []ledger.Event{e}))
	}
	f.Add(ledger.AppendEvents(nil, samples()))
	f.Fuzz(func(t *testing.T, b []byte) {
		events, err := ledger.ParseEvents(b)
		if err != nil {
			return
		}
		again := ledger.AppendEvents(nil, events)
		if bytes.Equal(again, b) {
			return
		}
		reread, err := ledger.ParseEvents(again)
		if err != nil || cmp.Diff(events, reread) != "" || !earlierIn(b) {
			t.Fatalf("%x reads as %+v, which is written %x and reads as %+v (%v)", b, events, again, reread, err)
		}
	})
}

// earlierIn reports whether a payload that parses has an event of an earlier
// version.
func earlierIn(b []byte) bool {
	for len(b) > 0 {
		n := binary.LittleEndian.Uint32(b)
		if b[4] < ledger.CodecVersion {
			return true
		}
		b = b[4+n:]
	}
	return false
}

// FuzzReplay: for any events in a journal, replaying them on the host of the
// model test ends in a consistent ledger or an error, never in a panic or a
// double grant; and where it replays, the ledger moves to every other host and
// back.
func FuzzReplay(f *testing.F) {
	hosts := worldHosts(f)
	l := ready(f, hosts[0])
	for i := range 2 {
		do(f, l, boot(1), gpus(resource.TxID(fmt.Sprint(i)), 1, 1))
	}
	do(f, l, boot(2), grant.Commit{Tx: "0", Epoch: 1, Revision: 6})
	waiting := gpus("w", 1, 2)
	waiting.After = []resource.TxID{"0"}
	do(f, l, boot(2), waiting)
	snapshot := l.SnapshotEvents()
	f.Add(ledger.AppendEvents(nil, snapshot))
	f.Add(ledger.AppendEvents(nil, append(snapshot, ledger.Buried{Tx: "0"}, ledger.Promoted{Tx: "w"}, ledger.Dropped{Tx: "1"})))
	f.Add(ledger.AppendEvents(nil, samples()))
	f.Fuzz(func(t *testing.T, b []byte) {
		l := ledger.New(hosts[0])
		if err := l.Replay([][]byte{b}); err != nil {
			return
		}
		if err := l.Check(); err != nil {
			t.Fatal(err)
		}
		hash := l.Hash()
		for _, host := range append(hosts[1:len(hosts):len(hosts)], hosts[0]) {
			if err := l.Rehost(host); err != nil {
				t.Fatal(err)
			}
			if err := l.Check(); err != nil {
				t.Fatal(err)
			}
		}
		if l.Hash() != hash {
			t.Fatalf("hash %x there and back, %x before", l.Hash(), hash)
		}
		do(t, l, boot(9), ledger.Start{Incarnation: incarnation("fuzz", "fuzz")})
		do(t, l, boot(9), ledger.Registered{Revision: 1, Store: 5, Heard: l.Heard()})
		do(t, l, boot(9), grant.Reconcile{Epoch: 1, Revision: 5})
	})
}
