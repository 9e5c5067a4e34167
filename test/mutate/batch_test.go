package main

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// body is empty where the mutation cannot be beside the original in a function.
func TestABodyIsTheStatementsOfOneFunction(t *testing.T) {
	const text = "package p\n\nimport \"os\"\n\nvar limit = 7\n\n// F opens.\nfunc F(a int) (err error) {\n\tif a > limit {\n\t\treturn os.ErrExist\n\t}\n\treturn nil\n}\n\nfunc G() {\n\tdefer func() {\n\t\trecover()\n\t}()\n\tF(1)\n\tF(2)\n}\n\nfunc H() {\n\tF(3)\n}\n"
	inF := body{pkg: "p", at: 78, line: 8, results: "(err error)", text: "\nif a < limit {\n\t\treturn os.ErrExist\n\t}\n\treturn nil\n\n"}
	for name, c := range map[string]struct {
		find, replace string
		want          body
	}{
		"statements":              {"if a > limit {", "if a < limit {", inF},
		"no results":              {"F(3)", "F(4)", body{pkg: "p", at: 203, line: 23, text: "\nF(4)\n\n"}},
		"a signature":             {"func F(a int) (err error) {", "func F(a uint) (err error) {", body{}},
		"a variable":              {"var limit = 7", "var limit = 8", body{}},
		"an import":               {`import "os"`, "", body{}},
		"a comment":               {"// F opens.", "// F.", body{}},
		"a function that is gone": {"func H() {", "func F2() {", body{}},
		"no code":                 {"F(3)", "F(3", body{}},
		"recover in a function":   {"F(2)", "F(4)", body{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := mutation{file: "p.go", find: []string{c.find}, replace: []string{c.replace}}.body(text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(body{})); diff != "" {
				t.Errorf("the body (-want +got):\n%s", diff)
			}
		})
	}
}

// A batch leaves out mutations with errors of the compiler, and tests with failures
// without a mutation: here a test of the variable. Lines keep their numbers.
func TestABatchLeavesOutMutationsWithErrorsAndTestsWithFailures(t *testing.T) {
	files := maps.Clone(sample)
	files["p/q_test.go"] = "package p\n\nimport (\n\t\"testing\"\n\n\t\"example.org/sample/q\"\n)\n\nfunc TestAlone(t *testing.T) {\n\tif mutated() {\n\t\tt.Fail()\n\t}\n}\n\nfunc TestLine(t *testing.T) {\n\tif q.Line() != 6 {\n\t\tt.Fail()\n\t}\n}\n"
	files["p/mutated_test.go"] = "package p\n\nimport \"os\"\n\nfunc mutated() bool {\n\t_, batch := os.LookupEnv(\"" + Chosen + "\")\n\treturn batch\n}\n"
	files["q/q.go"] = "package q\n\nimport \"runtime\"\n\nfunc Line() int {\n\t_, _, line, _ := runtime.Caller(0)\n\treturn line\n}\n"
	dir := writeFiles(t, files)
	all := map[int]mutation{
		0: {file: "p/p.go", find: []string{"return 1"}, replace: []string{"return 3"}},
		1: {file: "p/p.go", find: []string{"return 2"}, replace: []string{"return 3"}},
		2: {file: "p/p.go", find: []string{"return 2"}, replace: []string{"return nothing"}},
		3: {file: "q/q.go", find: []string{"return line"}, replace: []string{"return line + 1"}},
		4: {file: "p/p.go", find: []string{"return 1"}, replace: []string{"for {}"}},
	}
	b, err := newBatch(t.Context(), dir, "./p", t.TempDir(), all)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := slices.Sorted(maps.Keys(b.holds)), []int{0, 1, 3, 4}; !slices.Equal(got, want) || b.skip != "^(TestAlone)$" {
		t.Errorf("the batch has %v and skips %q, want %v and TestAlone", got, b.skip, want)
	}
	for number, want := range map[int]outcome{0: killed, 1: "", 2: "", 3: killed} {
		if got, done := b.plant(number, all[number], time.Minute); got.outcome != want || done != (want != "") {
			t.Errorf("mutation %d: %q, %v, want %q", number, got.outcome, done, want)
		}
	}
	if got, done := b.plant(4, all[4], time.Second); got.outcome != hung || !done {
		t.Errorf("an endless mutation: %q, %v, want %q", got.outcome, done, hung)
	}
}
