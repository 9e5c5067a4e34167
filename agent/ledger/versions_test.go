package ledger_test

import (
	"encoding/hex"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/agent/ledger"
	"github.com/musterd/muster/devices"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// TestJournalsOfEarlierVersionsReplay reads the events of earlier versions of
// the codec: the journals of some stories of testdata/transcript. The bytes are
// as they were recorded and are never rewritten.
func TestJournalsOfEarlierVersionsReplay(t *testing.T) {
	for _, version := range []string{"testdata/version1", "testdata/version2", "testdata/version3"} {
		datadriven.Walk(t, version, replayRecorded)
	}
}

func replayRecorded(t *testing.T, path string) {
	datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
		s := &story{t: t, host: machine(t, 8, 4)}
		s.ledger = ledger.New(s.host)
		for line := range strings.Lines(d.Input) {
			payload, err := hex.DecodeString(strings.TrimSpace(line))
			if err != nil {
				t.Fatal(err)
			}
			if err := s.ledger.Replay([][]byte{payload}); err != nil {
				t.Fatal(err)
			}
			if err := s.ledger.Check(); err != nil {
				t.Fatal(err)
			}
		}
		rewritten := ledger.New(s.host)
		if err := rewritten.Replay([][]byte{ledger.AppendEvents(nil, s.ledger.SnapshotEvents())}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(s.ledger.Snapshot(), rewritten.Snapshot(), cmp.Comparer(sameFree), cmp.Comparer(sameHost)); diff != "" {
			t.Errorf("rewritten in this version: %s", diff)
		}
		return s.grants()
	})
}

func TestEveryEventOfEarlierVersionsReadsAsItWasWritten(t *testing.T) {
	for version, want := range map[string][]ledger.Event{
		"version1": version1Samples(), "version2": version2Samples(), "version3": version3Samples(),
		"version4": version4Samples(),
	} {
		t.Run(version, func(t *testing.T) { readRecorded(t, "testdata/"+version+"-events.hex", want) })
	}
}

func readRecorded(t *testing.T, path string, want []ledger.Event) {
	recorded, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Fields(string(recorded))
	if len(lines) != len(want) {
		t.Fatalf("%s has %d events, want %d: each event of the version once", path, len(lines), len(want))
	}
	for i, line := range lines {
		b, err := hex.DecodeString(line)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ledger.ParseEvent(b)
		if err != nil {
			t.Fatalf("%T: %v", want[i], err)
		}
		if diff := cmp.Diff(want[i], got); diff != "" {
			t.Errorf("%T: %s", want[i], diff)
		}
	}
}

// version1Samples has the events of version 1: every kind of event once, and
// grants of every shape.
func version1Samples() []ledger.Event {
	member := ledger.Holding{
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
		ledger.Granted{Grant: ledger.Grant{Tx: "t", State: grant.Tombstone}},
		ledger.Granted{Grant: ledger.Grant{
			Tx: "t", Unit: "u", Epoch: 4, Origin: ledger.OriginOrphan, State: grant.Waiting, Members: []ledger.Holding{{}, member},
			Incarnation: incarnation("other", "boot"), Since: boot(1), Deadline: boot(2.5), TTL: time.Minute, Victims: []resource.TxID{"v1", "v2"},
		}},
		ledger.Granted{Grant: ledger.Grant{
			Tx: "t", State: grant.Reserved, Members: []ledger.Holding{member}, Revision: 9, Grace: time.Second, WasWaiting: true, By: "p", Reason: "why not",
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

// TestNoVersionHasEventsOfALaterOne: an event that a version did not have is refused, and
// not guessed.
func TestNoVersionHasEventsOfALaterOne(t *testing.T) {
	for first, later := range map[byte]ledger.Event{5: ledger.KubeletPoolSet{Add: []string{"GPU-a"}}, 6: ledger.Marked{Term: "m"}} {
		event := ledger.AppendEvent(nil, later)
		for version := byte(1); version < first; version++ {
			event[0] = version
			if got, err := ledger.ParseEvent(event); err == nil {
				t.Errorf("version %d has the event %v", version, got)
			}
		}
	}
}
