package storydoc_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/test/storydoc"
)

// TestADocumentHasAllOptionsOfItsLine, as the product decodes the document.
func TestADocumentHasAllOptionsOfItsLine(t *testing.T) {
	for line, want := range map[string]string{
		"Allocation gpus=4 queue=q":         "queue q, group , 1 together",
		"Allocation gpus=1 group=train/3":   "queue , group train, 3 together",
		"Job members=5 gpus=2 gang=2":       "5 members, onMemberLost ",
		"Job sets=lead:1:0+work:2:8":        "3 members, onMemberLost ",
		"Job members=2 gpus=1 lost=Replace": "2 members, onMemberLost Replace",
	} {
		words, options := strings.Fields(line), map[string]string{}
		for _, w := range words[1:] {
			key, value, _ := strings.Cut(w, "=")
			options[key] = value
		}
		text, got := []byte(storydoc.Document(words[0], "a", options)), ""
		if words[0] == "Job" {
			j, status := api.DecodeJob(text)
			if status != nil {
				t.Fatal(status)
			}
			got = fmt.Sprintf("%d members, onMemberLost %s", j.Members(), j.Spec.OnMemberLost)
		} else {
			a, status := api.DecodeAllocation(text)
			if status != nil {
				t.Fatal(status)
			}
			got = fmt.Sprintf("queue %s, group %s, %d together", a.Spec.Queue, a.Group().ID, a.Group().MinMembers)
		}
		if got != want {
			t.Errorf("%s makes %q, want %q", line, got, want)
		}
	}
}
