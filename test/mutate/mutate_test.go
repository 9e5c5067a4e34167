package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

var root = filepath.Join("..", "..")

// A list has to name lines that are there: else it would go stale unnoticed,
// since `make mutate` is not part of `make test`.
func TestEveryMutationFitsTheCode(t *testing.T) {
	all, err := readLists("lists")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(m.file)))
		if err != nil {
			t.Errorf("%s: %v", m.at, err)
			continue
		}
		mutated, err := m.apply(string(text))
		if err != nil {
			t.Error(err)
			continue
		}
		if mutated == string(text) {
			t.Errorf("%s: %q changes nothing", m.at, m.name)
		}
		if _, err := regexp.Compile(m.run); err != nil {
			t.Errorf("%s: %v: go test fails without a test", m.at, err)
		}
	}
}

func TestListsAreReadAndBadOnesRefused(t *testing.T) {
	const good = "# a comment\nmutation: m\nfile: a.go\n- one\n-\ttwo\n+ three\ntests: ./a ./b\nrun: X\nnth: 2\nequivalent: because\n"
	all, err := parse("l", good)
	if err != nil || len(all) != 1 {
		t.Fatalf("%v, %d mutations", err, len(all))
	}
	m := all[0]
	if m.name != "m" || len(m.find) != 2 || m.find[1] != "two" || len(m.tests) != 2 || m.run != "X" || m.nth != 2 || m.equivalent != "because" {
		t.Errorf("read %+v", m)
	}
	for name, c := range map[string]struct{ text, want string }{
		"an unknown field":   {"mutation: m\nfile: a.go\n- x\ntests: .\nwhy: not", `l:5: "why: not" is no field`},
		"no lines":           {"mutation: m\nfile: a.go\ntests: .", "l:1: a mutation needs"},
		"no number of place": {"mutation: m\nfile: a.go\n- x\ntests: .\nnth: two", "l:5: strconv.Atoi"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := parse("l", c.text); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestAPlaceThatIsNotThereOrNotTheOnlyOneIsAnError(t *testing.T) {
	m := mutation{file: "a.go", find: []string{"x"}, replace: []string{"y"}}
	for text, want := range map[string]string{"z": "at 0 places", "x\nx": "at 2 places"} {
		if _, err := m.apply(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
	m.nth = 2
	if got, err := m.apply("x\n\tx\nz"); err != nil || got != "x\ny\nz" {
		t.Errorf("the second place: %q, %v", got, err)
	}
}

// sample is a module with a test that looks at one of two functions.
var sample = map[string]string{
	"go.mod":      "module example.org/sample\n\ngo 1.26\n",
	"p/p.go":      "package p\n\nfunc Tested() int {\n\treturn 1\n}\n\nfunc Untested() int {\n\treturn 2\n}\n",
	"p/p_test.go": "package p\n\nimport \"testing\"\n\nfunc TestP(t *testing.T) {\n\tif Tested() != 1 {\n\t\tt.Fail()\n\t}\n}\n",
	"test/mutate/lists/p.txt": `mutation: a tested value
file: p/p.go
- return 1
+ return 3
tests: ./p

mutation: an untested value
file: p/p.go
- return 2
+ return 3
tests: ./p

mutation: an untested value that is the same
file: p/p.go
- return 2
+ return 1 + 1
tests: ./p
equivalent: the sum is the same

mutation: no code
file: p/p.go
- return 2
+ return nothing
tests: ./p
`,
}

// writeFiles returns a folder with the files.
func writeFiles(t *testing.T, files map[string]string) (dir string) {
	dir = t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestSurvivorsAreNamed(t *testing.T) {
	dir := writeFiles(t, sample)
	var out bytes.Buffer
	all, err := readLists(filepath.Join(dir, "test", "mutate", "lists"))
	if err != nil {
		t.Fatal(err)
	}
	survivors, err := run(&out, dir, chosen(all, ""), 2, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if survivors != 2 {
		t.Errorf("%d survivors, want the untested value and the code that does not compile", survivors)
	}
	for _, want := range []string{"p/p.go: a tested value", "SURVIVED", "equivalent: the sum is the same", "INVALID", "undefined: nothing", "1 killed, 0 killed by time, 1 survived, 1 equivalent, 1 do not compile: 50 % noticed"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, out.String())
		}
	}
}
