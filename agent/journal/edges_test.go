package journal

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"testing"

	"golang.org/x/sys/unix"
)

// hooked is a folder in memory with a count of open files, without allocation on demand, and with
// failing renames of a name.
type hooked struct {
	*memFS
	open      int
	lazy      bool
	failsFrom string
}

type hookedFile struct {
	File
	fs *hooked
}

func (h *hooked) Open(name string, create bool) (File, error) {
	f, err := h.memFS.Open(name, create)
	if err != nil {
		return nil, err
	}
	h.open++
	return &hookedFile{f, h}, nil
}

func (h *hooked) Rename(from, to string) error {
	if from == h.failsFrom {
		return unix.EIO
	}
	return h.memFS.Rename(from, to)
}

func (f *hookedFile) Allocate(end int64) error {
	if f.fs.lazy {
		return nil
	}
	return f.File.Allocate(end)
}

func (f *hookedFile) Close() error { f.fs.open--; return f.File.Close() }

// TestHeadersOfOtherPrograms: reserved bytes, flags and versions are refused, each for itself.
func TestHeadersOfOtherPrograms(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(b []byte)
		good bool
	}{
		"as written":             {func([]byte) {}, true},
		"in doubt":               {func(b []byte) { b[12] = flagDoubt }, true},
		"an unknown flag":        {func(b []byte) { b[12] = 2 }, false},
		"a reserved byte":        {func(b []byte) { b[56] = 1 }, false},
		"the last reserved byte": {func(b []byte) { b[59] = 1 }, false},
		"version 1":              {func(b []byte) { b[8] = 1; clear(b[48:56]) }, true},
		"a size in version 1":    {func(b []byte) { b[8] = 1 }, false},
		"version 0":              {func(b []byte) { b[8] = 0; clear(b[48:56]) }, false},
		"a later version":        {func(b []byte) { b[8] = version + 1 }, false},
		"another magic":          {func(b []byte) { b[0] = 'm' }, false},
		"a header that is cut":   {nil, false},
	} {
		b := header{version: version, counter: 3, base: 7, size: 999}.encode()
		if c.edit == nil {
			b = b[:headerSize-1]
		} else {
			c.edit(b)
			binary.LittleEndian.PutUint32(b[60:], crc32.Checksum(b[:60], castagnoli()))
		}
		if h, err := decodeHeader(b); (err == nil) != c.good || c.good && (h.base != 7 || h.counter != 3) {
			t.Errorf("%s: %+v, %v", name, h, err)
		}
	}
}

// TestTheNextWholeRecord: behind damage a record counts whose number can be of this file, up to the
// last byte.
func TestTheNextWholeRecord(t *testing.T) {
	h := header{version: version, base: 5}
	for name, c := range map[string]struct {
		sequence uint64
		payload  string
		behind   int // bytes
		want     bool
	}{
		"the first number":               {6, "x", 0, true},
		"the number before":              {5, "x", 0, false},
		"the greatest number":            {5 + 3, "x", 0, true},
		"a number that no file can have": {5 + 4, "x", 0, false},
		"one byte at the end":            {6, "x", 0, true},
		"bytes behind":                   {6, "payload", 8, true},
	} {
		data := make([]byte, 33) // two records' worth of damage
		for i := range data {
			data[i] = 0xff
		}
		at := len(data)
		data = appendRecord(data, h.seed(), c.sequence, []byte(c.payload))
		data = append(data, make([]byte, c.behind)...)
		got, sequence, found := nextRecord(data, 0, h)
		if found != c.want || found && (got != at || sequence != c.sequence) {
			t.Errorf("%s: record %d at %d, found %t; want %d at %d, %t", name, sequence, got, found, c.sequence, at, c.want)
		}
	}
}

// TestAPageThatWasNotWritten: explains the damage of the record with the page, and of no record
// before the page.
func TestAPageThatWasNotWritten(t *testing.T) {
	const off = 100
	for name, c := range map[string]struct {
		length int
		zero   [2]int
		want   bool
	}{
		"the page behind the record":      {pageSize - off - recordHeader, [2]int{pageSize, 2 * pageSize}, false},
		"a page with the last byte":       {pageSize - off - recordHeader + 1, [2]int{pageSize, 2 * pageSize}, true},
		"from the record to the page end": {10, [2]int{off, pageSize}, true},
		"all but a byte":                  {10, [2]int{off, pageSize - 1}, false},
		"no page":                         {10, [2]int{0, 0}, false},
	} {
		data := make([]byte, 3*pageSize)
		for i := range data {
			data[i] = 0xff
		}
		binary.LittleEndian.PutUint32(data[off:], uint32(c.length))
		clear(data[c.zero[0]:c.zero[1]])
		if got := pageLost(data, off); got != c.want {
			t.Errorf("%s: lost %t, want %t", name, got, c.want)
		}
	}
}

