package replay

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// recordings opens the recorded scenarios.
func recordings(t testing.TB) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "testdata", "*.jsonl.gz"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	all := map[string][]byte{}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		z, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		if all[strings.TrimSuffix(filepath.Base(name), ".gz")], err = io.ReadAll(z); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func TestAllRecordingsAreReproduced(t *testing.T) {
	scenarios := 0
	for name, data := range recordings(t) {
		t.Run(name, func(t *testing.T) {
			passed, failed, err := Run(bytes.NewReader(data), func(m Mismatch) { t.Error(m) })
			if failed > 0 || err != nil {
				t.Errorf("%d passed, %d failed, %v", passed, failed, err)
			}
			scenarios += passed
		})
	}
	if scenarios < 300 {
		t.Errorf("only %d scenarios were played", scenarios)
	}
}

// Scenarios beside the committed ones, where they are at hand.
func TestRecordingsOfTheReferenceMaterial(t *testing.T) {
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod above this folder")
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "..", "shared", "vectors", "quota", "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Skipf("no reference material: ../shared/vectors/quota is absent (%v)", err)
	}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		passed, failed, err := Run(f, func(m Mismatch) { t.Error(m) })
		if cerr := f.Close(); failed > 0 || err != nil || cerr != nil {
			t.Errorf("%s: %d passed, %d failed, %v, %v", filepath.Base(name), passed, failed, err, cerr)
		}
	}
}

// Every expectation of a recording is looked at: a scenario with any of them
// altered, dropped or invented fails.
func TestEveryExpectationCounts(t *testing.T) {
	alter := map[string]func(expect map[string]any) bool{
		"the success":        func(e map[string]any) bool { e["ok"] = !e["ok"].(bool); return true },
		"a node":             func(e map[string]any) bool { return change(e, "aNode") },
		"a victim":           func(e map[string]any) bool { return drop(e, "preempted") },
		"an invented victim": func(e map[string]any) bool { return invent(e, "preempted", []any{"nobody"}) },
		"a move":             func(e map[string]any) bool { return drop(e, "moved") },
		"an invented move": func(e map[string]any) bool {
			return invent(e, "moved", map[string]any{"nobody": map[string]any{"T": "n0"}})
		},
		"a root":                    func(e map[string]any) bool { return change(e, "root") },
		"a dangling node":           func(e map[string]any) bool { return drop(e, "dangling") },
		"an invented dangling node": func(e map[string]any) bool { return invent(e, "dangling", map[string]any{"T": []any{"x"}}) },
		"an invented loss":          func(e map[string]any) bool { return invent(e, "lost", []any{"nobody"}) },
	}
	lines := map[string][]string{}
	for name, data := range recordings(t) {
		lines[name] = strings.Split(strings.TrimSpace(string(data)), "\n")
	}
	for what, change := range alter {
		t.Run(what, func(t *testing.T) {
			altered := 0
			for _, scenarios := range lines {
				for _, line := range scenarios[:min(8, len(scenarios))] {
					altered += tamper(t, line, change)
				}
				if what == "a dangling node" { // there are few
					for _, line := range scenarios {
						altered += tamper(t, line, change)
					}
				}
			}
			if altered == 0 {
				t.Error("no recording has one")
			}
		})
	}
}

// tamper changes the first operation of a scenario that lets itself be
// changed, and expects the scenario to fail.
func tamper(t *testing.T, line string, change func(map[string]any) bool) int {
	t.Helper()
	var s map[string]any
	if err := json.Unmarshal([]byte(line), &s); err != nil {
		t.Fatal(err)
	}
	for _, op := range s["ops"].([]any) {
		if !change(op.(map[string]any)["expect"].(map[string]any)) {
			continue
		}
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if _, failed, err := Run(bytes.NewReader(text), func(Mismatch) {}); failed != 1 || err != nil {
			t.Errorf("%v: %d failed, %v", s["id"], failed, err)
		}
		return 1
	}
	return 0
}

func change(e map[string]any, field string) bool {
	values, _ := e[field].(map[string]any)
	for key := range values {
		values[key] = "elsewhere"
		return true
	}
	return false
}

func drop(e map[string]any, field string) bool {
	_, there := e[field]
	delete(e, field)
	return there
}

func invent(e map[string]any, field string, value any) bool {
	_, there := e[field]
	e[field] = value
	return !there
}

