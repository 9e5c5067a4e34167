package lead

import (
	"fmt"
	"strings"
	"testing"

	"github.com/musterd/muster/api"
)

// A job that one transaction of the store cannot hold is refused with the field and the numbers.
func TestAJobLargerThanATxnIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		ops        int
		spec, want string
	}{
		"as many members as fit":    {128, `"completions":63,"parallelism":4,`, ""},
		"a member more":             {128, `"completions":64,"parallelism":4,`, "422 spec.completions: storing 64 members takes 130 operations, and the store takes 128 in one transaction: ask for 63 members at most, raise etcd's --max-txn-ops, or submit several jobs"},
		"members that all run":      {128, `"parallelism":1000,`, "422 spec.parallelism: storing 1000 members takes 2002 operations, and the store takes 128 in one transaction: ask for 63 members at most, raise etcd's --max-txn-ops, or submit several jobs"},
		"a store with room":         {2048, `"completions":1000,"parallelism":4,`, ""},
		"a store with room for few": {2048, `"completions":1024,"parallelism":1024,`, "422 spec.completions: storing 1024 members takes 2050 operations, and the store takes 2048 in one transaction: ask for 1023 members at most, raise etcd's --max-txn-ops, or submit several jobs"},
	} {
		t.Run(name, func(t *testing.T) {
			rules := sceneRules()
			rules.NamespaceAllocations = 10_000
			x := newSceneOn(t, rules, c.ops)
			document := fmt.Appendf(nil, `{"metadata":{"name":"sweep"},"spec":{%s"template":{"spec":{"resources":{"requests":{"cpu":"1"}}}}}}`, c.spec)
			doc, status := api.DecodeJob(document)
			if status != nil {
				t.Fatal(status)
			}
			s, status := x.submissionOfJob(Submitted{Namespace: "default", Document: document}, doc)
			if status == nil {
				x.do(func() { _, _, status = x.accept(s) })
			}
			got := ""
			if status != nil {
				got = fmt.Sprint(status.Code, " ", status.Message)
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestClipCutsBetweenCharacters(t *testing.T) {
	for _, text := range []string{"", "short", strings.Repeat("x", 600), strings.Repeat("ü", 300), strings.Repeat("世", 200)} {
		got := Clip(text)
		if len(got) > longestForeign || strings.ToValidUTF8(got, "?") != got || len(text) <= longestForeign && got != text {
			t.Errorf("%d bytes became %d: %q", len(text), len(got), got)
		}
	}
}
