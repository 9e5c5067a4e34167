package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/sdk"
)

func TestTheTableOfKubeletGrantsHasALineForEachContainer(t *testing.T) {
	var out bytes.Buffer
	a := &app{Program: Program{Stdout: &out}}
	a.kubeletGrantTable([]sdk.KubeletGrant{
		{Node: "n1", Device: "GPU-a", State: "Free", Since: "2026-03-01T12:00:00Z"},
		{Node: "n1", Device: "GPU-b", State: "Lent", Since: "2026-03-01T12:00:00Z", Containers: []api.KubeletContainer{
			{Namespace: "ml", Pod: "p", Container: "main", Unit: "GPU-b::0"}, {Namespace: "ml", Pod: "q", Container: "main", Unit: "GPU-b::1"},
		}},
	}).write(&out, "")
	var got [][]string
	for line := range strings.Lines(out.String()) {
		got = append(got, strings.Fields(line))
	}
	const since = "2026-03-01T12:00:00Z"
	want := [][]string{
		{"NODE", "DEVICE", "STATE", "NAMESPACE", "POD", "CONTAINER", "SINCE"}, {"n1", "GPU-a", "Free", "<none>", "<none>", "<none>", since},
		{"n1", "GPU-b::0", "Lent", "ml", "p", "main", since}, {"n1", "GPU-b::1", "Lent", "ml", "q", "main", since},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
