package agent_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	musterv1 "github.com/musterd/muster/proto/muster/v1"
)

func TestARestartKeepsWhatIsHeldUnderTheSameIncarnation(t *testing.T) {
	r := newRig(t)
	r.start()
	l := r.lead(1)
	held := r.grant(l, "a", 3)
	mustBe(t, l.reserve("b", 2, time.Minute), musterv1.Reply_RESERVED)
	before := r.agent.Incarnation()
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(r.dir, "assignments")); err != nil {
		t.Fatal(err)
	}
	r.start()
	if r.agent.Incarnation() != before {
		t.Errorf("incarnation %s became %s", before, r.agent.Incarnation())
	}
	if d := cmp.Diff([]string{"a.json"}, r.files(".json")); d != "" {
		t.Error(d)
	}
	l = r.lead(1)
	again := l.reserve("a", 3, time.Minute)
	mustBe(t, again, musterv1.Reply_HELD)
	if d := cmp.Diff(uuids(held), uuids(again)); d != "" {
		t.Error(d)
	}
	// A grant that was only promised is fenced after a restart.
	eventually(t, "b is fenced", func() bool { return r.store.record("b") == musterv1.Record_ABORTED })
	eventually(t, "its GPUs are free", func() bool { return l.reserve("c", 5, time.Minute).GetState() == musterv1.Reply_RESERVED })
}

func TestATornTailTakesANewIncarnationAndAdopts(t *testing.T) {
	r := newRig(t)
	r.start()
	l := r.lead(1)
	held := r.grant(l, "a", 3)
	mustBe(t, l.reserve("b", 2, time.Minute), musterv1.Reply_RESERVED)
	before := r.agent.Incarnation()
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	tear(t, filepath.Join(r.dir, "journal", "journal"))
	r.start()
	if now := r.agent.Incarnation(); now.JournalID == before.JournalID || now.BootID != before.BootID {
		t.Errorf("incarnation %s after a cut, %s before", now, before)
	}
	l = r.lead(1)
	again := l.reserve("a", 3, time.Minute)
	mustBe(t, again, musterv1.Reply_HELD)
	if d := cmp.Diff(uuids(held), uuids(again)); d != "" {
		t.Error(d)
	}
	// The vote for b can no longer pass a compare: it is dropped unfenced.
	mustBe(t, l.reserve("c", 5, time.Minute), musterv1.Reply_RESERVED)
	if state := r.store.record("b"); state != musterv1.Record_STATE_UNSPECIFIED {
		t.Errorf("b is %s in the store", state)
	}
}

// tear breaks the last record of a journal, as a write cut short does.
func tear(t *testing.T, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	end := len(data)
	for end > 0 && data[end-1] == 0 {
		end--
	}
	data[end-1] ^= 0xff
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestAWipedDiskAdoptsWhatTheStoreSays(t *testing.T) {
	r := newRig(t)
	r.start()
	l := r.lead(1)
	held := r.grant(l, "a", 3)
	gone := r.grant(l, "b", 2)
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	r.store.put("b", musterv1.Record_RELEASING, gone.GetMembers())
	if err := os.RemoveAll(r.dir); err != nil {
		t.Fatal(err)
	}
	r.start()
	l = r.lead(2)
	again := l.reserve("a", 3, time.Minute)
	mustBe(t, again, musterv1.Reply_HELD)
	if d := cmp.Diff(uuids(held), uuids(again)); d != "" {
		t.Error(d)
	}
	l.send(&musterv1.Release{Tx: "b", Epoch: 2})
	mustBe(t, l.outcome("b"), musterv1.Reply_FREED)
	r.awaitFiles(".json", "a.json")
}
