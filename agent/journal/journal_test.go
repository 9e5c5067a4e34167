package journal

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

const testHeadroom = 8192

func mustOpen(t testing.TB, dir string, opts Options) (*Journal, *Recovery) {
	t.Helper()
	if opts.Headroom == 0 {
		opts.Headroom = testHeadroom
	}
	j, r, err := Open(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j, r
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func texts(payloads [][]byte) []string {
	var s []string
	for _, p := range payloads {
		s = append(s, string(p))
	}
	return s
}

func TestReopenedJournalReplaysInOrderUnderTheSameIdentifier(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "here")
	j, r := mustOpen(t, dir, Options{})
	if !r.Wiped || len(r.JournalID) != 32 || r.JournalID != j.ID() || j.Counter() != 1 {
		t.Fatalf("first open: %+v, counter %d", r, j.Counter())
	}
	must(t, j.Append([]byte("one"), []byte("two")))
	must(t, j.AppendEssential([]byte("three")))
	must(t, j.Sync())
	must(t, j.Close())
	if err := j.Append([]byte("late")); !errors.Is(err, ErrClosed) {
		t.Fatalf("append after close: %v", err)
	}

	again, r2 := mustOpen(t, dir, Options{})
	if diff := cmp.Diff([]string{"one", "two", "three"}, texts(r2.Payloads)); diff != "" {
		t.Fatal(diff)
	}
	if r2.JournalID != r.JournalID || r2.PreviousID != r.JournalID || r2.Wiped || r2.Cut != 0 {
		t.Fatalf("second open: %+v, want identifier %s", r2, r.JournalID)
	}
	must(t, again.Append([]byte("four")))
	must(t, again.Rewrite([][]byte{[]byte("all")}))
	must(t, again.Append([]byte("five")))
	must(t, again.Close())

	_, r3 := mustOpen(t, dir, Options{})
	if diff := cmp.Diff([]string{"all", "five"}, texts(r3.Payloads)); diff != "" {
		t.Fatal(diff)
	}
	if r3.JournalID != r.JournalID {
		t.Fatalf("a rewrite changed the identifier from %s to %s", r.JournalID, r3.JournalID)
	}
	info, err := os.Stat(filepath.Join(dir, fileName))
	must(t, err)
	if info.Mode().Perm() != 0o600 || info.Size() < testHeadroom {
		t.Fatalf("journal has mode %v and %d bytes", info.Mode(), info.Size())
	}
}

func TestSecondOwnerIsRefusedWithThePidOfTheFirst(t *testing.T) {
	dir := t.TempDir()
	j, _ := mustOpen(t, dir, Options{})
	_, _, err := Open(dir, Options{})
	if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), "pid "+strconv.Itoa(os.Getpid())) || !strings.Contains(err.Error(), dir) {
		t.Fatalf("second open: %v", err)
	}
	must(t, j.Close())
	mustOpen(t, dir, Options{})
}

func TestBadPayloadsAndOptionsAreRefusedWithoutEffect(t *testing.T) {
	j, _ := mustOpen(t, t.TempDir(), Options{FS: newMemFS()})
	for name, p := range map[string][]byte{"empty": {}, "too long": make([]byte, MaxPayload+1)} {
		if err := j.Append([]byte("good"), p); err == nil || !strings.Contains(err.Error(), "payload 2 of 2 has "+strconv.Itoa(len(p))) {
			t.Errorf("%s payload: %v", name, err)
		}
	}
	if j.Size() != headerSize {
		t.Errorf("refused payloads left %d bytes", j.Size())
	}
	if _, _, err := Open(t.TempDir(), Options{Headroom: -1}); err == nil {
		t.Error("negative headroom was taken")
	}
}

// file returns the bytes of a journal with records of several sizes, and the
// offset behind each of them.
func file(t testing.TB) (data []byte, boundaries []int, payloads []string) {
	t.Helper()
	h := header{version: version, counter: 7, base: 40}
	copy(h.id[:], "0123456789abcdef")
	data = h.encode()
	boundaries = []int{len(data)}
	for i, size := range []int{1, 17, 3, 200, 64, 5, 1} {
		p := bytes.Repeat([]byte{byte('a' + i)}, size)
		data = appendRecord(data, h.seed(), h.base+uint64(i)+1, p)
		boundaries = append(boundaries, len(data))
		payloads = append(payloads, string(p))
	}
	return data, boundaries, payloads
}

func onDisk(data []byte) *memFS {
	m := newMemFS()
	m.names[fileName] = &memBytes{now: append([]byte(nil), data...)}
	return m
}