func TestTheFinalStateCounts(t *testing.T) {
	const tree = `{"kind":"QuotaTree","metadata":{"name":"T"},"spec":{"resourceNames":["cpu"],"nodes":{"r":{"parent":"nil","quota":{"cpu":"2"}}}}}`
	const ops = `[{"op":"allocate","id":"c","trees":[{"treeName":"T","groupID":"r","request":{"cpu":1},"priority":0}],"expect":{"ok":true,"aNode":{"T":"r"}}}]`
	for name, c := range map[string]struct {
		final string
		want  int
	}{
		"as it is":            {`{"T":{"r":{"allocated":{"cpu":1},"consumers":["c"]}}}`, 0},
		"another amount":      {`{"T":{"r":{"allocated":{"cpu":2},"consumers":["c"]}}}`, 1},
		"a consumer too few":  {`{"T":{"r":{"allocated":{"cpu":1}}}}`, 1},
		"a consumer too many": {`{"T":{"r":{"allocated":{"cpu":1},"consumers":["c","d"]}}}`, 1},
		"a node too many":     {`{"T":{"r":{"allocated":{"cpu":1},"consumers":["c"]},"s":{"allocated":{"cpu":0}}}}`, 1},
		"a node too few":      {`{"T":{}}`, 1},
		"a tree too many":     {`{"T":{"r":{"allocated":{"cpu":1},"consumers":["c"]}},"U":{"r":{"allocated":{}}}}`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			line := `{"id":"s","mode":"normal","trees":[` + tree + `],"ops":` + ops + `,"final":` + c.final + `}`
			_, failed, err := Run(strings.NewReader(line), func(Mismatch) {})
			if failed != c.want || err != nil {
				t.Errorf("%d failed, %v, want %d", failed, err, c.want)
			}
		})
	}
}

func TestMismatchesNameTheirPlace(t *testing.T) {
	const good = `{"id":"good","mode":"normal","trees":[{"kind":"QuotaTree","metadata":{"name":"T"},"spec":{"nodes":{}}}],"ops":[{"op":"deallocate","id":"c","expect":{"ok":false}}],"final":{"T":{}}}`
	bad := strings.Replace(strings.Replace(good, `"ok":false`, `"ok":true`, 1), "good", "bad", 1)
	broken := strings.Replace(strings.Replace(good, `"QuotaTree"`, `"Tree"`, 1), "good", "broken", 1)
	var got []string
	passed, failed, err := Run(strings.NewReader(good+"\n\n"+bad+"\n"+broken), func(m Mismatch) { got = append(got, m.String()) })
	want := []string{
		"bad: op 0 (deallocate c): ok: want true, got false",
		`broken: trees: want a scenario, got kind: want QuotaTree, found "Tree"`,
	}
	if diff := cmp.Diff(want, got); diff != "" || passed != 1 || failed != 2 || err != nil {
		t.Errorf("%d passed, %d failed, %v, mismatches (-want +got):\n%s", passed, failed, err, diff)
	}
}

func TestAStreamThatIsNoneIsAnError(t *testing.T) {
	for name, c := range map[string]struct {
		r    io.Reader
		want string
	}{
		"no JSON":        {strings.NewReader("{}\nx"), "line 2: "},
		"a cut line":     {strings.NewReader(`{"id":`), "line 1: "},
		"a broken pipe":  {iotest.ErrReader(errors.New("gone")), "line 1: gone"},
		"another's type": {strings.NewReader(`{"id":3}`), "line 1: "},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := Run(c.r, func(Mismatch) {})
			if err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("error is %v, want %s…", err, c.want)
			}
		})
	}
}

func FuzzRun(f *testing.F) {
	const tree = `{"kind":"QuotaTree","metadata":{"name":"T"},"spec":{"resourceNames":["cpu"],"nodes":{"r":{"parent":"nil","quota":{"cpu":"2"}},"l":{"parent":"r","hard":"true","quota":{"cpu":"1"}}}}}`
	const consumer = `"id":"c","trees":[{"treeName":"T","groupID":"l","request":{"cpu":1},"priority":2,"type":1,"unPreemptable":true}]`
	f.Add([]byte(`{"id":"s","mode":"normal","trees":[],"ops":[{"op":"update","expect":{}}]}`))
	f.Add([]byte(`{"id":"s","mode":"normal","forest":true,"trees":[` + tree + `],"ops":[{"op":"try",` + consumer + `},{"op":"undo","id":"c"},{"op":"update","expect":{"ok":true,"root":{"T":"r"}}}],"final":{"T":{"r":{}}}}`))
	f.Add([]byte(`{"id":"s","mode":"maintenance","trees":[` + tree + `],"ops":[{"op":"allocate",` + consumer + `},{"op":"setNode","tree":"T","node":"l","spec":{"parent":"x","quota":{}}},` +
		`{"op":"renameNode","tree":"T","node":"l","newName":"r"},{"op":"deleteNode","tree":"T","node":"r"},{"op":"update"},{"op":"mode","mode":"normal"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		passed, failed, err := Run(bytes.NewReader(data), func(m Mismatch) {
			if _ = m.String(); m.Field == "state" {
				t.Error(m)
			}
		})
		if err == nil && passed+failed > 1+bytes.Count(data, []byte("\n")) {
			t.Errorf("%d scenarios in %d lines", passed+failed, 1+bytes.Count(data, []byte("\n")))
		}
	})
}
