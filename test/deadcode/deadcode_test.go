package deadcode

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/test/long"
)

// programs are the mains. muster-dev is cmd/muster with cgo.
var programs = map[string][]string{
	"1": {"./cmd/muster", "./cmd/muster-agent", "./cmd/muster-coordinator", "./cmd/muster-launch", "./cmd/muster-shim"},
	"0": {"./cmd/muster", "./cmd/muster-coordinator", "./cmd/muster-launch", "./cmd/muster-shim"},
}

func TestEachFunctionIsCalledByAProgram(t *testing.T) {
	long.Only(t, "deadcode loads the programs of two builds from source, two minutes of CPU; there is no smaller size")
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	tool := filepath.Join(t.TempDir(), "deadcode")
	output(t, filepath.Join(root, "tools"), "1", "go", "build", "-o", tool, "golang.org/x/tools/cmd/deadcode")
	var builds []build
	for cgo, mains := range programs {
		dead, err := read(output(t, root, cgo, tool, append([]string{"-json"}, mains...)...), root)
		if err != nil {
			t.Fatal(err)
		}
		listed := output(t, root, cgo, "go", append([]string{"list", "-deps", "-f", `{{if not .Standard}}{{$d := .Dir}}{{range .GoFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}{{range .CgoFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}{{end}}`}, mains...)...)
		files := map[string]bool{}
		for line := range strings.Lines(string(listed)) {
			if file, below := strings.CutPrefix(strings.TrimSpace(line), root+"/"); below {
				files[file] = true
			}
		}
		if len(files) < 500 {
			t.Fatalf("the programs have %d files of the module, want those of most packages", len(files))
		}
		builds = append(builds, build{dead, files})
	}
	for _, complaint := range judge(deadIn(builds...), kept) {
		t.Error(complaint)
	}
}

// output runs a command and returns the standard output.
func output(t *testing.T, folder, cgo, name string, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	var stderr strings.Builder
	cmd.Dir, cmd.Env, cmd.Stderr = folder, append(os.Environ(), "CGO_ENABLED="+cgo), &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, stderr.String())
	}
	return out
}

func TestDeadFunctionsAreTold(t *testing.T) {
	const json = `[{"Name": "a", "Path": "github.com/musterd/muster/a", "Funcs": [{"Name": "F", "Position": {"File": "/m/a/a.go", "Line": 7}}, {"Name": "T.f", "Position": {"File": "a/b.go", "Line": 3}}]}]`
	dead, err := read([]byte(json), "/m")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"a.F": "a/a.go:7", "a.T.f": "a/b.go:3"}, dead); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
	if _, err := read([]byte("{"), "/m"); err == nil {
		t.Error("half a document is read")
	}
	both := map[string]bool{"a/a.go": true, "a/b.go": true}
	sdk := map[string]string{"sdk.Running": "sdk/wait.go:9", "sdk/allocator.Open": "sdk/allocator/a.go:9"}
	for name, c := range map[string]struct {
		builds []build
		kept   map[string]string
		want   []string // parts of the complaints, in order
	}{
		"both are listed":                  {[]build{{dead, both}}, map[string]string{"a.F": "tests", "a.T.f": "tests"}, nil},
		"a new dead function":              {[]build{{dead, both}}, map[string]string{"a.F": "tests"}, []string{"no program calls a.T.f (a/b.go:3): delete it"}},
		"a row whose function is called":   {[]build{{dead, both}}, map[string]string{"a.F": "tests", "a.T.f": "tests", "b.G": "tests"}, []string{"a program calls b.G"}},
		"a row without a reason":           {[]build{{dead, both}}, map[string]string{"a.F": "", "a.T.f": "tests"}, []string{"the row of a.F"}},
		"the other build reaches both":     {[]build{{dead, both}, {nil, both}}, nil, nil},
		"the other build has not the file": {[]build{{dead, both}, {nil, map[string]bool{"a/a.go": true}}}, nil, []string{"a.T.f"}},
		"the SDK is a library":             {[]build{{sdk, map[string]bool{}}}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := judge(deadIn(c.builds...), c.kept)
			if len(got) != len(c.want) {
				t.Fatalf("%q, want %q", got, c.want)
			}
			for i, part := range c.want {
				if !strings.Contains(got[i], part) {
					t.Errorf("%q, want %q in it", got[i], part)
				}
			}
		})
	}
}
