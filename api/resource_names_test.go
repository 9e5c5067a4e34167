package api

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/resource/registry"
)

func names() ResourceNames {
	return ResourceNames{Known: registry.New(resource.Vector{"cpu": 64000, "memory": 1 << 40, "nvidia.com/gpu": 8000})}
}

const always = "no node hands it out, so the amount in use is always 0"

func TestNamesOfResourcesInQuotas(t *testing.T) {
	for name, c := range map[string]struct {
		hard, soft string
		keeps      bool
		refused    string
		warned     []string
	}{
		"known names":                 {hard: `"cpu":"1","memory":"1Gi","pods":"2","muster.io/cores":"1"`},
		"the specification's names":   {hard: `"persistentvolumeclaims":"1","services":"2"`, warned: []string{"spec.hard.persistentvolumeclaims: " + always, "spec.hard.services: " + always}},
		"a typo":                      {hard: `"nvidia.com/gpus":"1"`, refused: `spec.hard["nvidia.com/gpus"]: no resource is named "nvidia.com/gpus"; is "nvidia.com/gpu" meant?`},
		"a typo in a soft limit":      {soft: `"memroy":"1"`, refused: `spec.soft.memroy: no resource is named "memroy"; is "memory" meant?`},
		"a device without its domain": {hard: `"gpu":"1"`, refused: `is "nvidia.com/gpu" meant?`},
		"a typo that is kept":         {hard: `"cpus":"1"`, keeps: true, warned: []string{"spec.hard.cpus: " + always + `; is "cpu" meant?`}},
		"a member of a family that no host has": {hard: `"hugepages-1Gi":"1Gi"`, warned: []string{
			`spec.hard.hugepages-1Gi: none of 1 registered nodes hands it out now, so the amount in use is 0`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			q, status := DecodeResourceQuota([]byte(`{"metadata":{"name":"q"},"spec":{"hard":{` + c.hard + `},"soft":{` + c.soft + `}}}`))
			if status != nil {
				t.Fatal(status)
			}
			n := names()
			if c.keeps {
				n.Keeps = func(resource.Name) bool { return true }
			}
			judged(t, c.refused, c.warned, func() ([]string, *Status) { return n.JudgeQuota(q) })
		})
	}
}

func judged(t *testing.T, refused string, warned []string, judge func() ([]string, *Status)) {
	t.Helper()
	got, status := judge()
	switch {
	case refused == "" && status != nil:
		t.Fatalf("refused: %v", status)
	case refused != "" && (status == nil || status.Code != 422 || !strings.Contains(status.Message, refused)):
		t.Fatalf("got %v, want 422 with %q", status, refused)
	}
	if diff := cmp.Diff(warned, got); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

func TestNamesOfResourcesInTrees(t *testing.T) {
	for name, c := range map[string]struct {
		spec    string
		refused string
		warned  []string
	}{
		"known names":                     {spec: `{"resourceNames":["cpu"],"nodes":{"all":{"quota":{"cpu":8,"memory":"1Gi"}}}}`},
		"a typo in the names":             {spec: `{"resourceNames":["cpu","cpus"],"nodes":{"all":{"quota":{"cpu":8}}}}`, refused: `spec.resourceNames[1]: no resource is named "cpus"; is "cpu" meant?`},
		"a typo in a quota":               {spec: `{"nodes":{"all":{"quota":{"nvidia.com/gpus":"1"}}}}`, refused: `spec.nodes.all.quota["nvidia.com/gpus"]: no resource is named`},
		"a typo in a cap":                 {spec: `{"nodes":{"all":{"quota":{"cpu":1},"cap":{"cup":1}}}}`, refused: `spec.nodes.all.cap.cup: no resource is named "cup"; is "cpu" meant?`},
		"the specification's disk":        {spec: `{"resourceNames":["cpu","disk"],"nodes":{"all":{"quota":{"cpu":8}}}}`, warned: []string{"spec.resourceNames[1]: " + always}},
		"a page size that is none":        {spec: `{"resourceNames":["hugepages-2M"]}`, refused: "spec.resourceNames[0]: "},
		"a spec that is no specification": {spec: `{"nodes":[]}`},
	} {
		t.Run(name, func(t *testing.T) {
			tree := &QuotaTree{Metadata: ObjectMeta{Name: "T"}, Spec: []byte(c.spec)}
			judged(t, c.refused, c.warned, func() ([]string, *Status) { return names().JudgeTree(tree) })
		})
	}
}

func TestARequestForAnUnknownResourceNamesTheNearest(t *testing.T) {
	for name, want := range map[resource.Name]string{
		"cpus": `unknown resource; is "cpu" meant?`, "nvidia.com/gpus": `is "nvidia.com/gpu" meant?`, "gpu": `is "nvidia.com/gpu" meant?`, "amd.com/gpu": "unknown resource: this version allocates",
		"pod": "unknown resource: this version allocates",
	} {
		if err := CheckResource(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", name, err, want)
		}
	}
}