func TestEveryPrefixOpensToAPrefixOfTheRecords(t *testing.T) {
	data, boundaries, payloads := file(t)
	lock := t.TempDir()
	for n := headerSize; n <= len(data); n++ {
		whole := 0
		for boundaries[whole] != n && whole+1 < len(boundaries) && boundaries[whole+1] <= n {
			whole++
		}
		for _, zeros := range []int{0, 100, 10000} {
			m := onDisk(append(append([]byte(nil), data[:n]...), make([]byte, zeros)...))
			j, r, err := Open(lock, Options{FS: m, Headroom: testHeadroom})
			if err != nil {
				t.Fatalf("prefix %d: %v", n, err)
			}
			if diff := cmp.Diff(append([]string(nil), payloads[:whole]...), texts(r.Payloads)); diff != "" {
				t.Fatalf("prefix %d: %s", n, diff)
			}
			if atBoundary, same := n == boundaries[whole], r.JournalID == r.PreviousID; atBoundary != same {
				t.Fatalf("prefix %d: at a boundary %v, same identifier %v", n, atBoundary, same)
			}
			// It goes on, and the continued journal replays without a cut.
			must(t, j.Append([]byte("next")))
			must(t, j.Close())
			again, r2, err := Open(lock, Options{FS: m, Headroom: testHeadroom})
			must(t, err)
			if diff := cmp.Diff(append(append([]string(nil), payloads[:whole]...), "next"), texts(r2.Payloads)); diff != "" || r2.JournalID != r.JournalID {
				t.Fatalf("prefix %d reopened as %s after %s: %s", n, r2.JournalID, r.JournalID, diff)
			}
			must(t, again.Close())
		}
	}
	for n := range headerSize {
		var corrupt *CorruptError
		if _, _, err := Open(lock, Options{FS: onDisk(data[:n])}); !errors.As(err, &corrupt) || corrupt.Offset != 0 {
			t.Fatalf("prefix %d, within the header: %v", n, err)
		}
	}
}

func TestEveryBitFlipIsNoticedAndNeverGivesAWrongPayload(t *testing.T) {
	data, boundaries, payloads := file(t)
	padded := append(append([]byte(nil), data...), make([]byte, 100)...)
	for bit := range len(padded) * 8 {
		flipped := append([]byte(nil), padded...)
		flipped[bit/8] ^= 1 << (bit % 8)
		img, err := parse(flipped)
		hit := 0 // the record that holds the bit
		for hit+1 < len(boundaries) && boundaries[hit+1] <= bit/8 {
			hit++
		}
		corrupt := (*CorruptError)(nil)
		switch {
		case bit/8 < headerSize:
			if !errors.As(err, &corrupt) || corrupt.Offset != 0 {
				t.Fatalf("bit %d of the header: %v", bit, err)
			}
		case hit < len(payloads)-1:
			if !errors.As(err, &corrupt) || corrupt.Offset != int64(boundaries[hit]) {
				t.Fatalf("bit %d in record %d: %v, want corruption at %d", bit, hit, err, boundaries[hit])
			}
		default: // the last record, or the zeros behind it
			if err != nil || !img.torn {
				t.Fatalf("bit %d in the tail: torn %v, %v", bit, img.torn, err)
			}
			if diff := cmp.Diff(payloads[:hit], texts(img.payloads)); diff != "" {
				t.Fatalf("bit %d: %s", bit, diff)
			}
		}
	}
}

func TestDuplicatedReorderedAndForeignRecordsAreCorruption(t *testing.T) {
	data, b, _ := file(t)
	record := func(i int) []byte { return data[b[i]:b[i+1]] }
	cases := map[string]struct {
		parts      [][]byte
		wantOffset int
	}{
		"a record twice":       {[][]byte{data[:b[3]], record(2), record(3)}, b[3]},
		"two records swapped":  {[][]byte{data[:b[2]], record(3), record(2)}, b[2]},
		"a record left out":    {[][]byte{data[:b[2]], record(3)}, b[2]},
		"zeros between":        {[][]byte{data[:b[2]], make([]byte, 40), data[b[2]:]}, b[2]},
		"the last one missing": {[][]byte{data[:b[6]]}, -1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := parse(bytes.Join(c.parts, nil))
			var corrupt *CorruptError
			if errors.As(err, &corrupt) != (c.wantOffset >= 0) || corrupt != nil && corrupt.Offset != int64(c.wantOffset) {
				t.Fatalf("got %v, want a fault at %d", err, c.wantOffset)
			}
		})
	}
}

