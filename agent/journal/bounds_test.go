package journal

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// TestAFileIsFilledToItsLastByte: the append up to MaxFile is written, a byte more is
// refused, and a refused append takes no number.
func TestAFileIsFilledToItsLastByte(t *testing.T) {
	for name, c := range map[string]struct {
		beyond  int64
		refused bool
	}{
		"ends at the bound":    {0, false},
		"ends one byte beyond": {1, true},
	} {
		t.Run(name, func(t *testing.T) {
			j, _ := mustOpen(t, t.TempDir(), Options{}) // the file has a hole, no bytes
			j.tail, j.allocated = MaxFile-2*(recordHeader+1)+c.beyond, MaxFile+1<<30
			was := j.tail
			err := j.Append([]byte("x"), []byte("y"))
			if (err != nil) != c.refused || errors.Is(err, ErrPoisoned) {
				t.Fatalf("append: %v, want refused %t", err, c.refused)
			}
			if took := j.sequence; c.refused && (took != 0 || j.tail != was) || !c.refused && took != 2 {
				t.Errorf("%d numbers are used, the tail went from %d to %d", took, was, j.tail)
			}
		})
	}
}

// TestTheLargestRecordIsReadBack: a payload of MaxPayload bytes.
func TestTheLargestRecordIsReadBack(t *testing.T) {
	m := newMemFS()
	j, _ := mustOpen(t, t.TempDir(), Options{FS: m})
	must(t, j.Append(make([]byte, MaxPayload), []byte("next")))
	_, r := mustOpen(t, t.TempDir(), Options{FS: m})
	if len(r.Payloads) != 2 || len(r.Payloads[0]) != MaxPayload || r.Cut != 0 {
		t.Errorf("%d records, %d bytes cut; want both records", len(r.Payloads), r.Cut)
	}
}

// TestAJournalIsFullAsLongAsTheHeadroomIsMissing: just the missing bytes are enough, and a large
// refused append leaves no smaller append refused.
func TestAJournalIsFullAsLongAsTheHeadroomIsMissing(t *testing.T) {
	m := newMemFS()
	j, _ := mustOpen(t, t.TempDir(), Options{FS: m})
	size := func() int64 { return int64(len(m.names[fileName].now)) }
	m.room = 0
	if err := j.Append(make([]byte, MaxPayload)); !errors.Is(err, ErrDiskFull) || !j.Full() {
		t.Fatalf("an append beyond the room: full %t, %v", j.Full(), err)
	}
	if must(t, j.Reserve()); j.Full() {
		t.Error("the journal is full, though it has its headroom")
	}
	must(t, j.AppendEssential(make([]byte, 1000)))
	missing := j.tail + j.headroom - j.allocated
	for _, room := range []int64{missing - 1, missing} {
		m.room = room
		err := j.Reserve()
		if full := room < missing; errors.Is(err, ErrDiskFull) != full || j.Full() != full {
			t.Errorf("%d bytes are missing and there is room for %d: full %t, %v", missing, room, j.Full(), err)
		}
		if j.allocated != size() {
			t.Errorf("the journal counts on %d bytes, the file has %d", j.allocated, size())
		}
	}
	m.room = -1
	must(t, j.AppendEssential(make([]byte, 1000)))
	if must(t, j.Reserve()); j.allocated != size() || j.allocated <= j.tail+j.headroom {
		t.Errorf("the journal counts on %d bytes, the file has %d; want more than the %d needed", j.allocated, size(), j.tail+j.headroom)
	}
}

// TestADamagedJournalOpensOnAFullDisk: where there is room for the records alone, without the
// headroom, and not with a byte less.
func TestADamagedJournalOpensOnAFullDisk(t *testing.T) {
	for missing := range int64(2) {
		m, dir := newMemFS(), t.TempDir()
		j, first := mustOpen(t, dir, Options{FS: m})
		must(t, j.Append([]byte("kept")))
		must(t, j.Condemn())
		must(t, j.Close())
		m.room = headerSize + recordHeader + 4 - missing
		again, r, err := Open(dir, Options{FS: m, Headroom: testHeadroom})
		if missing > 0 {
			if !errors.Is(err, ErrDiskFull) {
				t.Errorf("with a byte too few Open returns %v", err)
			}
			continue
		}
		if must(t, err); r.JournalID == first.JournalID || len(r.Payloads) != 1 || !again.Full() {
			t.Fatalf("%d records under %s (was %s), full %t", len(r.Payloads), r.JournalID, first.JournalID, again.Full())
		}
		if err := again.AppendEssential([]byte("x")); !errors.Is(err, ErrDiskFull) {
			t.Errorf("an append without room: %v", err)
		}
		m.room = -1
		must(t, again.Append([]byte("next")))
		if again.Full() {
			t.Error("full after room came back")
		}
	}
}

// TestTheFirstFailureStays: the error of a poisoned journal is the first cause.
func TestTheFirstFailureStays(t *testing.T) {
	j, _ := mustOpen(t, t.TempDir(), Options{FS: newMemFS()})
	first := j.poison("write", unix.EIO)
	if second := j.poison("sync", unix.EROFS); !errors.Is(second, unix.EIO) || errors.Is(second, unix.EROFS) || second.Error() != first.Error() || j.Err().Error() != first.Error() {
		t.Errorf("after %q the second failure gives %q", first, second)
	}
}

