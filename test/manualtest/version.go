package manualtest

import (
	"encoding/json"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/cmd/buildinfo"
)

// Version checks that a program without a server writes its version as all programs
// do: one line by --version and version, and the same document in JSON and YAML.
func Version(t *testing.T, program string, run func(args ...string) (code int, stdout, stderr string)) {
	t.Helper()
	for _, args := range [][]string{{"--version"}, {"version"}, {"version", "-o", "text"}} {
		code, stdout, stderr := run(args...)
		if want := program + " " + buildinfo.Version() + "\n"; code != 0 || stdout != want || stderr != "" {
			t.Errorf("%q: exit %d, %q and %q; want %q", args, code, stdout, stderr, want)
		}
	}
	for _, format := range []string{"json", "yaml"} {
		code, stdout, stderr := run("version", "-o", format)
		doc, err := yaml.YAMLToJSONStrict([]byte(stdout))
		if format == "json" {
			doc, err = []byte(stdout), nil
		}
		var got api.Version
		if err == nil {
			err = json.Unmarshal(doc, &got)
		}
		if want := buildinfo.Describe(buildinfo.Version()); code != 0 || err != nil || got != want || stderr != "" {
			t.Errorf("version -o %s: exit %d, %v, %+v and %q; want %+v", format, code, err, got, stderr, want)
		}
	}
	if code, stdout, stderr := run("version", "more"); code != 2 || stdout != "" || stderr == "" {
		t.Errorf("version more: exit %d, %q and %q", code, stdout, stderr)
	}
}
