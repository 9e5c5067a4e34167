package logfile_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/coordinator/decisions"
	"github.com/musterd/muster/coordinator/decisions/logfile"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/queue"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/resource"
)

func open(t *testing.T, c logfile.Config) *logfile.Log {
	t.Helper()
	c.Logger = slog.New(slog.DiscardHandler)
	l, err := logfile.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// leader places unit after unit behind one that waits.
type leader struct {
	*decisions.Tracker
	room  *sched.Room
	epoch resource.Epoch
	done  int
}

func newLeader(l *logfile.Log, epoch resource.Epoch) *leader {
	leads := &leader{room: sched.NewRoom(), epoch: epoch}
	leads.Tracker = decisions.NewTracker(epoch, leads.room, leads, l.Append)
	leads.offer(queue.Key{Priority: 1, Path: "ns/alloc/big/0"}, 8)
	leads.room.Pass(1, leads)
	return leads
}

func (l *leader) offer(k queue.Key, gpus int) {
	demand := place.Unit{Members: 1, Request: resource.Request{GPUs: gpus}}
	l.room.Offer(k, sched.Traits{Demand: fmt.Sprint(gpus), Namespace: "ns", Priority: k.Priority}, &demand)
}

func (l *leader) place(n int) {
	for range n {
		l.offer(queue.Key{Counter: uint64(l.done + 1), Path: fmt.Sprintf("ns/alloc/u%d/0", l.done+1)}, 1)
		l.room.Pass(1, l)
	}
}

// Try is sched.Trial's: there is room for all but the first.
func (l *leader) Try(k queue.Key, _ bool) *sched.Evidence {
	if k.Priority > 0 {
		return &sched.Evidence{Code: sched.NoPlace}
	}
	l.done++
	tx := resource.TxID(fmt.Sprintf("%d.%d", l.epoch, l.done))
	l.Placed(decisions.Placement{Key: k, Tx: tx, Kind: decisions.Plain})
	l.room.Remove(k)
	l.Committed(tx, resource.Revision(l.done))
	return nil
}

// Wait is sched.Trial's.
func (l *leader) Wait(string, *sched.Evidence) {}

// Held is decisions.Words'.
func (l *leader) Held(string) decisions.Evidence { return decisions.Evidence{} }

// Asleep is decisions.Words'.
func (l *leader) Asleep(*sched.Class, *sched.Evidence) (string, func() string) {
	return "", func() string { return "want 8, have 1" }
}

// fill leads until there are so many files, and closes the log. It places no
// more before the disk has shown some of it, so that nothing is lost for want of
// room. It returns how many units were placed.
func fill(t *testing.T, l *logfile.Log, dir string, epoch resource.Epoch, want int) int {
	t.Helper()
	leads := newLeader(l, epoch)
	shown := int64(-1)
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		files, err := logfile.Files(dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(files) >= want {
			break
		}
		if size := sizeOf(t, files); size > shown {
			shown = size
			leads.place(20)
		}
		if time.Now().After(deadline) {
			t.Fatalf("there are %d files after %d placements, want %d", len(files), leads.done, want)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return leads.done
}

func sizeOf(t *testing.T, files []string) int64 {
	t.Helper()
	size := int64(0)
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	return size
}

func report(t *testing.T, paths ...string) *decisions.Report {
	t.Helper()
	c := decisions.NewChecker()
	if err := logfile.Replay(c, paths...); err != nil {
		t.Fatal(err)
	}
	return c.Report()
}

func TestTermsAndFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "decisions")
	placed := fill(t, open(t, logfile.Config{Dir: dir, MaxBytes: 20_000}), dir, 7, 3)
	l := open(t, logfile.Config{Dir: dir, MaxBytes: 20_000})
	newLeader(l, 9).place(5)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	r := report(t, dir)
	if !r.OK() || len(r.Notes) != 0 || r.Lost != 0 {
		t.Fatalf("violations %v, notes %v, lost %d", r.Violations, r.Notes, r.Lost)
	}
	if r.Terms != 2 || r.Commits != placed+5 || r.Verified != placed+5 || r.Files < 4 {
		t.Errorf("%d terms, %d commits, %d verified in %d files; want 2, %d twice, in 4 or more", r.Terms, r.Commits, r.Verified, r.Files, placed+5)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory has mode %v (%v), want 0700", info.Mode(), err)
	}
}

func TestOldFilesGo(t *testing.T) {
	dir := t.TempDir()
	for epoch := range resource.Epoch(6) {
		l := open(t, logfile.Config{Dir: dir, Files: 3})
		newLeader(l, epoch+1).place(2)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	files, err := logfile.Files(dir)
	if err != nil || len(files) != 3 || filepath.Base(files[2]) != "0000000000000006-000001.jsonl" {
		t.Errorf("files %v (%v), want the last three", files, err)
	}
	if r := report(t, dir); !r.OK() || r.Terms != 3 {
		t.Errorf("report %+v", r)
	}
}

func TestFileWithoutItsBeginningIsVerifiedFromTheNextState(t *testing.T) {
	dir := t.TempDir()
	fill(t, open(t, logfile.Config{Dir: dir, MaxBytes: 20_000}), dir, 7, 3)
	files, err := logfile.Files(dir)
	if err != nil {
		t.Fatal(err)
	}
	if r := report(t, files[1]); !r.OK() || r.Verified != r.Placements || r.Placements == 0 || len(r.Notes) != 1 {
		t.Errorf("report %+v", r)
	}
}

func TestTornTailIsTolerated(t *testing.T) {
	dir := t.TempDir()
	l := open(t, logfile.Config{Dir: dir})
	newLeader(l, 7).place(1)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := logfile.Files(dir)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	for cut := range len(whole) {
		if err := os.WriteFile(files[0], whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		r := report(t, dir)
		if torn := cut > 0 && whole[cut-1] != '\n'; !r.OK() || (len(r.Notes) > 0) != torn {
			t.Fatalf("cut at %d of %d: violations %v, notes %v", cut, len(whole), r.Violations, r.Notes)
		}
	}
}

func TestDiskThatRefusesLeavesAGap(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "decisions")
	l := open(t, logfile.Config{Dir: dir})
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	newLeader(l, 7).place(100) // nothing of it is written: there is no directory
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Fatal("the directory is there again")
	}
	if _, err := logfile.Open(logfile.Config{Dir: filepath.Join(os.DevNull, "x")}); err == nil {
		t.Error("a directory that cannot be is no error")
	}
}

func TestLeaderThatIsTooFastLosesRecordsOnly(t *testing.T) {
	dir := t.TempDir()
	l := open(t, logfile.Config{Dir: dir})
	newLeader(l, 7).place(10_000)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	r := report(t, dir)
	if !r.OK() {
		t.Fatalf("violations %v", r.Violations[0])
	}
	if r.Records == 0 || r.Verified > r.Placements {
		t.Errorf("report %+v", r)
	}
}

func TestOtherFilesAreRefused(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "other.jsonl")
	if err := os.WriteFile(name, fmt.Appendf(nil, "{\"format\":\"muster-decisions\",\"version\":%d}\n{}\n", decisions.Version+1), 0o600); err != nil {
		t.Fatal(err)
	}
	r := report(t, dir)
	if len(r.Violations) != 2 || !bytes.Contains([]byte(r.Violations[0].Detail), fmt.Appendf(nil, "version %d", decisions.Version+1)) {
		t.Errorf("violations %v, want one that names version %d", r.Violations, decisions.Version+1)
	}
	if err := logfile.Replay(decisions.NewChecker(), t.TempDir()); err == nil {
		t.Error("an empty directory is no error")
	}
}

// TestFilesOfARestoredStoreComeLast: its epochs are lower than those of before.
func TestFilesOfARestoredStoreComeLast(t *testing.T) {
	dir := t.TempDir()
	want := []string{
		"0000000000000007-000001.jsonl", "0000000000000012-000001.jsonl", "r000001-0000000000000009-000001.jsonl",
		"r000001-0000000000000009-000002.jsonl", "r000001-0000000000000020-000001.jsonl", "r000002-0000000000000009-000001.jsonl",
	}
	for _, epoch := range []resource.Epoch{7, 0x12, 9, 9, 0x20, 9} {
		l := open(t, logfile.Config{Dir: dir})
		newLeader(l, epoch).place(1)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	files, err := logfile.Files(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i := range files {
		files[i] = filepath.Base(files[i])
	}
	if diff := cmp.Diff(want, files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}
