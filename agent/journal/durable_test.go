package journal

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// powerCuts is the number of power cuts that a test tries: each keeps another
// mixture of the pages that were not synced.
const powerCuts = 200

// The other tests run on a file layer in memory. This one holds that the layer
// of production reaches the kernel: a sync that did nothing would succeed.
func TestSyncsOfTheRealFileLayerReachTheKernel(t *testing.T) {
	dir := t.TempDir()
	file, err := dirFS(dir).Open("f", true)
	must(t, err)
	must(t, file.Sync())
	must(t, dirFS(dir).SyncDir())
	must(t, file.Close())
	if err := file.Sync(); !errors.Is(err, unix.EBADF) && !errors.Is(err, os.ErrClosed) {
		t.Errorf("sync of a closed file: %v, want an error", err)
	}
	if err := dirFS(filepath.Join(dir, "gone")).SyncDir(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("sync of a folder that is gone: %v, want fs.ErrNotExist", err)
	}
}

// A process may die between its append and its sync. The next process reads the
// record from the page cache and acts on it, so Open has to make it durable.
func TestRecordsThatOpenReturnsSurviveAPowerCut(t *testing.T) {
	for seed := range uint64(powerCuts) {
		m := newMemFS()
		first, _ := mustOpen(t, t.TempDir(), Options{FS: m})
		must(t, first.Append([]byte("tombstone"))) // and the process dies: no sync, no Close
		_, read := mustOpen(t, t.TempDir(), Options{FS: m})
		if got := texts(read.Payloads); len(got) != 1 {
			t.Fatalf("the next process reads %q", got)
		}
		_, after := mustOpen(t, t.TempDir(), Options{FS: m.crash(rand.New(rand.NewPCG(seed, 1)))})
		if got := texts(after.Payloads); len(got) != 1 || got[0] != "tombstone" {
			t.Fatalf("seed %d: after the power cut %q, want the record that Open had returned", seed, got)
		}
	}
}

// Condemn that returned nil holds over a power cut: the next Open takes a new
// identifier, whichever pages the disk kept.
func TestDoubtSurvivesAPowerCut(t *testing.T) {
	for seed := range uint64(powerCuts) {
		m := newMemFS()
		j, first := mustOpen(t, t.TempDir(), Options{FS: m})
		must(t, j.Append([]byte("kept")))
		must(t, j.Sync())
		m.fail["write"], m.fail["open"] = unix.EIO, unix.EIO // the first try to mark it fails as well
		if err := j.Append([]byte("lost")); !errors.Is(err, ErrPoisoned) {
			t.Fatal(err)
		}
		clear(m.fail)
		must(t, j.Condemn())
		_, after := mustOpen(t, t.TempDir(), Options{FS: m.crash(rand.New(rand.NewPCG(seed, 2)))})
		if after.JournalID == first.JournalID || !after.Doubtful {
			t.Fatalf("seed %d: after the power cut identifier %s, doubtful %v; want a new identifier", seed, after.JournalID, after.Doubtful)
		}
	}
}

func TestAWriteThatFailsAfterItsLastByteIsAFailure(t *testing.T) {
	m := newMemFS()
	j, _ := mustOpen(t, t.TempDir(), Options{FS: m})
	m.fail["write"], m.short = unix.EIO, 1<<20
	if err := j.Append([]byte("written")); !errors.Is(err, ErrPoisoned) {
		t.Errorf("append: %v, want ErrPoisoned", err)
	}
}

func TestAReleaseMayUseTheLastByteOfTheHeadroom(t *testing.T) {
	m := newMemFS()
	j, _ := mustOpen(t, t.TempDir(), Options{FS: m})
	m.room = 0
	rest := j.allocated - j.tail - recordHeader
	must(t, j.AppendEssential(make([]byte, rest)))
	if err := j.AppendEssential([]byte("x")); !errors.Is(err, ErrDiskFull) {
		t.Errorf("append behind the last byte: %v, want ErrDiskFull", err)
	}
}

// Sequence numbers go on under a fresh identifier, so that a record of the file
// before is never taken for one of this file by its number.
func TestSequenceNumbersGoOnUnderAFreshIdentifier(t *testing.T) {
	m := newMemFS()
	j, _ := mustOpen(t, t.TempDir(), Options{FS: m})
	must(t, j.Append([]byte("one"), []byte("two")))
	must(t, j.Condemn())
	again, r := mustOpen(t, t.TempDir(), Options{FS: m})
	if !r.Doubtful || again.sequence <= j.sequence {
		t.Errorf("sequence %d after %d, doubtful %v", again.sequence, j.sequence, r.Doubtful)
	}
}

// TestCloseMakesRecordsDurable: after a clean stop of the agent a power cut loses no record. A
// failed sync is an error of Close, and the next Open takes a new identifier.
func TestCloseMakesRecordsDurable(t *testing.T) {
	for seed := range uint64(powerCuts) {
		m := newMemFS()
		j, _ := mustOpen(t, t.TempDir(), Options{FS: m})
		must(t, j.Append([]byte("one"), []byte("two")))
		must(t, j.Close())
		_, after := mustOpen(t, t.TempDir(), Options{FS: m.crash(rand.New(rand.NewPCG(seed, 2)))})
		if got := texts(after.Payloads); len(got) != 2 || got[1] != "two" {
			t.Fatalf("seed %d: after Close and a power cut %q are left, want both records", seed, got)
		}
	}
	m := newMemFS()
	dir := t.TempDir()
	j, _ := mustOpen(t, dir, Options{FS: m})
	id := j.ID()
	must(t, j.Append([]byte("one")))
	m.fail["sync"] = unix.EIO
	if err := j.Close(); !errors.Is(err, unix.EIO) {
		t.Errorf("Close with a sync that fails: %v, want the failure", err)
	}
	delete(m.fail, "sync")
	if next, _ := mustOpen(t, dir, Options{FS: m}); next.ID() == id {
		t.Error("after a sync that failed in Close the identifier is the same")
	}
	must(t, j.Close()) // again
}

// TestNoSequenceNumberIsUsedTwice: neither a rewrite, nor a restart after the rewrite, nor a second
// rewrite begins at a number of before, so no record of the old file is a record of
// the new file.
func TestNoSequenceNumberIsUsedTwice(t *testing.T) {
	m := newMemFS()
	j, _ := mustOpen(t, t.TempDir(), Options{FS: m})
	used := map[uint64]string{}
	last := uint64(0)
	note := func(what string, records int) {
		t.Helper()
		for n := j.sequence - uint64(records) + 1; n <= j.sequence; n++ {
			if was := used[n]; was != "" || n <= last {
				t.Errorf("%s uses number %d, which %q has used; the last was %d", what, n, was, last)
			}
			used[n], last = what, n
		}
	}
	for round := range 3 {
		must(t, j.Append([]byte("a"), []byte("b"), []byte("c")))
		note("an append", 3)
		must(t, j.Rewrite([][]byte{[]byte("all")}))
		note("a rewrite", 1)
		must(t, j.Rewrite(nil))
		note("an empty rewrite", 0)
		must(t, j.AppendEssential([]byte("end")))
		note("a release", 1)
		if round == 1 { // as on disk
			must(t, j.Close())
			var read *Recovery
			j, read = mustOpen(t, t.TempDir(), Options{FS: m})
			if j.sequence != last || len(read.Payloads) != 1 {
				t.Fatalf("after a restart the last number is %d with %d records, want %d with 1", j.sequence, len(read.Payloads), last)
			}
		}
	}
}