// TestTheBoundsOfTheHeadroom: a headroom of a GiB is taken, a byte more refused.
func TestTheBoundsOfTheHeadroom(t *testing.T) {
	for room, good := range map[int64]bool{1: true, headroomMost: true, headroomMost + 1: false, -1: false} {
		j, _, err := Open(t.TempDir(), Options{FS: &hooked{memFS: newMemFS(), lazy: true}, Headroom: room})
		if (err == nil) != good {
			t.Errorf("a headroom of %d bytes: %v", room, err)
		}
		if err == nil {
			must(t, j.Close())
		}
	}
}

// TestTheDoubtOutlivesAFailedOpen: the doubt file goes once the new identifier is in force, and a
// doubt file in the way is a failure.
func TestTheDoubtOutlivesAFailedOpen(t *testing.T) {
	m, dir := &hooked{memFS: newMemFS()}, t.TempDir()
	j, first := mustOpen(t, dir, Options{FS: m})
	m.fail["write"] = unix.EROFS
	must(t, j.Condemn())
	must(t, j.Close())
	clear(m.fail)
	m.fail["allocate"] = unix.EIO
	if _, _, err := Open(dir, Options{FS: m, Headroom: testHeadroom}); !errors.Is(err, unix.EIO) {
		t.Fatal(err)
	}
	clear(m.fail)
	m.failsFrom = doubtName
	if _, _, err := Open(dir, Options{FS: m, Headroom: testHeadroom}); !errors.Is(err, unix.EIO) {
		t.Errorf("a doubt file that cannot be renamed: %v", err)
	}
	m.failsFrom = ""
	again, r := mustOpen(t, dir, Options{FS: m})
	if !r.Doubtful || r.JournalID == first.JournalID {
		t.Errorf("after a failed Open: doubtful %t, the identifier is of before: %t", r.Doubtful, r.JournalID == first.JournalID)
	}
	must(t, again.Close())
	if m.open != 0 {
		t.Errorf("%d files are open after Close", m.open)
	}
}

// TestABadRewriteChangesNoByte: a payload out of range is the fault of the caller, and the journal
// goes on with a single open file.
func TestABadRewriteChangesNoByte(t *testing.T) {
	m := &hooked{memFS: newMemFS()}
	j, _ := mustOpen(t, t.TempDir(), Options{FS: m})
	must(t, j.Append([]byte("a")))
	for _, bad := range [][]byte{{}, make([]byte, MaxPayload+1)} {
		if err := j.Rewrite([][]byte{[]byte("b"), bad}); err == nil || errors.Is(err, ErrPoisoned) || j.Err() != nil {
			t.Errorf("a payload of %d bytes: %v, journal %v", len(bad), err, j.Err())
		}
	}
	for range 3 {
		must(t, j.Rewrite([][]byte{[]byte("all")}))
	}
	if m.open != 1 {
		t.Errorf("after rewrites %d files are open, want 1", m.open)
	}
	j.poison("write", unix.EIO)
	if err := j.AppendEssential([]byte("end")); !errors.Is(err, ErrPoisoned) {
		t.Errorf("a release of a poisoned journal: %v", err)
	}
	must(t, j.Close())
	if m.open != 0 {
		t.Errorf("after Close %d files are open", m.open)
	}
}

// TestAUsedUpQuotaIsAFullDisk: the journal goes on, as without room.
func TestAUsedUpQuotaIsAFullDisk(t *testing.T) {
	for cause, full := range map[error]bool{unix.ENOSPC: true, unix.EDQUOT: true, unix.EIO: false, unix.EROFS: false} {
		m := newMemFS()
		j, _ := mustOpen(t, t.TempDir(), Options{FS: m})
		m.fail["allocate"] = cause
		if err := j.Append(make([]byte, MaxPayload)); errors.Is(err, ErrDiskFull) != full || errors.Is(err, ErrPoisoned) == full {
			t.Errorf("%v while allocating: %v, want a full disk %t", cause, err, full)
		}
	}
}
