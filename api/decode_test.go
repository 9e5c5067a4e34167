package api

import (
	"encoding/json"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/resource"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// annotated is an allocation with annotations.
func annotated(annotations, more string) string {
	return `{"metadata":{"name":"a","annotations":{` + annotations + `}},"spec":{` + cpu + more + `}}`
}

const cpu = `"resources":{"requests":{"cpu":"1"}}`

func allocation(spec string) string { return `{"metadata":{"name":"a"},"spec":{` + spec + `}}` }

// asks is a request of names and their amounts in turn.
func asks(pairs ...string) string {
	var list []string
	for i := 0; i+1 < len(pairs); i += 2 {
		list = append(list, fmt.Sprintf("%q:%q", pairs[i], pairs[i+1]))
	}
	return `"resources":{"requests":{` + strings.Join(list, ",") + `}}`
}

func required(expression string) string {
	return cpu + `,"scheduling":{"affinity":{"nodeAffinity":{"requiredDuringScheduling":{"nodeSelectorTerms":[{"matchExpressions":[` +
		expression + `]}]}}}}`
}

func job(fields, member string) string {
	return `{"metadata":{"name":"a"},"spec":{` + fields + `,"template":{"spec":{` + member + `}}}}`
}

func quota(spec string) string { return `{"metadata":{"name":"q"},"spec":{` + spec + `}}` }

func selector(expression string) string {
	return `"scopeSelector":{"matchExpressions":[{` + expression + `}]}`
}

func forest(name, spec string) string {
	return `{"metadata":{"name":"` + name + `"},"spec":{` + spec + `}}`
}

// many joins n documents that are numbered.
func many(n int, format string) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(list, ",")
}

func binding(name, spec string) string { return forest(name, spec) }

func TestDocumentBeyondTheLimitIsRefusedUnread(t *testing.T) {
	_, status := DecodeAllocation([]byte(strings.Repeat(" ", MaxDocument+1)))
	if status == nil || status.Code != 413 {
		t.Fatalf("got %+v, want 413", status)
	}
}

