package cli

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// scenarios are one that passes and one that does not.
const (
	passing = `{"id":"one","mode":"normal","trees":[{"kind":"QuotaTree","metadata":{"name":"T"},"spec":{"resourceNames":["cpu"],` +
		`"nodes":{"A":{"parent":"nil","quota":{"cpu":"1"}}}}}],"ops":[{"op":"allocate","id":"c","trees":[{"treeName":"T","groupID":"A","request":{"cpu":1}}],` +
		`"expect":{"ok":true,"aNode":{"T":"A"}}}],"final":{"T":{"A":{"allocated":{"cpu":1},"consumers":["c"]}}}}` + "\n"
	difference = "two: op 0 (allocate c): aNode: want {\"T\":\"B\"}, got {\"T\":\"A\"}\n"
)

var failing = strings.NewReplacer(`"one"`, `"two"`, `"aNode":{"T":"A"}`, `"aNode":{"T":"B"}`).Replace(passing)

func TestReplay(t *testing.T) {
	folder := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write([]byte(passing + passing)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	pass, fail := file("pass.jsonl", passing), file("fail.jsonl", passing+failing)
	zip, broken := file("pass.jsonl.gz", packed.String()), file("broken.jsonl", passing+"{\n"+passing)
	torn := file("torn.gz", packed.String()[:packed.Len()/2])
	for name, c := range map[string]struct {
		args       []string
		stdin      string
		wantCode   int
		wantOut    string
		wantStderr string
	}{
		"one that passes":                    {args: []string{pass}, wantOut: "1 passed, 0 failed\n"},
		"several files, compressed ones too": {args: []string{pass, zip}, wantOut: "3 passed, 0 failed\n"},
		"standard input":                     {args: []string{"-"}, stdin: passing, wantOut: "1 passed, 0 failed\n"},
		"compressed standard input":          {args: []string{"-"}, stdin: packed.String(), wantOut: "2 passed, 0 failed\n"},
		"nothing in it":                      {args: []string{"-"}, wantOut: "0 passed, 0 failed\n"},
		"one that differs": {
			args: []string{fail}, wantCode: ExitFailed, wantOut: difference + "1 passed, 1 failed\n",
			wantStderr: "muster: 1 of 2 scenarios have another outcome than recorded\n",
		},
		"a file that is not there keeps the others from nothing": {
			args: []string{folder + "/none", fail, pass}, wantCode: ExitFailed, wantOut: difference + "2 passed, 1 failed\n",
			wantStderr: "muster: open " + folder + "/none: no such file or directory; 1 of 3 scenarios have another outcome than recorded\n",
		},
		"a broken line ends its file": {
			args: []string{broken, pass}, wantCode: ExitFailed, wantOut: "2 passed, 0 failed\n",
			wantStderr: "muster: " + broken + ": line 2: unexpected EOF\n",
		},
		"a torn file": {args: []string{torn}, wantCode: ExitFailed, wantOut: "0 passed, 0 failed\n", wantStderr: "muster: " + torn + ": line 1: unexpected EOF\n"},
		"a folder":    {args: []string{folder}, wantCode: ExitFailed, wantOut: "0 passed, 0 failed\n", wantStderr: "muster: " + folder + ": read " + folder + ": is a directory\n"},
		"no file": {
			wantCode: ExitMisused, wantStderr: "muster: want FILE…; see muster quota replay --help\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := newShell(t, nil).run(t.Context(), c.stdin, append([]string{"quota", "replay"}, c.args...)...)
			if code != c.wantCode || stdout != c.wantOut || stderr != c.wantStderr {
				t.Errorf("exit %d\n%s%s\nwant exit %d\n%s%s", code, stdout, stderr, c.wantCode, c.wantOut, c.wantStderr)
			}
		})
	}
}

func TestReplayInJSON(t *testing.T) {
	code, stdout, _ := newShell(t, nil).run(t.Context(), passing+failing, "quota", "replay", "-", "-o", "json")
	var got outcome
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatal(err)
	}
	want := mismatch{Scenario: "two", Call: "allocate c", Field: "aNode", Want: `{"T":"B"}`, Got: `{"T":"A"}`}
	if code != ExitFailed || got.Passed != 1 || got.Failed != 1 || !slices.Equal(got.Mismatches, []mismatch{want}) {
		t.Errorf("exit %d, %+v", code, got)
	}
}

func TestRecordedScenariosAllPass(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "..", "shared", "vectors", "quota", "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Skipf("no reference material: ../shared/vectors/quota is absent (%v)", err)
	}
	if code, stdout, stderr := newShell(t, nil).run(t.Context(), "", append([]string{"quota", "replay"}, files...)...); code != ExitDone {
		t.Errorf("exit %d\n%s%s", code, stdout, stderr)
	} else if !strings.HasSuffix(stdout, " passed, 0 failed\n") {
		t.Errorf("it ends with %q", stdout)
	}
}
