package decisions_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/coordinator/decisions"
)

// TestFormat1IsRead: files of format 1 are checked and shown as by the programs
// that wrote them. testdata/format1 was recorded with these.
func TestFormat1IsRead(t *testing.T) {
	c := decisions.NewChecker()
	h := c.Follow("ns/u2")
	for _, file := range []string{"honest.jsonl", "wrong.jsonl"} {
		replay(t, c, filepath.Join("testdata", "format1", file))
	}
	got, err := json.MarshalIndent(map[string]any{"report": c.Report(), "history": h.Moments}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/format1/report.json")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)+"\n"); diff != "" {
		t.Errorf("report and history (-want +got):\n%s", diff)
	}
}

// TestFormatsFollowEachOther: a coordinator that was upgraded goes on in format 2.
func TestFormatsFollowEachOther(t *testing.T) {
	c := decisions.NewChecker()
	replay(t, c, "testdata/format1/honest.jsonl")
	placements := c.Report().Placements
	c.File("new")
	c.Line(decisions.Header())
	s := newScene()
	s.offer(key(0, 1), 1)
	s.pass()
	for _, r := range s.log {
		c.Line(decisions.Encode(r))
	}
	if r := c.Report(); !r.OK() || r.Placements != placements+1 || r.Verified != r.Placements {
		t.Errorf("%d placements, %d verified, before %d; violations %v", r.Placements, r.Verified, placements, r.Violations)
	}
	if _, err := decisions.Decode(decisions.Version, []byte(`{"seq":1,"skip":{"first":"u","why":{"why":"infeasible","generation":1}}}`)); err == nil {
		t.Error("format 2 takes a record of format 1")
	}
	if _, err := decisions.Decode(1, []byte(`{"seq":1,"offer":{"unit":"u","class":1}}`)); err == nil {
		t.Error("format 1 takes a record of format 2")
	}
}

func replay(t *testing.T, c *decisions.Checker, name string) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	c.File(filepath.ToSlash(name))
	for line := range bytes.Lines(text) {
		c.Line(line)
	}
}

// Counted resources came with format 4: a file of an earlier format that has them is not
// what it says.
func TestCountedResourcesAreOfFormat4(t *testing.T) {
	for _, field := range []string{`"full":true`, `"counted":true`, `"counted":true,"counts":[{"name":"pods","amount":1}]`} {
		line := fmt.Appendf(nil, `{"seq":1,"event":{"kind":"grew","nodes":[{"node":"n1",%s}]}}`, field)
		for version := 2; version <= decisions.Version; version++ {
			if _, err := decisions.Decode(version, line); (err == nil) != (version >= 4) {
				t.Errorf("format %d, %s: %v", version, field, err)
			}
		}
	}
	if _, err := decisions.Decode(4, []byte(`{"seq":1,"event":{"kind":"grew","nodes":[{"node":"n1","counts":[{"name":"pods","amount":1}]}]}}`)); err == nil {
		t.Error("counts that are not given are accepted")
	}
}

// Classes that join gangs and classes that would borrow came with format 5.
func TestJoiningAndBorrowingAreOfFormat5(t *testing.T) {
	for _, line := range []string{
		`{"seq":1,"class":{"id":1,"members":1,"request":{},"namespace":"a","right":"lower","subject":{"group":"job/a"},"joins":true}}`,
		`{"seq":1,"sleep":{"class":1,"code":"no-victims","trees":["t"],"borrows":true}}`,
	} {
		for version := 2; version <= decisions.Version; version++ {
			if _, err := decisions.Decode(version, []byte(line)); (err == nil) != (version >= 5) {
				t.Errorf("format %d, %s: %v", version, line, err)
			}
		}
	}
	for line, want := range map[string]string{
		`{"seq":1,"class":{"id":1,"members":1,"request":{},"namespace":"a","right":"lower","joins":true}}`: "class.joins",
		`{"seq":1,"sleep":{"class":1,"code":"over-tree","trees":["t"],"borrows":true}}`:                    "sleep.borrows",
	} {
		if _, err := decisions.Decode(decisions.Version, []byte(line)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
}
