package ledger_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/resource"
)

// samples has every kind of event once, and grants of every shape.
func samples() []ledger.Event {
	member := ledger.Member{
		Index:   3,
		Request: resource.Request{CPU: 1500, Memory: 1 << 33, GPUs: 2, GPUModel: "A100", GPUMemory: 1 << 30, NUMA: resource.NUMARestricted, Link: resource.LinkNVLink},
		Assignment: resource.Assignment{
			CPUs:   []resource.CPUGrant{{ID: 0, Milli: 500}, {ID: 130, Milli: 1000}},
			Memory: []resource.MemoryGrant{{Node: 0, Bytes: 1}, {Node: 7, Bytes: 1 << 40}},
			GPUs:   []resource.GPUGrant{{Index: 2, UUID: "GPU-a", Milli: 1000}, {Index: 5, UUID: "GPU-b", Milli: 1}},
		},
	}
	return []ledger.Event{
		ledger.Started{Incarnation: incarnation("j", "b"), At: boot(1)},
		ledger.Started{},
		ledger.Enrolled{Revision: 77},
		ledger.EpochRaised{Epoch: 1 << 40},
		ledger.Granted{Grant: ledger.Grant{Tx: "t", State: ledger.Tombstone}},
		ledger.Granted{Grant: ledger.Grant{
			Tx: "t", Unit: "u", Epoch: 4, Origin: ledger.OriginOrphan, State: ledger.Waiting, Members: []ledger.Member{{}, member},
			Incarnation: incarnation("other", "boot"), Since: boot(1), Deadline: boot(2.5), TTL: time.Minute, Victims: []resource.TxID{"v1", "v2"},
		}},
		ledger.Granted{Grant: ledger.Grant{
			Tx: "t", State: ledger.Reserved, Members: []ledger.Member{member}, Revision: 9, Grace: time.Second, WasWaiting: true, By: "p", Reason: "why not",
		}},
		ledger.Committed{Tx: "t", Revision: -1},
		ledger.Renewed{Tx: "t", Epoch: 5, Deadline: boot(3)},
		ledger.Promoted{Tx: "t", Deadline: boot(4)},
		ledger.Noticed{Tx: "t", By: "p", Since: boot(5), Deadline: boot(6), Grace: time.Second},
		ledger.StopBegun{Tx: "t", Since: boot(5), Deadline: boot(6), Grace: time.Second, Reason: "done"},
		ledger.Buried{Tx: "t"},
		ledger.Dropped{Tx: "t"},
		ledger.CordonSet{Cordoned: true},
		ledger.HealthChanged{UUID: "GPU-a", Health: devices.Probation},
	}
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
		"another version":             {[]byte{2, 10, 0}, "version 2"},
		"an unknown kind":             {[]byte{1, 99}, "kind 99"},
		"a padded number":             {[]byte{1, 3, 0x80, 0x00}, "padded"},
		"a text longer than the rest": {[]byte{1, 10, 200, 1, 'x'}, "length of a text"},
		"a bool of two":               {[]byte{1, 12, 2}, "neither 0 nor 1"},
		"an unknown health":           {[]byte{1, 13, 1, 'x', 9}, "health 9"},
		"unknown flags of a grant":    {[]byte{1, 4, 0xf0, 0, 1}, "flags"},
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
		draw := func(name string) (resource.TxID, []ledger.Member) {
			var members []ledger.Member
			for i := range rapid.IntRange(1, 2).Draw(t, name+" members") {
				a := resource.Assignment{}
				for id := range rapid.IntRange(0, 2).Draw(t, "cpus") {
					a.CPUs = append(a.CPUs, resource.CPUGrant{ID: id, Milli: resource.Millicores(rapid.IntRange(1, 2).Draw(t, "milli"))})
				}
				for at := range rapid.IntRange(0, 2).Draw(t, "gpus") {
					a.GPUs = append(a.GPUs, resource.GPUGrant{Index: at, UUID: "x", Milli: 1})
				}
				members = append(members, ledger.Member{Index: i, Assignment: a})
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

// FuzzParseEvents: no bytes make the parser panic, and it takes nothing but
// what AppendEvents writes.
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
		if again := ledger.AppendEvents(nil, events); !bytes.Equal(again, b) {
			t.Fatalf("%x reads as %+v, which is written %x", b, events, again)
		}
	})
}

// FuzzReplay: whatever events a journal holds, replaying them ends in a
// consistent ledger or an error, never in a panic or a double grant.
func FuzzReplay(f *testing.F) {
	host := machine(f, 8, 4)
	l := ready(f, host)
	for i := range 3 {
		do(f, l, boot(1), gpus(resource.TxID(fmt.Sprint(i)), 1, 1))
	}
	do(f, l, boot(2), ledger.Commit{Tx: "0", Epoch: 1, Revision: 6})
	waiting := gpus("w", 1, 2)
	waiting.After = []resource.TxID{"0"}
	do(f, l, boot(2), waiting)
	snapshot := l.SnapshotEvents()
	f.Add(ledger.AppendEvents(nil, snapshot))
	f.Add(ledger.AppendEvents(nil, append(snapshot, ledger.Buried{Tx: "0"}, ledger.Promoted{Tx: "w"}, ledger.Dropped{Tx: "1"})))
	f.Add(ledger.AppendEvents(nil, samples()))
	f.Fuzz(func(t *testing.T, b []byte) {
		l := ledger.New(host)
		if err := l.Replay([][]byte{b}); err != nil {
			return
		}
		if err := l.Check(); err != nil {
			t.Fatal(err)
		}
		do(t, l, boot(9), ledger.Start{Incarnation: incarnation("fuzz", "fuzz")})
		do(t, l, boot(9), ledger.Registered{Revision: 1})
	})
}