func TestServerFieldsOfASubmissionAreDropped(t *testing.T) {
	a, status := DecodeAllocation([]byte(`{"kind":"Allocation","metadata":{"name":"a","uid":"x","resourceVersion":"7",
		"creationTimestamp":"2024-01-15T10:30:00Z","labels":{"a":"b"}},"spec":{` + cpu + `},"status":{"phase":"Running","nodeId":"n"}}`))
	if status != nil {
		t.Fatal(status)
	}
	want := &Allocation{
		APIVersion: APIVersion, Kind: KindAllocation,
		Metadata: ObjectMeta{Name: "a", Labels: map[string]string{"a": "b"}},
		Spec:     AllocationSpec{Resources: Requirements{Requests: map[resource.Name]string{"cpu": "1"}}},
	}
	if diff := cmp.Diff(want, a); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMemberRequest(t *testing.T) {
	cases := map[string]struct {
		spec string
		want resource.Request
	}{
		"cores, memory and whole devices": {
			`"resources":{"requests":{"cpu":"8000m","memory":"32Gi","nvidia.com/gpu":"4"}}`,
			resource.Request{CPU: 8000, Memory: 32 << 30, GPUs: 4},
		},
		"half a device in milli":                  {`"resources":{"requests":{"nvidia.com/gpu":"500m"}}`, resource.Request{GPUShare: 500}},
		"half a device as a fraction":             {`"resources":{"requests":{"nvidia.com/gpu":"0.5"}}`, resource.Request{GPUShare: 500}},
		"a bare number":                           {`"resources":{"requests":{"cpu":0.25,"nvidia.com/gpu":2}}`, resource.Request{CPU: 250, GPUs: 2}},
		"a whole device written in milli":         {`"resources":{"requests":{"nvidia.com/gpu":"1000m"}}`, resource.Request{GPUs: 1}},
		"a limit alone is the request too":        {`"resources":{"requests":{"cpu":"1"},"limits":{"nvidia.com/gpu":"1"}}`, resource.Request{CPU: 1000, GPUs: 1}},
		"a limit above the request":               {`"resources":{"requests":{"cpu":"1"},"limits":{"cpu":"2"}}`, resource.Request{CPU: 1000}},
		"a fraction of a byte is rounded up":      {`"resources":{"requests":{"memory":"1500m"}}`, resource.Request{Memory: 2}},
		"whole cores":                             {asks("muster.io/cores", "8"), resource.Request{Cores: 8}},
		"whole cores as a bare number":            {`"resources":{"requests":{"muster.io/cores":8.0}}`, resource.Request{Cores: 8}},
		"whole cores and no CPU":                  {asks("muster.io/cores", "8", "cpu", "0"), resource.Request{Cores: 8}},
		"huge pages":                              {asks("hugepages-2Mi", "1Gi"), resource.Request{Hugepages: 1 << 30, HugepageSize: 2 << 20}},
		"huge pages of another processor":         {asks("hugepages-64Ki", "1Mi"), resource.Request{Hugepages: 1 << 20, HugepageSize: 64 << 10}},
		"huge pages of one size, none of another": {asks("hugepages-2Mi", "0", "hugepages-1Gi", "2Gi"), resource.Request{Hugepages: 2 << 30, HugepageSize: 1 << 30}},
		"MIG instances":                           {asks("nvidia.com/mig-1g.10gb", "2"), resource.Request{MIG: 2, MIGProfile: "1g.10gb"}},
		"MIG instances with an attribute":         {asks("nvidia.com/mig-1g.10gb.me", "1"), resource.Request{MIG: 1, MIGProfile: "1g.10gb+me"}},
		"equal limits of what is not overcommitted": {
			`"resources":{"requests":{"muster.io/cores":8,"hugepages-2Mi":"1Gi"},"limits":{"muster.io/cores":"8000m","hugepages-2Mi":"1024Mi","nvidia.com/mig-1g.10gb":1}}`,
			resource.Request{Cores: 8, Hugepages: 1 << 30, HugepageSize: 2 << 20, MIG: 1, MIGProfile: "1g.10gb"},
		},
		"instances of a model and memory": {
			asks("nvidia.com/mig-1g.10gb", "2") + `,"scheduling":{"gpu":{"model":"NVIDIA A100","memory":"9Gi","link":"any"}}`,
			resource.Request{MIG: 2, MIGProfile: "1g.10gb", GPUModel: "NVIDIA A100", GPUMemory: 9 << 30},
		},
		"Muster's own constraints": {
			`"resources":{"requests":{"nvidia.com/gpu":"2"}},"scheduling":{"numaPolicy":"single-numa-node","gpu":{"model":"NVIDIA A100","memory":"40Gi","link":"nvlink"}}`,
			resource.Request{GPUs: 2, GPUModel: "NVIDIA A100", GPUMemory: 40 << 30, NUMA: resource.NUMASingleNode, Link: resource.LinkNVLink},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			a, status := DecodeAllocation([]byte(allocation(c.spec)))
			if status != nil {
				t.Fatal(status)
			}
			got, status := MemberRequest(a.Spec)
			if status != nil {
				t.Fatal(status)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestLargestJobDoesNotOverflow(t *testing.T) {
	for _, largest := range []resource.Request{
		{CPU: resource.MaxCPU, Memory: resource.MaxMemory, GPUs: resource.MaxGPUs},
		{Cores: resource.MaxCores, Hugepages: resource.MaxMemory, HugepageSize: 2 << 20, MIG: resource.MaxMIG, MIGProfile: "1g.10gb"},
	} {
		if err := largest.Validate(); err != nil {
			t.Error(err)
		}
		for name, total := range largest.Vector().Scaled(MaxParallelism) {
			if total == resource.Unlimited {
				t.Errorf("%s: %d members overflow", name, MaxParallelism)
			}
		}
	}
}

func TestPriorityOf(t *testing.T) {
	number := func(n int32) *int32 { return &n }
	cases := map[string]struct {
		number *int32
		class  string
		want   int32
	}{
		"nothing said":                  {nil, "", 0},
		"a class":                       {nil, "batch-high", 200},
		"a number":                      {number(7), "", 7},
		"a number wins over a class":    {number(100), "high-priority", 100},
		"an explicit zero over a class": {number(0), "high-priority", 0},
		"the greatest":                  {number(MaxPriority), "", MaxPriority},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := PriorityOf(c.number, c.class); got != c.want {
				t.Errorf("got %d; want %d", got, c.want)
			}
		})
	}
	if !slices.IsSortedFunc(NamedPriorities(), func(a, b NamedPriority) int { return int(a.Value - b.Value) }) {
		t.Error("priority classes are not ordered by value")
	}
}

func TestJobUnits(t *testing.T) {
	cases := map[string]struct {
		doc           string
		first, growth int
		gang          bool
	}{
		"a gang of all":                {job(`"parallelism":8`, cpu+`,"scheduling":{"gangScheduling":{"minMembers":8}}`), 8, 0, true},
		"a gang that may grow":         {job(`"parallelism":8`, cpu+`,"scheduling":{"gangScheduling":{"minMembers":5}}`), 5, 3, true},
		"a gang without minMembers":    {job(`"parallelism":3`, cpu+`,"gangScheduling":{}`), 3, 0, true},
		"no gang":                      {job(`"parallelism":3`, cpu), 1, 2, false},
		"one member, nothing said":     {`{"metadata":{"name":"a"},"spec":{"template":{"spec":{` + cpu + `}}}}`, 1, 0, false},
		"the largest gang that can be": {job(`"parallelism":4096`, cpu+`,"gangScheduling":{}`), 4096, 0, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			j, status := DecodeJob([]byte(c.doc))
			if status != nil {
				t.Fatal(status)
			}
			first, growth, gang := JobUnits(j)
			if first != c.first || growth != c.growth || gang != c.gang {
				t.Errorf("got %d, %d, %t; want %d, %d, %t", first, growth, gang, c.first, c.growth, c.gang)
			}
		})
	}
}

func TestRecordedOnlyFieldsAreNamed(t *testing.T) {
	j, status := DecodeJob([]byte(`{"metadata":{"name":"distributed-training-v2","namespace":"ml-team"},"spec":{
		"parallelism":8,"completions":8,"backoffLimit":3,"activeDeadlineSeconds":86400,"template":{"spec":{
		"resources":{"requests":{"cpu":"16000m","memory":"64Gi","nvidia.com/gpu":"8"},"limits":{"cpu":"32000m","memory":"128Gi","nvidia.com/gpu":"8"}},
		"preemptionPolicy":"PreemptLowerPriority","ttl":"7200s",
		"scheduling":{"gangScheduling":{"groupId":"g","minMembers":8,"timeout":"600s"},"nodeSelector":{"gpu-type":"nvidia-a100"}}}},
		"priority":200,"priorityClass":"batch-high","queue":"gpu-training"}}`))
	if status != nil {
		t.Fatal(status)
	}
	want := []string{
		"spec.template.spec.resources.limits",
	}
	if diff := cmp.Diff(want, j.RecordedOnly()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	a, status := DecodeAllocation([]byte(allocation(cpu + `,"preemptionPolicy":"Never"`)))
	if status != nil || a.RecordedOnly() != nil {
		t.Errorf("a plain allocation: got %v, %v; want nothing recorded only", a.RecordedOnly(), status)
	}
}

func TestPeekKind(t *testing.T) {
	cases := map[string]struct{ doc, want string }{
		"named":                         {`{"kind":"Quota"}`, "Quota"},
		"a template makes it a job":     {`{"spec":{"template":{}}}`, KindJob},
		"otherwise it is an allocation": {`{"spec":{"resources":{}}}`, KindAllocation},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, status := PeekKind([]byte(c.doc))
			if status != nil || got != c.want {
				t.Errorf("got %q, %v; want %q", got, status, c.want)
			}
		})
	}
	for _, doc := range []string{``, `[]`, `{"kind":5}`, `{"spec":"x"}`} {
		if kind, status := PeekKind([]byte(doc)); status == nil {
			t.Errorf("%q: got kind %q, want a refusal", doc, kind)
		}
	}
}

func TestAmountsArePrintedAsPeopleWriteThem(t *testing.T) {
	got := Amounts(resource.Request{CPU: 1500, Memory: 64 << 30, GPUs: 8}.Vector())
	want := map[resource.Name]string{"cpu": "1500m", "memory": "64Gi", "nvidia.com/gpu": "8"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAResourceHasOneSpelling(t *testing.T) {
	for _, name := range []resource.Name{"cpu", "muster.io/cores", "memory", "nvidia.com/gpu", "hugepages-64Ki", "hugepages-2Mi", "hugepages-1Gi", "nvidia.com/mig-1g.10gb", "nvidia.com/mig-1c.3g.40gb", "nvidia.com/mig-1g.10gb.me"} {
		if err := CheckResource(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, want := range map[resource.Name]string{
		"gpu":                       "this version allocates cpu, muster.io/cores, memory, ephemeral-storage, hugepages-<size>, nvidia.com/gpu, nvidia.com/mig-<profile> and",
		"cores":                     "unknown resource",
		"hugepages":                 "unknown resource",
		"hugepages-2M":              "want a page size as in hugepages-2Mi or hugepages-1Gi",
		"hugepages-":                "not a number",
		"nvidia.com/mig-":           `MIG profile ""`,
		"nvidia.com/mig-1g.10gb+me": `want the spelling "nvidia.com/mig-1g.10gb.me"`,
	} {
		if err := CheckResource(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

func FuzzDecodeAllocation(f *testing.F) {
	for _, name := range sortedKeys(badDocuments) {
		f.Add([]byte(badDocuments[name]))
	}
	f.Add([]byte(allocation(asks("muster.io/cores", "8", "hugepages-2Mi", "1Gi", "nvidia.com/mig-1g.10gb.me", "2"))))
	f.Add([]byte(allocation(cpu + `,"priority":5,"scheduling":{"nodeSelector":{"zone":"a"}}`)))
	f.Fuzz(func(t *testing.T, doc []byte) {
		a, status := DecodeAllocation(doc)
		if status != nil {
			refusedWell(t, status)
			return
		}
		if r, status := MemberRequest(a.Spec); status != nil || r.Validate() != nil {
			t.Fatalf("%q: accepted, but its request is %+v, %v", doc, r, status)
		}
		again := reencode(t, a)
		b, status := DecodeAllocation(again)
		if status != nil {
			t.Fatalf("%q: accepted, but its own encoding %s is not: %v", doc, again, status)
		}
		if string(reencode(t, b)) != string(again) {
			t.Fatalf("%q: decoding and encoding again changed %s", doc, again)
		}
	})
}

func FuzzDecodeJob(f *testing.F) {
	for _, name := range sortedKeys(badDocuments) {
		f.Add([]byte(badDocuments[name]))
	}
	f.Add([]byte(job(`"parallelism":8,"queue":"q"`, cpu+`,"scheduling":{"gangScheduling":{"minMembers":5}}`)))
	f.Fuzz(func(t *testing.T, doc []byte) {
		j, status := DecodeJob(doc)
		if status != nil {
			refusedWell(t, status)
			return
		}
		first, growth, _ := JobUnits(j)
		if first < 1 || growth < 0 || first+growth != j.Members() || j.Members() > MaxParallelism {
			t.Fatalf("%q: accepted with a first unit of %d and %d growth units", doc, first, growth)
		}
		if _, status := DecodeJob(reencode(t, j)); status != nil {
			t.Fatalf("%q: accepted, but its own encoding is not: %v", doc, status)
		}
	})
}

func refusedWell(t *testing.T, s *Status) {
	t.Helper()
	if (s.Code != 400 && s.Code != 413 && s.Code != 422) || s.Message == "" || s.Kind != "Status" {
		t.Fatalf("refused with %+v", s)
	}
}

func reencode(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func BenchmarkDecodeAllocation(b *testing.B) {
	doc := []byte(`{"metadata":{"name":"ml-training-job-42","labels":{"app":"model-training","team":"ml-platform"}},
		"spec":{"resources":{"requests":{"cpu":"8000m","memory":"32Gi","nvidia.com/gpu":"4"}},"priority":100,
		"scheduling":{"nodeSelector":{"gpu-type":"nvidia-a100","zone":"us-east-1a"}}}}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, status := DecodeAllocation(doc); status != nil {
			b.Fatal(status)
		}
	}
}

func ExampleDecodeAllocation() {
	_, status := DecodeAllocation([]byte(`{"metadata":{"name":"train"},"spec":{"resources":{"requests":{"cpu":"-1"}}}}`))
	fmt.Println(status.Code, status)
	// Output: 422 spec.resources.requests.cpu: quantity "-1": negative
}
