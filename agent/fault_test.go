package agent_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/musterd/muster/agent"
	"github.com/musterd/muster/agent/journal"
	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/rpcauth"
)

// faults is a folder whose disk can be made to fail.
type faults struct {
	dir        string
	sync, full atomic.Bool
}

func (f *faults) Open(name string, create bool) (journal.File, error) {
	flags := os.O_RDWR
	if create {
		flags |= os.O_CREATE | os.O_TRUNC
	}
	file, err := os.OpenFile(filepath.Join(f.dir, name), flags, 0o600)
	if err != nil {
		return nil, err
	}
	return &faultyFile{file, f}, nil
}

func (f *faults) Rename(from, to string) error {
	return os.Rename(filepath.Join(f.dir, from), filepath.Join(f.dir, to))
}

func (f *faults) SyncDir() error { return nil }

type faultyFile struct {
	*os.File
	faults *faults
}

func (f *faultyFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (f *faultyFile) Sync() error {
	if f.faults.sync.Load() {
		return &fs.PathError{Op: "sync", Path: f.Name(), Err: syscall.EIO}
	}
	return nil
}

func (f *faultyFile) Allocate(end int64) error {
	if f.faults.full.Load() {
		return syscall.ENOSPC
	}
	size, err := f.Size()
	if err != nil || size >= end {
		return err
	}
	return f.Truncate(end)
}

func newFaultyRig(t *testing.T) (*rig, *faults) {
	r := newRig(t)
	f := &faults{dir: filepath.Join(r.dir, "journal")}
	r.fs = f
	return r, f
}

func TestAFailedSyncEndsTheAgentUnansweredAndItReturnsAsAnother(t *testing.T) {
	r, disk := newFaultyRig(t)
	r.start()
	l := r.lead(1)
	r.grant(l, "a", 2)
	before := r.agent.Incarnation()
	disk.sync.Store(true)
	l.send(&musterv1.Release{Tx: "a", Epoch: 1})
	r.store.put("a", musterv1.Record_RELEASING, nil)
	select {
	case err := <-r.ended:
		if !errors.Is(err, journal.ErrPoisoned) || !errors.Is(err, syscall.EIO) {
			t.Fatalf("ended with %v", err)
		}
	case <-time.After(2 * patient):
		t.Fatal("the agent goes on")
	}
	for len(l.messages) > 0 {
		if m := <-l.messages; m.GetReply().GetState() == musterv1.Reply_FREED {
			t.Errorf("answered %v without its fsync", m)
		}
	}
	disk.sync.Store(false)
	r.start()
	if r.agent.Incarnation().JournalID == before.JournalID {
		t.Error("came back as the same incarnation")
	}
	l = r.lead(1)
	l.send(&musterv1.Release{Tx: "a", Epoch: 1})
	mustBe(t, l.outcome("a"), musterv1.Reply_FREED)
}

func TestAFullDiskRefusesPromisesAndReleasesGoOn(t *testing.T) {
	r, disk := newFaultyRig(t)
	r.start()
	l := r.lead(1)
	r.grant(l, "a", 2)
	disk.full.Store(true)
	// The space that was allocated ahead is used up first.
	var no *musterv1.Reply
	for i := 0; no == nil; i++ {
		if i > 100_000 {
			t.Fatal("the disk never fills")
		}
		if reply := l.reserve("b", 1, time.Minute); reply.GetState() == musterv1.Reply_NO {
			no = reply
			break
		}
		l.send(&musterv1.Abort{Tx: "b", Epoch: 1})
		l.reply("b")
	}
	if no.GetReasons()[0].GetCode() != "DiskFull" {
		t.Errorf("reasons %v", no.GetReasons())
	}
	l.send(&musterv1.Release{Tx: "a", Epoch: 1})
	mustBe(t, l.outcome("a"), musterv1.Reply_FREED)
	disk.full.Store(false)
	mustBe(t, l.reserve("c", 8, time.Minute), musterv1.Reply_RESERVED)
}

func TestACorruptJournalIsNamedAndMovedAsideOnRequest(t *testing.T) {
	r := newRig(t)
	r.start()
	l := r.lead(1)
	held := r.grant(l, "a", 3)
	for range 10 {
		l.reserve("b", 1, time.Minute)
		l.send(&musterv1.Abort{Tx: "b", Epoch: 1})
		l.reply("b")
	}
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(r.dir, "journal", "journal")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[64+20] ^= 0xff
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = agent.New(r.config())
	for _, want := range []string{path, "offset 64", "--new-journal"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Fatalf("got %v, want %q", err, want)
		}
	}
	r.tune = func(c *agent.Config, _ *agent.Deps) { c.NewJournal = true }
	r.start()
	l = r.lead(1)
	again := l.reserve("a", 3, time.Minute)
	mustBe(t, again, musterv1.Reply_HELD)
	if strings.Join(uuids(again), " ") != strings.Join(uuids(held), " ") {
		t.Errorf("adopted %v, held %v", uuids(again), uuids(held))
	}
	if _, err := os.Stat(path + ".corrupt-1"); err != nil {
		t.Error(err)
	}
}

