package alone_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/musterd/muster/cmd/muster/alone"
	"github.com/musterd/muster/coordinator/capture"
)

// TestASnapshotThatContradictsItselfIsAnError: a file may have values that no store has.
func TestASnapshotThatContradictsItselfIsAnError(t *testing.T) {
	text, err := os.ReadFile("../../../coordinator/capture/testdata/snapshot.json")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ from, to, want string }{
		"as it was written":   {"", "", ""},
		"a charge to no tree": {`"charges":[{"tree":"namespaces"`, `"charges":[{"tree":""`, "the snapshot contradicts itself"},
		"memory of no amount": {`"memory":[{"node":7,"bytes":49392123904}`, `"memory":[{"node":7,"bytes":0}`, "the snapshot contradicts itself"},
	} {
		at := strings.Index(string(text), c.from)
		if at < 0 {
			t.Errorf("%s: the document has no %s", name, c.from)
			continue
		}
		d, err := capture.Decode([]byte(string(text[:at]) + c.to + string(text[at+len(c.from):])))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, err = alone.Replay(d, "", nil, 10*time.Second); (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