func TestCorruptJournalIsRefusedUntilNewJournalMovesItAside(t *testing.T) {
	dir := t.TempDir()
	data, b, _ := file(t)
	data[b[2]+recordHeader] ^= 1
	path := filepath.Join(dir, fileName)
	for n := 1; n <= 2; n++ {
		must(t, os.WriteFile(path, data, 0o600))
		_, _, err := Open(dir, Options{})
		for _, want := range []string{path, fmt.Sprintf("offset %d", b[2]), "--new-journal"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Fatalf("message lacks %q: %v", want, err)
			}
		}
		if kept, err := os.ReadFile(path); err != nil || !bytes.Equal(kept, data) {
			t.Fatalf("the refused file was changed (%v)", err)
		}
		j, r, err := Open(dir, Options{NewJournal: true})
		must(t, err)
		if !r.Wiped || len(r.Payloads) != 0 || r.MovedTo != fmt.Sprintf("%s.corrupt-%d", path, n) || r.JournalID == r.PreviousID || j.Counter() != 8 {
			t.Fatalf("%+v, counter %d", r, j.Counter())
		}
		if moved, err := os.ReadFile(r.MovedTo); err != nil || !bytes.Equal(moved, data) {
			t.Fatalf("the moved file differs (%v)", err)
		}
		must(t, j.Close())
	}
}

func TestPowerCutKeepsWhatWasSyncedAndNeverInvents(t *testing.T) {
	lock := t.TempDir()
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		m := newMemFS()
		j, _, err := Open(lock, Options{FS: m, Headroom: testHeadroom})
		must(t, err)
		var wrote, synced []string
		for range r.IntN(40) {
			switch r.IntN(8) {
			case 0:
				must(t, j.Sync())
				synced = append([]string(nil), wrote...)
			case 1:
				must(t, j.Rewrite(asBytes(wrote)))
				synced = append([]string(nil), wrote...)
			default:
				var group [][]byte
				for range 1 + r.IntN(3) {
					p := strings.Repeat(strconv.Itoa(len(wrote))+"x", 1+r.IntN(1500))
					wrote, group = append(wrote, p), append(group, []byte(p))
				}
				must(t, j.Append(group...))
			}
		}
		after := m.crash(r)
		id := j.ID()
		must(t, j.lock.Close())
		again, rec, err := Open(lock, Options{FS: after, Headroom: testHeadroom})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		got := texts(rec.Payloads)
		if len(got) < len(synced) || len(got) > len(wrote) || cmp.Diff(wrote[:len(got)], got, cmp.Transformer("empty", func(s []string) string { return strings.Join(s, ",") })) != "" {
			t.Fatalf("seed %d: %d records replayed of %d written and %d synced", seed, len(got), len(wrote), len(synced))
		}
		if (rec.Cut > 0) == (rec.JournalID == id) {
			t.Fatalf("seed %d: cut %d bytes, identifier %s after %s", seed, rec.Cut, rec.JournalID, id)
		}
		must(t, again.Close())
	}
}

func asBytes(s []string) [][]byte {
	b := make([][]byte, len(s))
	for i := range s {
		b[i] = []byte(s[i])
	}
	return b
}

func TestFailedWritePoisonsAndTheNextOpenTakesANewIdentifier(t *testing.T) {
	cases := map[string]struct {
		operation string
		cause     error
		short     int
		act       func(*Journal) error
	}{
		"EIO on append":                {"write", unix.EIO, 0, func(j *Journal) error { return j.Append([]byte("lost")) }},
		"append cut short":             {"write", unix.EIO, 9, func(j *Journal) error { return j.AppendEssential([]byte("lost")) }},
		"no room despite the headroom": {"write", unix.ENOSPC, 0, func(j *Journal) error { return j.Append([]byte("lost")) }},
		"failed fsync":                 {"sync", unix.EIO, 0, (*Journal).Sync},
		"read-only remount":            {"write", unix.EROFS, 0, func(j *Journal) error { return j.Append([]byte("lost")) }},
		"EIO while allocating":         {"allocate", unix.EIO, 0, func(j *Journal) error { return j.Append(make([]byte, 2<<20>>1), make([]byte, 1<<20)) }},
		"failed fsync of a rewrite":    {"sync", unix.EIO, 0, func(j *Journal) error { return j.Rewrite(nil) }},
		"failed rename of a rewrite":   {"rename", unix.EIO, 0, func(j *Journal) error { return j.Rewrite(nil) }},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			m, lock := newMemFS(), t.TempDir()
			j, first, err := Open(lock, Options{FS: m, Headroom: testHeadroom})
			must(t, err)
			must(t, j.Append([]byte("kept")))
			m.fail[c.operation], m.short = c.cause, c.short
			if err := c.act(j); !errors.Is(err, ErrPoisoned) || !errors.Is(err, c.cause) {
				t.Fatalf("got %v", err)
			}
			clear(m.fail)
			for what, err := range map[string]error{"append": j.Append([]byte("x")), "essential": j.AppendEssential([]byte("x")), "sync": j.Sync(), "rewrite": j.Rewrite(nil), "reserve": j.Reserve()} {
				if !errors.Is(err, ErrPoisoned) {
					t.Errorf("%s after the failure: %v", what, err)
				}
			}
			must(t, j.Condemn())
			must(t, j.Close())
			again, r, err := Open(lock, Options{FS: m, Headroom: testHeadroom})
			must(t, err)
			if r.JournalID == first.JournalID || len(r.Payloads) < 1 || string(r.Payloads[0]) != "kept" {
				t.Fatalf("reopened: %+v", r)
			}
			must(t, again.Close())
			last, r2, err := Open(lock, Options{FS: m, Headroom: testHeadroom})
			must(t, err)
			if r2.JournalID != r.JournalID || r2.Doubtful {
				t.Fatalf("the doubt outlived its new identifier: %+v", r2)
			}
			must(t, last.Close())
		})
	}
}

