package cli

import (
	"fmt"
	"strings"
	"testing"
)

// TestDeleteBySelectorIsOneRequest deletes the allocations of a label, after a dry
// run that deletes none.
func TestDeleteBySelectorIsOneRequest(t *testing.T) {
	s := newShell(t, newServer(t))
	const labelled = "---\nmetadata: {name: %s, labels: {app: web}}\nspec: {resources: {requests: {cpu: '1'}}}\n"
	docs := fmt.Sprintf(labelled, "one") + fmt.Sprintf(labelled, "two") + "---\nmetadata: {name: other}\nspec: {resources: {requests: {cpu: '1'}}}\n"
	if code, _, stderr := s.run(t.Context(), docs, "submit", "-f", "-"); code != ExitDone {
		t.Fatal(stderr)
	}
	for _, step := range []struct {
		args           []string
		code           int
		stdout, stderr string
	}{
		{[]string{"delete", "jobs", "-l", "app=web", "--dry-run", "server"}, ExitMisused, "", "--dry-run=server is for allocations by -l"},
		{[]string{"delete", "allocations", "-l", "app=web", "--dry-run", "server"}, ExitDone, "allocation \"one\" deleted (server dry run)\nallocation \"two\" deleted (server dry run)\n", "2 allocations, which hold cpu 2"},
		{[]string{"get", "allocation", "one", "-o", "name"}, ExitDone, "allocation/one\n", ""},
		{[]string{"delete", "allocations", "-l", "app=web", "--wait", "-o", "name"}, ExitDone, "allocation/one\nallocation/two\n", ""},
		{[]string{"get", "allocations", "-o", "name"}, ExitDone, "allocation/other\n", ""},
		{[]string{"delete", "allocations", "-l", "app=web"}, ExitDone, "", "no allocations found in namespace default"},
		{[]string{"delete", "allocation", "other", "--grace-period=soon"}, ExitMisused, "", "want whole seconds up to a day"},
		{[]string{"delete", "allocation", "other", "--grace-period=1", "--wait", "-o", "name"}, ExitDone, "allocation/other\n", ""},
	} {
		code, stdout, stderr := s.run(t.Context(), "", step.args...)
		if code != step.code || stdout != step.stdout || !strings.Contains(stderr, step.stderr) {
			t.Errorf("%s: exit %d, %q and %q; want %d, %q and %q", strings.Join(step.args, " "), code, stdout, stderr, step.code, step.stdout, step.stderr)
		}
	}
}
