package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/service"
)

func openBook(t *testing.T, c Config) *Book {
	t.Helper()
	b, err := Open("c1", c, prometheus.NewRegistry(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func refuse(b *Book, n int) {
	for i := range n {
		b.Refused(record.Audit{Actor: record.Actor{ID: fmt.Sprintf("%013d-x", i), Person: "eve"}, Verb: "delete", Kind: "jobs", Namespace: "vision", Name: fmt.Sprint("j", i)},
			api.Errorf(403, "delete jobs: want the role editor"))
	}
}

func refusedBy(t *testing.T, b *Book) (names []string) {
	t.Helper()
	ctx := service.WithCaller(t.Context(), service.Caller{Principal: service.Principal{Admin: true}})
	list, err := b.ListAudit(ctx, service.AuditQuery{Result: api.AuditRefused, Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names
}

// Refusals are in the file after a restart, also where the process before was killed in
// the middle of a line.
func TestRefusalsOutliveTheProcess(t *testing.T) {
	for what, ends := range map[string]string{
		"a whole file":                  "",
		"half a line":                   `{"kind":"AuditEntry","id":"17`,
		"a line of something else":      "what\n",
		"a document that is no entry":   "{\"id\":\"\"}\n",
		"a line with a half rune":       "{\"id\":\"\xe2\x82",
		"a very long line without end":  strings.Repeat("x", 3*mostLine),
		"an entry behind a broken line": "broken\n" + `{"id":"9","name":"last","result":"refused"}` + "\n",
	} {
		t.Run(what, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "audit")
			b := openBook(t, Config{Dir: dir})
			refuse(b, 3)
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			names, err := os.ReadDir(dir)
			if err != nil || len(names) != 1 {
				t.Fatalf("%v %v", names, err)
			}
			file, err := os.OpenFile(filepath.Join(dir, names[0].Name()), os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := file.WriteString(ends); err != nil {
				t.Fatal(err)
			}
			if err := file.Close(); err != nil {
				t.Fatal(err)
			}
			again := openBook(t, Config{Dir: dir})
			want := "j2 j1 j0"
			if strings.Contains(ends, "last") {
				want = "last " + want
			}
			if got := strings.Join(refusedBy(t, again), " "); got != want {
				t.Errorf("after the restart %q, want %q", got, want)
			}
			refuse(again, 1)
			if err := again.Close(); err != nil {
				t.Fatal(err)
			}
			if names, _ := os.ReadDir(dir); len(names) != 2 {
				t.Errorf("%d files, want the old one and a new one", len(names))
			}
		})
	}
}

// The files never take more than their number and their size, however many requests are
// refused, and each line is a whole entry.
func TestAFloodOfRefusalsFillsNoDisk(t *testing.T) {
	dir := t.TempDir()
	b := openBook(t, Config{Dir: dir, MaxBytes: 16 << 10, Files: 3})
	for i := range 20_000 { // of many people: the refusals of one person are joined
		b.Refused(record.Audit{Actor: record.Actor{ID: fmt.Sprintf("%013d-x", i), Person: fmt.Sprint("eve", i)}, Verb: "delete", Kind: "jobs"}, api.Errorf(403, "no"))
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	names, err := os.ReadDir(dir)
	if err != nil || len(names) != 3 {
		t.Fatalf("%d files, want 3: %v", len(names), err)
	}
	lines := 0
	for _, n := range names {
		info, err := n.Info()
		if err != nil || info.Size() > 17<<10 || info.Mode() != fs.FileMode(0o600) {
			t.Errorf("%s has %d bytes and the mode %s: %v", n.Name(), info.Size(), info.Mode(), err)
		}
		text, err := os.ReadFile(filepath.Join(dir, n.Name()))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			lines++
			if ReadLine([]byte(line)) == nil {
				t.Errorf("%s has the line %q", n.Name(), line)
			}
		}
	}
	if lines == 0 || b.refused.Len() > 10_000 {
		t.Errorf("%d lines in the files, %d entries in memory", lines, b.refused.Len())
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(b.counted)
	families, err := registry.Gather()
	if err != nil || len(families) != 1 || !strings.Contains(families[0].String(), "20000") {
		t.Errorf("the refusals are counted as %v, %v", families, err)
	}
}

// An entry for which there is no room is counted, and the caller does not wait.
func TestWithoutRoomAnEntryIsLostAndCounted(t *testing.T) {
	lost := 0
	f := &Files{config: Config{Lost: func() { lost++ }}, entries: make(chan *api.AuditEntry, 2)} // whose disk has stopped
	for range 5 {
		f.Append(&api.AuditEntry{ID: "1"})
	}
	if lost != 3 {
		t.Errorf("%d entries are counted as lost, want 3", lost)
	}
}

// A disk that refuses costs entries, and the next file takes those that follow.
func TestAFullDiskCostsEntriesAndNothingElse(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "audit")
	lost := make(chan struct{}, 10)
	f, err := OpenFiles(Config{Dir: dir, Lost: func() { lost <- struct{}{} }}, func(*api.AuditEntry) {})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	f.Append(&api.AuditEntry{ID: "1", Result: api.AuditRefused})
	<-lost
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	f.Append(&api.AuditEntry{ID: "2", Result: api.AuditRefused})
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	names, err := os.ReadDir(dir)
	if err != nil || len(names) != 1 {
		t.Fatalf("%v %v", names, err)
	}
}

func TestBadBoundsAreRefused(t *testing.T) {
	for what, c := range map[string]Config{
		"a negative size":        {Dir: t.TempDir(), MaxBytes: -1},
		"a negative number":      {Dir: t.TempDir(), Files: -1},
		"a folder below no path": {Dir: filepath.Join(os.DevNull, "x")},
	} {
		if _, err := OpenFiles(c, nil); err == nil {
			t.Errorf("%s is taken", what)
		} else if errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// FuzzReadLine: whatever is in a file, a line is an entry or is passed over, and an entry
// that was written is read back.
func FuzzReadLine(f *testing.F) {
	whole, err := json.Marshal(&api.AuditEntry{ID: "1", Person: "ada", Result: api.AuditRefused, Code: 403})
	if err != nil {
		f.Fatal(err)
	}
	for _, line := range []string{string(whole) + "\n", string(whole[:20]), "{}\n", "\n", "[]\n", `{"id":"1","result":"refused"}` + "\n"} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		e := ReadLine(line)
		if e == nil {
			return
		}
		again, err := json.Marshal(e)
		if err != nil || e.ID == "" || e.Result != api.AuditRefused {
			t.Fatalf("%+v %v", e, err)
		}
		if back := ReadLine(append(again, '\n')); back == nil || *back != *e {
			t.Fatalf("%+v is read back as %+v", e, back)
		}
	})
}
