package journal

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// testdata/version1 was written by the first version of the format: two
// records, a rewrite of them as one, and two more.
func TestFileOfVersion1IsReadGoneOnWithAndRewrittenAsVersion2(t *testing.T) {
	recorded, err := os.ReadFile(filepath.Join("testdata", "version1"))
	must(t, err)
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, fileName), recorded, 0o600))
	want := []string{"one and two", "three", "four"}
	j, r := mustOpen(t, dir, Options{})
	if diff := cmp.Diff(want, texts(r.Payloads)); diff != "" || r.JournalID != r.PreviousID || j.header.version != 1 {
		t.Fatalf("%+v, version %d: %s", r, j.header.version, diff)
	}
	must(t, j.Append([]byte("five")))
	must(t, j.Close())
	again, r2 := mustOpen(t, dir, Options{})
	if diff := cmp.Diff(append(want, "five"), texts(r2.Payloads)); diff != "" || r2.JournalID != r.JournalID {
		t.Fatalf("%+v: %s", r2, diff)
	}
	must(t, again.Rewrite(r2.Payloads[3:]))
	must(t, again.Append([]byte("six")))
	must(t, again.Close())
	last, r3 := mustOpen(t, dir, Options{})
	if diff := cmp.Diff([]string{"five", "six"}, texts(r3.Payloads)); diff != "" || r3.JournalID != r.JournalID || last.header.version != 2 {
		t.Fatalf("%+v, version %d: %s", r3, last.header.version, diff)
	}
}

func TestTruncatedFileIsNoticedEvenBetweenTwoRecords(t *testing.T) {
	lock, m := t.TempDir(), newMemFS()
	j, first, err := Open(lock, Options{FS: m, Headroom: testHeadroom})
	must(t, err)
	must(t, j.Append([]byte("one")))
	after := j.Size()
	must(t, j.Append([]byte("two")))
	must(t, j.Close())
	whole := m.names[fileName].now
	for name, c := range map[string]struct {
		size  int64
		want  []string
		short bool
	}{
		"behind the first record":     {after, []string{"one"}, true},
		"behind the last record":      {j.Size(), []string{"one", "two"}, true},
		"not at all":                  {int64(len(whole)), []string{"one", "two"}, false},
		"behind the header":           {headerSize, nil, true},
		"within the length of record": {after + 2, []string{"one"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			again, r, err := Open(lock, Options{FS: onDisk(whole[:c.size]), Headroom: testHeadroom})
			must(t, err)
			if diff := cmp.Diff(c.want, texts(r.Payloads)); diff != "" {
				t.Error(diff)
			}
			if (r.Short > 0) != c.short || (r.JournalID != first.JournalID) != c.short {
				t.Errorf("short of %d bytes, identifier %s after %s", r.Short, r.JournalID, first.JournalID)
			}
			must(t, again.Close())
		})
	}
}

func TestRecordsOfAnotherJournalAreNotTakenForOnesOfThis(t *testing.T) {
	lock := t.TempDir()
	write := func(texts ...string) ([]byte, int64) {
		m := newMemFS()
		j, _, err := Open(lock, Options{FS: m, Headroom: testHeadroom})
		must(t, err)
		for _, s := range texts {
			must(t, j.Append([]byte(s)))
		}
		must(t, j.Close())
		return m.names[fileName].now, j.Size()
	}
	mine, _ := write("one")
	theirs, _ := write("uno", "due")
	_, at := write("uno")
	copy(mine[at:], theirs[at:]) // the second record, whose sequence fits
	img, err := parse(mine)
	must(t, err)
	if len(img.payloads) != 1 || !img.torn {
		t.Fatalf("%q, torn %v", texts(img.payloads), img.torn)
	}
}
