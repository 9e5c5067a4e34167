package api

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/resource"
)

// documented is the quota of spec/api-design.txt.
const documented = `{"metadata":{"name":"ml-team-quota","namespace":"ml-team"},"spec":{
	"hard":{"cpu":"10000","memory":"40Ti","nvidia.com/gpu":"100","pods":"5000","persistentvolumeclaims":"200","services":"100"},
	"soft":{"cpu":"8000","memory":"32Ti","nvidia.com/gpu":"80"},
	"scopes":["NotTerminating"],
	"scopeSelector":{"matchExpressions":[{"scopeName":"PriorityClass","operator":"In","values":["high-priority","normal"]}]}}}`

func TestTheDocumentedQuota(t *testing.T) {
	q, status := DecodeResourceQuota([]byte(documented))
	if status != nil {
		t.Fatal(status)
	}
	hard, soft := q.Spec.Limits()
	if diff := cmp.Diff(resource.Vector{"cpu": 10_000_000, "memory": 40 << 40, "nvidia.com/gpu": 100_000, "pods": 5000}, hard); diff != "" {
		t.Errorf("hard (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(resource.Vector{"cpu": 8_000_000, "memory": 32 << 40, "nvidia.com/gpu": 80_000}, soft); diff != "" {
		t.Errorf("soft (-want +got):\n%s", diff)
	}
	if warnings := q.WarnOfClasses(isBuiltIn); warnings != nil {
		t.Errorf("warnings: %v", warnings)
	}
}

func isBuiltIn(class string) bool {
	_, builtIn := BuiltInPriority(class)
	return builtIn
}

func TestAQuotaWarnsOfClassesThatThereAreNot(t *testing.T) {
	q, status := DecodeResourceQuota([]byte(quota(`"hard":{"requests.storage":"100Pi"},"soft":{"requests.storage":5e3},` +
		selector(`"scopeName":"PriorityClass","operator":"NotIn","values":["normal","production"]`))))
	if status != nil {
		t.Fatal(status)
	}
	want := []string{`spec.scopeSelector.matchExpressions[0].values[1]: there is no priority class "production" now`}
	if diff := cmp.Diff(want, q.WarnOfClasses(isBuiltIn)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhichUnitsFallUnderAQuota(t *testing.T) {
	class := func(operator, values string) string {
		return selector(`"scopeName":"PriorityClass","operator":"` + operator + `","values":[` + values + `]`)
	}
	for name, c := range map[string]struct {
		spec, class string
		terminating bool
		want        bool
	}{
		"no scope takes all":                        {`"hard":{}`, "", true, true},
		"one with a deadline is terminating":        {`"scopes":["Terminating"]`, "", true, true},
		"one without is not":                        {`"scopes":["Terminating"]`, "", false, false},
		"not terminating without a deadline":        {`"scopes":["NotTerminating"]`, "", false, true},
		"not terminating with one":                  {`"scopes":["NotTerminating"]`, "", true, false},
		"terminating by selector":                   {selector(`"scopeName":"Terminating","operator":"Exists"`), "", true, true},
		"in the classes":                            {class("In", `"low","normal"`), "normal", false, true},
		"in another class":                          {class("In", `"low"`), "normal", false, false},
		"in no class is in none":                    {class("In", `"low"`), "", false, false},
		"in no class is outside all":                {class("NotIn", `"low"`), "", false, true},
		"a class that is excluded":                  {class("NotIn", `"low"`), "low", false, false},
		"any class":                                 {class("Exists", ``), "low", false, true},
		"any class, and there is none":              {class("Exists", ``), "", false, false},
		"no class":                                  {class("DoesNotExist", ``), "", false, true},
		"no class, and there is one":                {class("DoesNotExist", ``), "low", false, false},
		"the class matches and the deadline doesnt": {`"scopes":["NotTerminating"],` + class("In", `"low"`), "low", true, false},
		"class and deadline match":                  {`"scopes":["NotTerminating"],` + class("In", `"low"`), "low", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			q, status := DecodeResourceQuota([]byte(quota(c.spec)))
			if status != nil {
				t.Fatal(status)
			}
			if got := q.Spec.Matches(c.class, c.terminating); got != c.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestATreeKeepsItsSpecAsWritten(t *testing.T) {
	const spec = `{"nodes": { "A":{"parent":"nil","quota":{"cpu": "10"},"hard":null} }, "resourceNames":["cpu"]}`
	tree, status := DecodeQuotaTree([]byte(`{"kind":"QuotaTree","metadata":{"name":"Test_Tree.1","uid":"x","resourceVersion":"7"},"spec":` + spec + `,"status":{"root":"A"}}`))
	if status != nil {
		t.Fatal(status)
	}
	want := &QuotaTree{
		APIVersion: APIVersion, Kind: KindQuotaTree, Metadata: ObjectMeta{Name: "Test_Tree.1", UID: "x", ResourceVersion: "7"}, Spec: json.RawMessage(spec),
	}
	if diff := cmp.Diff(want, tree); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestUnitsNameTheirGroups(t *testing.T) {
	a, status := DecodeAllocation([]byte(allocation(cpu + `,"quota":{"groups":{"Org":"Research/NLP 2","Services":"b"},"type":-3,"unPreemptable":true}`)))
	if status != nil {
		t.Fatal(status)
	}
	want := &QuotaDemand{Groups: map[string]string{"Org": "Research/NLP 2", "Services": "b"}, Type: -3, Unpreemptable: true}
	if diff := cmp.Diff(want, a.Spec.Quota); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMergePatch(t *testing.T) {
	for name, c := range map[string]struct{ spec, patch, want string }{
		"a member is added":            {`{"a":1}`, `{"spec":{"b":2}}`, `{"a":1,"b":2}`},
		"a member is replaced":         {`{"a":{"x":"1","y":"2"}}`, `{"spec":{"a":{"x":"3"}}}`, `{"a":{"x":"3","y":"2"}}`},
		"null removes":                 {`{"a":{"x":"1","y":"2"}}`, `{"spec":{"a":{"x":null}}}`, `{"a":{"y":"2"}}`},
		"null removes nothing":         {`{"a":1}`, `{"spec":{"b":null}}`, `{"a":1}`},
		"a list is replaced whole":     {`{"a":[1,2]}`, `{"spec":{"a":[3]}}`, `{"a":[3]}`},
		"an object replaces a number":  {`{"a":1}`, `{"spec":{"a":{"x":null,"y":1}}}`, `{"a":{"y":1}}`},
		"nulls within a list stay":     {`{}`, `{"spec":{"a":[null,{"b":null}]}}`, `{"a":[null,{"b":null}]}`},
		"a number keeps its spelling":  {`{"a":1}`, `{"spec":{"a":12345678901234567890.10}}`, `{"a":12345678901234567890.10}`},
		"an empty patch":               {`{"a":1}`, ` {} `, `{"a":1}`},
		"an object replaces a list":    {`{"a":[{"b":"c"}]}`, `{"spec":{"a":{"b":"d"}}}`, `{"a":{"b":"d"}}`},
		"an escaped name is that name": {`{"a":1}`, `{"spec":{"\u0061":2}}`, `{"a":2}`},
	} {
		t.Run(name, func(t *testing.T) {
			merged, status := MergePatch(&QuotaTree{Metadata: ObjectMeta{Name: "T"}, Spec: json.RawMessage(c.spec)}, []byte(c.patch))
			if status != nil {
				t.Fatal(status)
			}
			tree, status := DecodeQuotaTree(merged)
			if status != nil || string(tree.Spec) != c.want {
				t.Errorf("%v, got %s, want %s", status, merged, c.want)
			}
		})
	}
	for patch, want := range map[string]string{
		`[]`:                          `line 1, column 1: want an object {…}, found '['`,
		``:                            `line 1, column 1: want an object {…}, found the end of the document`,
		`{"spec":{}} x`:               `line 1, column 13: want the end of the patch, found 'x'`,
		`{"spec":{"a":1,"a":2}}`:      `spec.a: the key is given twice`,
		`{"spec":` + "\"\xff\"}":      `the patch is not valid UTF-8`,
		strings.Repeat(`{"a":`, 1000): strings.TrimPrefix(strings.Repeat(".a", 33), ".") + `: nested deeper than 32`,
	} {
		if merged, status := MergePatch(&ResourceQuota{}, []byte(patch)); status == nil || status.Code != 400 || status.Message != want {
			t.Errorf("%q: got %s, %v; want %s", patch, merged, status, want)
		}
	}
	if _, status := MergePatch(&ResourceQuota{}, []byte(strings.Repeat(" ", MaxDocument+1))); status == nil || status.Code != 413 {
		t.Errorf("an oversized patch: %v", status)
	}
}

// fuzzDocument holds decoders to what all of them promise.
func fuzzDocument[T any](f *testing.F, decode func([]byte) (*T, *Status), good ...string) {
	for _, name := range sortedKeys(badDocuments) {
		f.Add([]byte(badDocuments[name]))
	}
	for _, doc := range good {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		v, status := decode(doc)
		if status != nil {
			refusedWell(t, status)
			return
		}
		again := reencode(t, v)
		w, status := decode(again)
		if status != nil {
			t.Fatalf("%q: accepted, but its own encoding %s is not: %v", doc, again, status)
		}
		if string(reencode(t, w)) != string(again) {
			t.Fatalf("%q: decoding and encoding again changed %s", doc, again)
		}
	})
}

func FuzzDecodeResourceQuota(f *testing.F) {
	fuzzDocument(f, DecodeResourceQuota, documented, quota(`"hard":{"cpu":1.5,"services":"1e3"}`))
}

func FuzzDecodeQuotaTree(f *testing.F) {
	fuzzDocument(f, DecodeQuotaTree, `{"kind":"QuotaTree","metadata":{"name":"T"},"spec":{"nodes":{"A":{"parent":null,"quota":{"cpu":-1e5}}},"x":["\u0041",true,null]}}`)
}

func FuzzDecodeQuotaForest(f *testing.F) {
	fuzzDocument(f, DecodeQuotaForest, forest("F", `"trees":["Org","Services"]`))
}

func FuzzDecodeQuotaBinding(f *testing.F) {
	fuzzDocument(f, DecodeQuotaBinding, binding("ml-team", `"forest":"F","groups":{"Org":"nlp"},"admission":"queue"`))
}

func FuzzDecodeReclaimOptions(f *testing.F) {
	decode := func(doc []byte) (*ReclaimOptions, *Status) {
		o, status := DecodeReclaimOptions(doc)
		return &o, status
	}
	fuzzDocument(f, decode, "", `{"gracePeriodSeconds":0}`, `{"gracePeriodSeconds":86400}`, `{"gracePeriodSeconds":1e1}`)
}

func FuzzDecodePreemption(f *testing.F) {
	decode := func(doc []byte) (*PreemptionRequest, *Status) {
		p, status := DecodePreemption(doc)
		return &p, status
	}
	fuzzDocument(f, decode, "", `{"targetAllocation":"a"}`, `{"targetAllocation":"a","gracePeriodSeconds":0,"reason":"r","initiatedBy":"i"}`)
}

func FuzzDecodeDrainOptions(f *testing.F) {
	decode := func(doc []byte) (*DrainOptions, *Status) {
		o, status := DecodeDrainOptions(doc)
		return &o, status
	}
	fuzzDocument(f, decode, "", `{"gracePeriodSeconds":300,"deleteEmptyDirData":true,"ignoreDaemonSets":true,"force":false,"reason":"r"}`)
}

// FuzzMergePatch: a patch that is accepted leaves a document, and changes
// nothing when it is applied again.
func FuzzMergePatch(f *testing.F) {
	for _, patch := range []string{`{"spec":{"nodes":{"A":null}}}`, `{"metadata":{"labels":{"a":"b"}},"spec":{"nodes":{"B":{"quota":[1]}}}}`, `{"spec":"x"}`, `{"":{"":null}}`} {
		f.Add([]byte(patch))
	}
	f.Fuzz(func(t *testing.T, patch []byte) {
		target := &QuotaTree{Metadata: ObjectMeta{Name: "T"}, Spec: json.RawMessage(`{"nodes":{"A":{"quota":{"cpu":"1"}}}}`)}
		merged, status := MergePatch(target, patch)
		if status != nil {
			refusedWell(t, status)
			return
		}
		if !json.Valid(merged) {
			t.Fatalf("%q makes %s", patch, merged)
		}
		tree, status := DecodeQuotaTree(merged)
		if status != nil {
			return
		}
		again, status := MergePatch(tree, patch)
		if status != nil {
			t.Fatalf("%q: the second time: %v", patch, status)
		}
		if twice, status := DecodeQuotaTree(again); status != nil || cmp.Diff(tree, twice) != "" {
			t.Fatalf("%q: the second time: %v\n%s", patch, status, cmp.Diff(tree, twice))
		}
	})
}

func ExampleResourceQuotaSpec_Limits() {
	q, _ := DecodeResourceQuota([]byte(`{"metadata":{"name":"q"},"spec":{"hard":{"cpu":"64","memory":"1Ti","services":"5"}}}`))
	hard, _ := q.Spec.Limits()
	fmt.Println(hard)
	// Output: map[cpu:64000 memory:1099511627776]
}
