package api

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestANodePatchIsRead(t *testing.T) {
	text := func(s string) *string { return &s }
	yes, no := true, false
	for name, c := range map[string]struct {
		doc  string
		want NodePatch
	}{
		"a label is set and another one removed": {
			doc:  `{"metadata":{"labels":{"zone":"a","rack":null}}}`,
			want: NodePatch{Labels: MapPatch{Set: map[string]*string{"zone": text("a"), "rack": nil}}},
		},
		"all labels are removed": {
			doc:  `{"metadata":{"labels":null}}`,
			want: NodePatch{Labels: MapPatch{Clear: true}},
		},
		"annotations": {
			doc:  `{"metadata":{"annotations":{"owner":"ml, room 4"}}}`,
			want: NodePatch{Annotations: MapPatch{Set: map[string]*string{"owner": text("ml, room 4")}}},
		},
		"taints with a precondition": {
			doc:  `{"apiVersion":"muster/v1","kind":"Node","metadata":{"name":"n1","resourceVersion":"7"},"spec":{"taints":[{"key":"k","effect":"NoSchedule"}]}}`,
			want: NodePatch{ResourceVersion: "7", Taints: &[]Taint{{Key: "k", Effect: "NoSchedule"}}},
		},
		"no taints":      {doc: `{"spec":{"taints":[]}}`, want: NodePatch{Taints: &[]Taint{}}},
		"taints removed": {doc: `{"spec":{"taints":null}}`, want: NodePatch{Taints: new([]Taint)}},
		"cordon":         {doc: `{"spec":{"unschedulable":true}}`, want: NodePatch{Unschedulable: &yes}},
		"a device for the kubelet": {
			doc:  `{"spec":{"kubelet":{"add":["GPU-a"]}}}`,
			want: NodePatch{Kubelet: KubeletPatch{Add: &[]string{"GPU-a"}}},
		},
		"no device is kept from the kubelet": {
			doc:  `{"spec":{"kubelet":{"remove":null}}}`,
			want: NodePatch{Kubelet: KubeletPatch{Remove: new([]string)}},
		},
		"the agent's configuration alone decides on the kubelet's pool": {
			doc:  `{"spec":{"kubelet":null}}`,
			want: NodePatch{Kubelet: KubeletPatch{Add: new([]string), Remove: new([]string)}},
		},
		"uncordon by a null": {doc: `{"spec":{"unschedulable":null}}`, want: NodePatch{Unschedulable: &no}},
	} {
		t.Run(name, func(t *testing.T) {
			got, status := DecodeNodePatch("n1", []byte(c.doc))
			if status != nil {
				t.Fatal(status)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			doc, err := json.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			again, status := DecodeNodePatch("n1", doc)
			if status != nil {
				t.Fatalf("%s: %v", doc, status)
			}
			if diff := cmp.Diff(got, again, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("written as %s (-want +got):\n%s", doc, diff)
			}
		})
	}
}

func TestAMapPatchLeavesItsTargetAsItIs(t *testing.T) {
	b := "2"
	before := map[string]string{"a": "1"}
	after := MapPatch{Set: map[string]*string{"a": nil, "b": &b}}.Apply(before)
	if diff := cmp.Diff(map[string]string{"b": "2"}, after); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if before["a"] != "1" || len(before) != 1 {
		t.Errorf("the target became %v", before)
	}
	if got := (MapPatch{Clear: true}).Apply(before); got != nil {
		t.Errorf("cleared: %v", got)
	}
}

func TestReservedLabels(t *testing.T) {
	for label, want := range map[string]bool{
		"kubernetes.io/hostname": true, "muster.dev/node": true, "muster.io/x": true, "muster.x": false, "nvidia.com/gpu.product": true,
		"kubernetes.io/arch": false, "zone": false, "gpu-memory": false, "mymuster.dev/x": false, "mig.nvidia.com/x": false, "muster/x": false,
	} {
		if got := ReservedLabel(label); got != want {
			t.Errorf("%s: reserved %t, want %t", label, got, want)
		}
	}
}

func FuzzDecodeNodePatch(f *testing.F) {
	for _, doc := range []string{
		`{}`, `{"spec":{"unschedulable":null}}`, `{"metadata":{"labels":{"a":null,"b":"c"},"annotations":null},"spec":{"taints":[{"key":"k","effect":"NoSchedule"}]}}`,
	} {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		p, status := DecodeNodePatch("n1", doc)
		if status != nil {
			return
		}
		if p.IsZero() {
			t.Errorf("%q changes nothing and was accepted", doc)
		}
		for k := range p.Labels.Set {
			if ReservedLabel(k) || !IsLabelKey(k) && p.Labels.Set[k] != nil {
				t.Errorf("%q sets the label %q", doc, k)
			}
		}
		if status := CheckNodeLabels("", p.Labels.Apply(nil)); status != nil {
			t.Errorf("%q: %v", doc, status)
		}
	})
}

func FuzzDecodeApproveOptions(f *testing.F) {
	for _, doc := range []string{"", `{}`, `{"resourceVersion":"7"}`, `{"resourceVersion":7}`} {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		if _, status := DecodeApproveOptions(doc); status != nil && status.Code/100 != 4 {
			t.Errorf("%q: %d", doc, status.Code)
		}
	})
}

func TestTaintsAreMergedByKeyAndEffect(t *testing.T) {
	taint := func(key, value string) Taint { return Taint{Key: key, Value: value, Effect: "NoSchedule"} }
	for name, c := range map[string]struct {
		has, set, want []Taint
	}{
		"a new taint comes last":         {[]Taint{taint("a", "1")}, []Taint{taint("b", "2")}, []Taint{taint("a", "1"), taint("b", "2")}},
		"a taint of the key is replaced": {[]Taint{taint("a", "1"), taint("b", "2")}, []Taint{taint("a", "3")}, []Taint{taint("a", "3"), taint("b", "2")}},
		"the first taint":                {nil, []Taint{taint("a", "1")}, []Taint{taint("a", "1")}},
	} {
		t.Run(name, func(t *testing.T) {
			before := append([]Taint{}, c.has...)
			got, status := MergeTaints(c.has, c.set)
			if status != nil || cmp.Diff(c.want, got) != "" || cmp.Diff(before, c.has, cmpopts.EquateEmpty()) != "" {
				t.Errorf("%v, %v; the node's are %v", got, status, c.has)
			}
		})
	}
	var many []Taint
	for i := range MaxNodeTaints {
		many = append(many, taint("k"+string(rune('a'+i%26))+string(rune('a'+i/26)), ""))
	}
	if _, status := MergeTaints(many, []Taint{taint("one-more", "")}); status == nil || status.Code != 422 {
		t.Errorf("beyond the limit: %v", status)
	}
}