// TestTheDoubtFileSurvivesAPowerCut: where the journal cannot be written.
func TestTheDoubtFileSurvivesAPowerCut(t *testing.T) {
	m := newMemFS()
	j, first := mustOpen(t, t.TempDir(), Options{FS: m})
	must(t, j.Append([]byte("kept")))
	must(t, j.Sync())
	m.fail["write"] = unix.EROFS
	must(t, j.Condemn())
	clear(m.fail)
	if _, r := mustOpen(t, t.TempDir(), Options{FS: m.crash(rand.New(rand.NewPCG(1, 1)))}); !r.Doubtful || r.JournalID == first.JournalID {
		t.Errorf("after the power cut: doubtful %t, identifier %s of before", r.Doubtful, r.JournalID)
	}
	m.fail["syncdir"], m.fail["write"] = unix.EIO, unix.EROFS
	if err := j.Condemn(); err == nil {
		t.Error("the mark counts as durable, though its name is not")
	}
}

// TestAFailedRewriteLeavesNoBytes: the half-made file gives the room back at each failure.
func TestAFailedRewriteLeavesNoBytes(t *testing.T) {
	for operation, cause := range map[string]error{"write": unix.ENOSPC, "sync": unix.ENOSPC} {
		m := newMemFS()
		j, _ := mustOpen(t, t.TempDir(), Options{FS: m})
		must(t, j.Append([]byte("a")))
		m.fail[operation] = cause
		if err := j.Rewrite([][]byte{[]byte("b")}); !errors.Is(err, ErrDiskFull) {
			t.Errorf("%s: %v", operation, err)
		}
		if b := m.names[newName]; b != nil && len(b.now) > 0 {
			t.Errorf("%s: %d bytes of the new file are left", operation, len(b.now))
		}
		clear(m.fail)
		must(t, j.Append([]byte("c"))) // the journal is unchanged
		if _, r := mustOpen(t, t.TempDir(), Options{FS: m}); len(r.Payloads) != 2 || string(r.Payloads[1]) != "c" {
			t.Errorf("%s: the journal has %q", operation, texts(r.Payloads))
		}
	}
}

// TestTheLossOfTheLastByteIsNoticed: of a file as Open made the file, and of a rewritten file.
func TestTheLossOfTheLastByteIsNoticed(t *testing.T) {
	for name, rewrite := range map[string]bool{"as made": false, "rewritten": true} {
		m, dir := newMemFS(), t.TempDir()
		j, first := mustOpen(t, dir, Options{FS: m})
		if rewrite {
			must(t, j.Rewrite([][]byte{[]byte("all")}))
		}
		must(t, j.Close())
		again, whole := mustOpen(t, dir, Options{FS: m})
		must(t, again.Close())
		b := m.names[fileName]
		b.now = b.now[:len(b.now)-1]
		_, r := mustOpen(t, dir, Options{FS: m})
		if whole.Short != 0 || r.Short != 1 || whole.JournalID != first.JournalID || r.JournalID == first.JournalID {
			t.Errorf("%s: the whole file lacks %d bytes, without its last byte %d; identifiers %s, %s, %s", name, whole.Short, r.Short, first.JournalID, whole.JournalID, r.JournalID)
		}
	}
}

// TestEachJournalMovedAsideIsKept: the second has another name than the first.
func TestEachJournalMovedAsideIsKept(t *testing.T) {
	m, dir := newMemFS(), t.TempDir()
	seen := map[string]bool{}
	for round := range 3 {
		j, r := mustOpen(t, dir, Options{FS: m, NewJournal: round > 0})
		if round > 0 && (seen[r.MovedTo] || len(m.names[filepath.Base(r.MovedTo)].now) == 0) {
			t.Errorf("round %d: moved to %s, after %v", round, r.MovedTo, seen)
		}
		seen[r.MovedTo] = true
		if j.Counter() != uint64(round+1) {
			t.Errorf("round %d: counter %d", round, j.Counter())
		}
		must(t, j.Close())
	}
}

// TestTheLockNamesItsOwner: alone, also after an owner with a longer number.
func TestTheLockNamesItsOwner(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "lock"), []byte("123456789012\n"), 0o600))
	j, _ := mustOpen(t, dir, Options{})
	defer j.Close()
	if text, err := os.ReadFile(filepath.Join(dir, "lock")); err != nil || string(text) != strconv.Itoa(os.Getpid())+"\n" {
		t.Errorf("the lock says %q, %v; want pid %d alone", text, err, os.Getpid())
	}
}

// TestAllocateOfTheRealFile: again, and less, is no change; more keeps the bytes.
func TestAllocateOfTheRealFile(t *testing.T) {
	file, err := dirFS(t.TempDir()).Open("f", true)
	must(t, err)
	defer file.Close()
	_, err = file.WriteAt([]byte("abc"), 0)
	must(t, err)
	want := int64(3)
	for _, end := range []int64{3, 10, 10, 9, 0, 4096} {
		must(t, file.Allocate(end))
		want = max(want, end)
		data, err := readAll(file)
		if err != nil || int64(len(data)) != want || string(data[:3]) != "abc" || !allZero(data[3:]) {
			t.Fatalf("after Allocate(%d) the file has %d bytes (%v), want %d", end, len(data), err, want)
		}
	}
}

// TestInterruptedCallsAreRepeated: until another result, and no longer.
func TestInterruptedCallsAreRepeated(t *testing.T) {
	for name, c := range map[string]struct {
		results []error
		want    error
	}{
		"success":              {[]error{nil}, nil},
		"success at last":      {[]error{unix.EINTR, unix.EINTR, nil}, nil},
		"a failure":            {[]error{unix.EIO}, unix.EIO},
		"a failure in the end": {[]error{unix.EINTR, unix.ENOSPC}, unix.ENOSPC},
	} {
		calls := 0
		err := retryInterrupted(func() error { calls++; return c.results[calls-1] })
		if !errors.Is(err, c.want) || calls != len(c.results) {
			t.Errorf("%s: %v after %d calls, want %v after %d", name, err, calls, c.want, len(c.results))
		}
	}
}
