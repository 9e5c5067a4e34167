package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// hinted are the commands that a text advises: between backquotes, or up to the
// verb or the mark that goes on with the sentence.
var hinted = regexp.MustCompile("`(muster [^`]+)`|[;:,(] (muster [a-z][^;,)`]*?)(?: (?:shows|says|sets|makes|ends|chooses|changes|adds)\\b|[;,)\n]|$)")

func hints(text string) []string {
	var found []string
	for _, m := range hinted.FindAllStringSubmatch(text, -1) {
		if command := strings.TrimSpace(m[1] + m[2]); !slices.Contains(found, command) {
			found = append(found, command)
		}
	}
	return found
}

// TestHintsAreCommands reads each hint of the golden texts: its verb, its flags
// and the number of its arguments are those of a command.
func TestHintsAreCommands(t *testing.T) {
	files, err := filepath.Glob("testdata/transcripts/*")
	if err != nil {
		t.Fatal(err)
	}
	of, err := filepath.Glob("../../../coordinator/rest/testdata/transcripts/*")
	if err != nil || len(of) == 0 {
		t.Fatalf("no golden texts of package rest: %v", err)
	}
	count := 0
	for _, path := range append(files, of...) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			for _, hint := range hints(line) {
				count++
				root := New(Program{Env: func(string) string { return "" }})
				if strings.HasPrefix(hint, "muster dev") {
					continue // the program's main adds that command
				}
				cmd, rest, err := root.Find(strings.Fields(hint)[1:])
				if err != nil || cmd == root {
					t.Errorf("%s: %q names no command: %v", path, hint, err)
					continue
				}
				if err := cmd.ParseFlags(rest); err != nil {
					t.Errorf("%s: %q: %v", path, hint, err)
				} else if err := cmd.ValidateArgs(cmd.Flags().Args()); err != nil {
					t.Errorf("%s: %q: %v", path, hint, err)
				}
			}
		}
	}
	if count < 20 {
		t.Errorf("%d hints were found, want at least 20: does the expression still match them?", count)
	}
}

// TestHintsCanBePasted makes the texts that advise a command speak of objects in
// a namespace that is not the default, and runs what they advise as it stands.
func TestHintsCanBePasted(t *testing.T) {
	s := newShell(t, newServer(t))
	job := func(name, cpu string) string {
		return `{"apiVersion": "muster/v1", "kind": "Job", "metadata": {"name": "` + name + `", "namespace": "ml"}, "spec": {"parallelism": 2, "template": {"spec": {"resources": {"requests": {"cpu": "` + cpu + `", "memory": "1Gi"}}}}}}`
	}
	for _, step := range []struct {
		stdin string
		args  string
		wants string // among the hints; "" = none is wanted
	}{
		{job("fill", "12"), "submit -f - --wait", ""},
		{job("waits", "7"), "submit -f -", ""},
		{"", "get job waits -n ml -o yaml", "muster why waits -n ml"},
		{"", "describe job waits -n ml", "muster why waits -n ml"},
		{"", "describe allocation waits-0 -n ml", "muster why waits -n ml"},
		{"", "submit -f - --wait --timeout 1ms", "muster why more -n ml"},
		{"", "why waits -n ml", ""},
		{"", "why nothing -n ml", "muster get jobs -A"},
		{"", "quota explain ml/nothing", "muster get jobs -A"},
		{"", "quota get rq nothing -n ml", "muster quota get resourcequotas -n ml"},
		{"", "quota delete rq nothing -n ml", "muster quota get resourcequotas -n ml"},
		// Under a context of another namespace even the default one has to be named.
		{strings.ReplaceAll(job("plain", "7"), `"namespace": "ml"`, `"namespace": "default"`), "submit -f -", ""},
		{"", "config set-context test --namespace lab", ""},
		{"", "get job plain -n default -o yaml", "muster why plain -n default"},
		{"", "describe job plain -n default", "muster why plain -n default"},
		{"", "quota get rq nothing -n default", "muster quota get resourcequotas -n default"},
	} {
		stdin := step.stdin
		if strings.Contains(step.args, "--timeout") {
			stdin = job("more", "7")
		}
		_, stdout, stderr := s.run(t.Context(), stdin, strings.Fields(step.args)...)
		found := hints(stdout + stderr)
		if step.wants != "" && !slices.Contains(found, step.wants) {
			t.Errorf("muster %s: hints %q, want %q among them\n%s%s", step.args, found, step.wants, stdout, stderr)
		}
		for _, hint := range found {
			if code, _, stderr := s.run(t.Context(), "", strings.Fields(hint)[1:]...); code != ExitDone {
				t.Errorf("muster %s advises %q, which exits %d: %s", step.args, hint, code, stderr)
			}
		}
	}
}
