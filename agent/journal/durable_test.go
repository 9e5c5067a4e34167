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
