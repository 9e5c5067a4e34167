package capture_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/musterd/muster/coordinator/capture"
)

func committed(tb testing.TB) []byte {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "snapshot.json"))
	if err != nil {
		tb.Fatal(err)
	}
	return text
}

// refusals are units that failed, as a document of version 2 has them.
const refusals = `"refused":[{"unit":"blue/alloc/w5/0","uid":"alloc-56eb4433-7c4f-4fe2-b940-4220e7c5010f","times":3,"avoid":{"n0001":2},"until":"2023-11-14T22:13:24Z"},` +
	`{"unit":"blue/job/w7/0","uid":"unit-e640a1be-4658-4c73-8e7d-28a6c6fb35ca","avoid":{"n0001":1}}],`

// ofVersion2 is the committed document with refusals.
func ofVersion2(tb testing.TB) []byte {
	tb.Helper()
	return []byte(strings.Replace(string(committed(tb)), `"version":1,`, `"version":2,`+refusals, 1))
}

// TestADocumentOfEachVersionStaysReadable: the committed document was written by the first
// program of version 1. Later programs may add fields; none of its values is lost.
func TestADocumentOfEachVersionStaysReadable(t *testing.T) {
	for version, text := range map[string][]byte{"1": committed(t), "2": ofVersion2(t)} {
		d, err := capture.Decode(text)
		if err != nil {
			t.Fatal(err)
		}
		again, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		var before, after any
		if err := errors.Join(json.Unmarshal(text, &before), json.Unmarshal(again, &after)); err != nil {
			t.Fatal(err)
		}
		if lost := lostIn("", before, after); lost != "" {
			t.Errorf("%s of the document of version %s is lost, or has another value: write a further version, and read this one", lost, version)
		}
		if loaded := d.Loaded(); len(loaded.Refused) != len(d.Refused) {
			t.Errorf("version %s: a leader loads %d refused units of %d", version, len(loaded.Refused), len(d.Refused))
		}
	}
}

// lostIn is the path of the first value of before that after does not have, "" for none.
func lostIn(path string, before, after any) string {
	switch b := before.(type) {
	case map[string]any:
		a, _ := after.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(b)) {
			if lost := lostIn(path+"."+name, b[name], a[name]); lost != "" {
				return lost
			}
		}
		return ""
	case []any:
		a, _ := after.([]any)
		if len(a) != len(b) {
			return path
		}
		for i := range b {
			if lost := lostIn(fmt.Sprintf("%s[%d]", path, i), b[i], a[i]); lost != "" {
				return lost
			}
		}
		return ""
	}
	if before != after {
		return path
	}
	return ""
}

func TestDocumentsThatNobodyCanHaveWrittenAreRefused(t *testing.T) {
	text := string(committed(t))
	for name, c := range map[string]struct{ from, to, want string }{
		"another format":       {`"format":"muster.io/snapshot"`, `"format":"x"`, `format "x" version 1`},
		"a later version":      {`"version":1`, `"version":3`, "version 3"},
		"no version":           {`"version":1`, `"version":0`, "version 0"},
		"a newer field":        {`"version":1,`, `"version":1,` + refusals, "refused: 2 units in a document of version 1"},
		"units out of order":   {`"version":1,`, `"version":2,"refused":[{"unit":"b"},{"unit":"a"}],`, "units ascend"},
		"negative attempts":    {`"version":1,`, `"version":2,"refused":[{"unit":"b","times":-1}],`, "times: -1 is outside"},
		"no attempt":           {`"version":1,`, `"version":2,"refused":[{"unit":"b","avoid":{"n0001":0}}],`, "avoid: 0 attempts on n0001"},
		"no revision":          {`"revision":`, `"revision":-`, "want a revision from 1"},
		"no such machine":      {`"machine":0`, `"machine":7`, "machine: 7, and there are"},
		"another kind of keys": {`"key":"/registry/units/`, `"key":"/registry/auth/`, "keys ascend"},
		"members without end":  {`"members":1,"document"`, `"members":9223372036854775807,"document"`, "members: 9223372036854775807 is outside 1..4096"},
		"a negative turn":      {`"turn":{`, `"turn":{"atOnce":-1},"other":{`, "turn:"},
	} {
		changed := strings.Replace(text, c.from, c.to, 1)
		if name == "no revision" {
			changed = strings.Replace(text, `"revision":`, `"revision":-`, 1)
		}
		if changed == text {
			t.Errorf("%s: the document has no %s", name, c.from)
			continue
		}
		if _, err := capture.Decode([]byte(changed)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// FuzzDecode: whatever Decode takes is written and read again.
func FuzzDecode(f *testing.F) {
	f.Add(committed(f))
	f.Add(ofVersion2(f))
	f.Add([]byte(`{"format":"muster.io/snapshot","version":1}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := capture.Decode(text)
		if err != nil {
			return
		}
		again, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := capture.Decode(again); err != nil {
			t.Fatalf("%v, of\n%s", err, again)
		}
	})
}