func TestAJournalThatIsMostlyHistoryIsCompacted(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 4 MiB of journal")
	}
	r := newRig(t)
	r.start()
	l := r.lead(1)
	held := r.grant(l, "held", 2)
	size := func() int64 {
		info, err := os.Stat(filepath.Join(r.dir, "journal", "journal"))
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	largest := int64(0)
	m := &musterv1.MemberRequest{Request: &musterv1.Request{Cpu: 64_000}}
	for i := 0; ; i++ {
		if i > 50_000 {
			t.Fatalf("never compacted, %d bytes", largest)
		}
		l.send(&musterv1.Reserve{Tx: "b", Epoch: 1, TtlMillis: 60000, Members: []*musterv1.MemberRequest{m}})
		l.reply("b")
		l.send(&musterv1.Abort{Tx: "b", Epoch: 1})
		l.reply("b")
		if now := size(); now < largest {
			break
		} else {
			largest = now
		}
	}
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	r.start()
	again := r.lead(1).reserve("held", 2, time.Minute)
	mustBe(t, again, musterv1.Reply_HELD)
	if strings.Join(uuids(again), " ") != strings.Join(uuids(held), " ") {
		t.Errorf("after compaction %v, before %v", uuids(again), uuids(held))
	}
}

func TestASecondAgentOnTheFolderIsRefused(t *testing.T) {
	r := newRig(t)
	r.start()
	_, err := agent.New(r.config())
	if err == nil || !strings.Contains(err.Error(), journal.ErrLocked.Error()) {
		t.Errorf("got %v", err)
	}
}

func TestBadArgumentsAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*agent.Config, *agent.Deps)
		want   string
	}{
		"no cluster":             {func(c *agent.Config, _ *agent.Deps) { c.Cluster = "" }, `cluster ""`},
		"no folder":              {func(c *agent.Config, _ *agent.Deps) { c.DataDir = "" }, "no data folder"},
		"no token":               {func(_ *agent.Config, d *agent.Deps) { d.Token = rpcauth.Token{} }, "no cluster token"},
		"no boot id":             {func(_ *agent.Config, d *agent.Deps) { d.Discovered.BootID = "" }, "boot id"},
		"a reserved CPU too far": {func(c *agent.Config, _ *agent.Deps) { c.ReservedCPUs.Add(4000) }, "reserved cpu 4000"},
		"too much reserved":      {func(c *agent.Config, _ *agent.Deps) { c.ReservedMemory = 1 << 60 }, "reserved memory"},
		"a public address":       {func(c *agent.Config, d *agent.Deps) { d.Listener = nil; c.Listen = "0.0.0.0:0" }, `listen: address "0.0.0.0:0"`},
		"metrics nobody gathers": {func(c *agent.Config, _ *agent.Deps) { c.MetricsListen = "127.0.0.1:0" }, "nothing gathers metrics"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.tune = c.change
			if _, err := agent.New(r.config()); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