func TestDoubtIsKeptInAFileWhereTheJournalCannotBeWritten(t *testing.T) {
	m, lock := newMemFS(), t.TempDir()
	j, first, err := Open(lock, Options{FS: m, Headroom: testHeadroom})
	must(t, err)
	must(t, j.Append([]byte("kept")))
	m.fail["write"], m.fail["open"] = unix.EROFS, unix.EROFS
	if err := j.Append([]byte("lost")); !errors.Is(err, ErrPoisoned) {
		t.Fatal(err)
	}
	if err := j.Condemn(); err == nil {
		t.Fatal("a read-only disk took the mark")
	}
	delete(m.fail, "open")
	must(t, j.Condemn()) // writes to the journal itself still fail
	must(t, j.Close())
	clear(m.fail)
	again, r := mustOpen(t, lock, Options{FS: m})
	if !r.Doubtful || r.JournalID == first.JournalID || len(r.Payloads) != 1 {
		t.Fatalf("%+v", r)
	}
	must(t, again.Close())
	if _, r2 := mustOpen(t, lock, Options{FS: m}); r2.Doubtful || r2.JournalID != r.JournalID {
		t.Fatalf("%+v", r2)
	}
}

func TestFullDiskRefusesPromisesAndTakesReleasesFromTheHeadroom(t *testing.T) {
	m, lock := newMemFS(), t.TempDir()
	j, first := mustOpen(t, lock, Options{FS: m})
	m.room = 0
	promise, release := bytes.Repeat([]byte("p"), 100), bytes.Repeat([]byte("r"), 100)
	if err := j.Append(promise); !errors.Is(err, ErrDiskFull) || !j.Full() {
		t.Fatalf("full %v: %v", j.Full(), err)
	}
	releases := 0
	for {
		err := j.AppendEssential(release)
		if err != nil {
			if !errors.Is(err, ErrDiskFull) {
				t.Fatal(err)
			}
			break
		}
		releases++
	}
	if want := testHeadroom / (recordHeader + 100); releases != want {
		t.Fatalf("%d releases from a headroom of %d bytes, want %d", releases, testHeadroom, want)
	}
	if err := j.Rewrite([][]byte{release}); !errors.Is(err, ErrDiskFull) {
		t.Fatalf("rewrite on a full disk: %v", err)
	}
	must(t, j.Sync())
	must(t, j.Close())

	again, r := mustOpen(t, lock, Options{FS: m})
	if len(r.Payloads) != releases || r.JournalID != first.JournalID || !again.Full() {
		t.Fatalf("%d records under %s, full %v", len(r.Payloads), r.JournalID, again.Full())
	}
	m.room = -1
	must(t, again.Reserve())
	must(t, again.Append(promise))
	if again.Full() {
		t.Error("still full after room came back")
	}
}

func TestSyncRunsBesideAppendsAndRewrites(t *testing.T) {
	j, _ := mustOpen(t, t.TempDir(), Options{})
	done := make(chan error, 1) // the only send
	go func() {
		var err error
		for range 50 {
			err = errors.Join(err, j.Sync())
		}
		done <- err
	}()
	for i := range 200 {
		must(t, j.Append([]byte(strconv.Itoa(i))))
		if i%50 == 49 {
			must(t, j.Rewrite(nil))
		}
	}
	must(t, <-done)
}

func BenchmarkAppendSync(b *testing.B) {
	payload := bytes.Repeat([]byte("x"), 120)
	for _, group := range []int{1, 64} {
		for _, sync := range []bool{false, true} {
			b.Run(fmt.Sprintf("group=%d/sync=%v", group, sync), func(b *testing.B) {
				j, _ := mustOpen(b, b.TempDir(), Options{Headroom: DefaultHeadroom})
				payloads := make([][]byte, group)
				for i := range payloads {
					payloads[i] = payload
				}
				b.ReportAllocs()
				for b.Loop() {
					must(b, j.Append(payloads...))
					if sync {
						must(b, j.Sync())
					}
					if j.Size() > 64<<20 {
						must(b, j.Rewrite(nil))
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*group), "ns/record")
			})
		}
	}
}
