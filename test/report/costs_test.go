package report

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/test/kept"
)

const table = `
# a comment
package test/chaos waits 30s 90s kills of real processes
package test/failpoints computes 100s 60s every step times every fault
test agent/run TestKills 8s thirteen orders of kills
`

// TestEveryRowNamesATestThatExists keeps costs.txt true when tests move.
func TestEveryRowNamesATestThatExists(t *testing.T) {
	c, err := ReadCosts()
	if err != nil {
		t.Fatal(err)
	}
	today, err := kept.Tests("../..")
	if err != nil {
		t.Fatal(err)
	}
	folders := map[string]bool{}
	for n := range today {
		folders[n.Package] = true
	}
	for _, row := range c.rows {
		if row.Test != "" && !today[kept.Name{Package: row.Folder, Test: row.Test}] {
			t.Errorf("costs.txt has a row for the test %s of %s, which does not exist; delete the row or correct the name", row.Test, row.Folder)
		}
		if row.Test == "" && !folders[row.Folder] {
			t.Errorf("costs.txt has a row for the package %s, which has no test; delete the row or correct the folder", row.Folder)
		}
	}
}

func TestExpensivePackages(t *testing.T) {
	for name, c := range map[string]struct {
		folder string
		cpu    float64
		speed  float64
		want   string
	}{
		"below the limit without a row":                  {"fit", 39, 1, ""},
		"above the limit without a row":                  {"fit", 50, 1, "the tests of github.com/musterd/muster/fit used 50 s of CPU, more than 40 s. Make them cheaper"},
		"above the limit on a slow machine":              {"fit", 50, 1.3, ""},
		"as its row says":                                {"test/failpoints", 100, 1, ""},
		"less than half above its row":                   {"test/failpoints", 149, 1, ""},
		"more than half above its row":                   {"test/failpoints", 151, 1, "used 151 s of CPU, more than 150 s"},
		"more than half above its row, a slow machine":   {"test/failpoints", 151, 1.1, ""},
		"a row below the limit does not lower the limit": {"test/chaos", 39, 1, ""},
		"the row is proposed":                            {"fit", 50, 1, "test/report/costs.txt takes the row `package fit computes 50s 7s REASON`"},
	} {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(costsOf(t).Expensive([]Package{{Path: importPath(c.folder), CPU: c.cpu, Wall: 7}}, c.speed), "\n")
			if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q in it", got, c.want)
			}
		})
	}
}

func TestATestIsSuspectedThenJudgedAlone(t *testing.T) {
	for name, c := range map[string]struct {
		folder, test string
		seconds      float64
		cached       bool
		want         string
	}{
		"below the limit":                        {"fit", "TestA", 4.9, false, ""},
		"above the limit without a row":          {"fit", "TestA", 8, false, "took 8.0 s alone, more than 7.5 s"},
		"above the limit in a cached result":     {"fit", "TestA", 8, true, ""},
		"as its row says":                        {"agent/run", "TestKills", 8, false, ""},
		"more than three times its row":          {"agent/run", "TestKills", 24.5, false, "took 24.5 s alone, more than 24.0 s"},
		"a test of that name in another package": {"agent", "TestKills", 8, false, "more than 7.5 s"},
		"the row is proposed":                    {"fit", "TestA", 8, false, "takes the row `test fit TestA 8s REASON`"},
	} {
		t.Run(name, func(t *testing.T) {
			one := Test{importPath(c.folder), c.test, c.seconds}
			suspects := costsOf(t).Suspects([]Test{one}, []Package{{Path: one.Package, Cached: c.cached}})
			if (len(suspects) > 0) != (c.want != "") {
				t.Fatalf("suspects %v, want %q", suspects, c.want)
			}
			if got := costsOf(t).Slow(one); !c.cached && !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q in it", got, c.want)
			}
		})
	}
}

func TestTheLongestSuspectIsFirst(t *testing.T) {
	got := costsOf(t).Suspects([]Test{{"p", "A", 8}, {"p", "B", 9}, {"p", "C", 8}, {"p", "D", 1}}, nil)
	if diff := cmp.Diff([]Test{{"p", "B", 9}, {"p", "A", 8}, {"p", "C", 8}}, got); diff != "" {
		t.Errorf("suspects (-want +got):\n%s", diff)
	}
}

func TestARowThatIsTooHighIsNamed(t *testing.T) {
	got := costsOf(t).Spare([]Package{{Path: importPath("test/failpoints"), CPU: 40}, {Path: importPath("test/chaos"), CPU: 1}}, 1)
	want := []string{"github.com/musterd/muster/test/failpoints used 40 s of CPU; its row in test/report/costs.txt has 100 s and may be lowered"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

func TestABadRowIsRefused(t *testing.T) {
	for name, line := range map[string]string{
		"no reason":                "package fit computes 50s 7s",
		"neither of the lanes":     "package fit sleeps 50s 7s because",
		"no duration":              "package fit computes 50 7s because",
		"a test without reason":    "test fit TestA 6s",
		"neither package nor test": "folder fit 6s because",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := parseCosts(line); err == nil || !strings.Contains(err.Error(), "costs.txt:1: ") {
				t.Errorf("got %v, want an error of line 1", err)
			}
		})
	}
}

func TestMeasurePrintsTheCPUTimeAndKeepsTheExitCode(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("not permitted here: no sh")
	}
	for command, want := range map[string]int{"exit 0": 0, "exit 3": 3, "kill -KILL $$": 1} {
		t.Run(command, func(t *testing.T) {
			var out strings.Builder
			if code := Measure(&out, []string{sh, "-c", command}); code != want {
				t.Errorf("exit code %d, want %d", code, want)
			}
			if _, ok := parseCPU(out.String()); !ok {
				t.Errorf("the output %q has no CPU time", out.String())
			}
		})
	}
}

func costsOf(t *testing.T) Costs {
	t.Helper()
	c, err := parseCosts(table)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
