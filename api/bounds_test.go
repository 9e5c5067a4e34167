package api

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// entries is a JSON object with n members.
func entries(n int, value string) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"k%d":%s`, i, value)
	}
	return "{" + b.String() + "}"
}

// repeated is a JSON array of n equal elements.
func repeated(n int, element string) string {
	return "[" + strings.TrimSuffix(strings.Repeat(element+",", n), ",") + "]"
}

// Every list and map of a document has a bound, and the refusal names the field,
// its entries and the bound.
func TestDocumentsWithTooManyEntriesAreRefused(t *testing.T) {
	const spec = `"resources":{"requests":{"cpu":"1"}}`
	allocation := func(meta, more string) string {
		return `{"metadata":{"name":"a"` + meta + `},"spec":{` + spec + more + `}}`
	}
	expression := `{"key":"k","operator":"In","values":%s}`
	one := fmt.Sprintf(expression, `["v"]`)
	for name, c := range map[string]struct {
		doc  func(n int) string
		most int
		want string
	}{
		"labels":      {func(n int) string { return allocation(`,"labels":`+entries(n, `"v"`), "") }, MaxLabels, "metadata.labels"},
		"annotations": {func(n int) string { return allocation(`,"annotations":`+entries(n, `"v"`), "") }, MaxAnnotations, "metadata.annotations"},
		"a node selector": {func(n int) string { return allocation("", `,"scheduling":{"nodeSelector":`+entries(n, `"v"`)+`}`) },
			MaxLabels, "spec.scheduling.nodeSelector"},
		"tolerations": {func(n int) string {
			return allocation("", `,"scheduling":{"tolerations":`+repeated(n, `{"operator":"Exists"}`)+`}`)
		}, MaxTolerations, "spec.scheduling.tolerations"},
		"terms": {func(n int) string {
			return allocation("", `,"scheduling":{"affinity":{"nodeAffinity":{"requiredDuringScheduling":{"nodeSelectorTerms":`+
				repeated(n, `{"matchExpressions":[`+one+`]}`)+`}}}}`)
		}, MaxTerms, "spec.scheduling.affinity.nodeAffinity.requiredDuringScheduling.nodeSelectorTerms"},
		"expressions": {func(n int) string {
			return allocation("", `,"scheduling":{"affinity":{"nodeAffinity":{"requiredDuringScheduling":{"nodeSelectorTerms":[{"matchExpressions":`+
				repeated(n, one)+`}]}}}}`)
		}, MaxTerms, "matchExpressions"},
		"values of an expression": {func(n int) string {
			return allocation("", `,"scheduling":{"affinity":{"nodeAffinity":{"requiredDuringScheduling":{"nodeSelectorTerms":[{"matchExpressions":[`+
				fmt.Sprintf(expression, repeated(n, `"v"`))+`]}]}}}}`)
		}, MaxValues, "matchExpressions[0].values"},
		"preferred terms": {func(n int) string {
			return allocation("", `,"scheduling":{"affinity":{"nodeAffinity":{"preferredDuringScheduling":`+
				repeated(n, `{"weight":1,"preference":{"matchExpressions":[`+one+`]}}`)+`}}}`)
		}, MaxTerms, "preferredDuringScheduling"},
		"trees that it is charged to": {func(n int) string { return allocation("", `,"quota":{"groups":`+entries(n, `"g"`)+`}`) },
			MaxForestTrees, "spec.quota.groups"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, status := DecodeAllocation([]byte(c.doc(c.most))); status != nil {
				t.Errorf("%d entries are refused: %s", c.most, status.Message)
			}
			_, status := DecodeAllocation([]byte(c.doc(c.most + 1)))
			if status == nil {
				t.Fatalf("%d entries are taken", c.most+1)
			}
			numbers := fmt.Sprintf("%d entries, the limit is %d", c.most+1, c.most)
			if status.Code != 422 || !strings.Contains(status.Message, c.want) || !strings.Contains(status.Message, numbers) {
				t.Errorf("refused with %d %q, want 422 with %s and %q", status.Code, status.Message, c.want, numbers)
			}
		})
	}
	t.Run("resources", func(t *testing.T) {
		_, status := DecodeAllocation([]byte(`{"metadata":{"name":"a"},"spec":{"resources":{"limits":` + entries(MaxResources+1, `"1"`) + `}}}`))
		if status == nil || status.Code != 422 || !strings.Contains(status.Message, "spec.resources.limits: 65 entries") {
			t.Errorf("refused with %+v", status)
		}
	})
	t.Run("resources of a quota", func(t *testing.T) {
		quota := func(n int) []byte {
			return []byte(`{"metadata":{"name":"q"},"spec":{"hard":` + entries(n, `"1"`) + `}}`)
		}
		if _, status := DecodeResourceQuota(quota(MaxQuotaResources)); status != nil {
			t.Errorf("%d are refused: %s", MaxQuotaResources, status.Message)
		}
		if _, status := DecodeResourceQuota(quota(MaxQuotaResources + 1)); status == nil || status.Code != 422 || !strings.Contains(status.Message, "spec.hard: 257 entries") {
			t.Errorf("refused with %+v", status)
		}
	})
}

// A document of a megabyte does not become a value of many: the decoder stops.
func TestDocumentsWithTooManyValuesAreRefusedWhileDecoding(t *testing.T) {
	for name, doc := range map[string]string{
		"labels":          `{"metadata":{"name":"a","labels":` + entries(70_000, `""`) + `}}`,
		"an endless list": `{"spec":{"scheduling":{"tolerations":` + repeated(300_000, `{}`) + `}}}`,
	} {
		if len(doc) > MaxDocument {
			t.Fatalf("%s: %d bytes", name, len(doc))
		}
		_, status := DecodeAllocation([]byte(doc))
		if status == nil || status.Code != 422 || !strings.Contains(status.Message, "more than 65536 values") {
			t.Errorf("%s: refused with %+v", name, status)
		}
	}
	tree := `{"metadata":{"name":"t"},"spec":{"nodes":` + repeated(300_000, `1`) + `}}`
	if _, status := DecodeQuotaTree([]byte(tree)); status == nil || status.Code != 422 {
		t.Errorf("a tree of many values: refused with %+v", status)
	}
	if !json.Valid([]byte(tree)) {
		t.Error("the tree is not JSON")
	}
}

// A document that was accepted before there were bounds is still read.
func TestStoredDocumentsAreReadWithoutBounds(t *testing.T) {
	labels := `"labels":` + entries(1000, `"v"`)
	spec := `"spec":{"resources":{"requests":{"cpu":"1"}}}`
	if a, status := StoredAllocation([]byte(`{"metadata":{"name":"a",` + labels + `},` + spec + `}`)); status != nil || len(a.Metadata.Labels) != 1000 {
		t.Errorf("an allocation is not read: %v", status)
	}
	if j, status := StoredJob([]byte(`{"metadata":{"name":"a",` + labels + `},"spec":{"template":{` + spec + `}}}`)); status != nil || len(j.Metadata.Labels) != 1000 {
		t.Errorf("a job is not read: %v", status)
	}
}
