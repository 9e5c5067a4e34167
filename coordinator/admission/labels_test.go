package admission_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/admission"
)

func TestLabels(t *testing.T) {
	n1 := admission.Registered{Node: "n1"}
	gpus := admission.Registered{Node: "n1", Devices: 8, Product: "NVIDIA A100-SXM4-80GB", Memory: 80 << 30}
	for name, c := range map[string]struct {
		registered      admission.Registered
		agent, operator map[string]string
		want            map[string]string
	}{
		"a host without devices": {registered: n1, want: map[string]string{"kubernetes.io/hostname": "n1", "muster.dev/node": "n1"}},
		"no layer renames the host": {
			registered: n1, agent: map[string]string{"kubernetes.io/hostname": "n2"}, operator: map[string]string{"muster.dev/node": "n3"},
			want: map[string]string{"kubernetes.io/hostname": "n1", "muster.dev/node": "n1"},
		},
		"no layer invents devices or a limit": {
			registered: n1, agent: map[string]string{"nvidia.com/gpu.product": "H100", "muster.dev/assume-dead-after": "5m0s"},
			want: map[string]string{"kubernetes.io/hostname": "n1", "muster.dev/node": "n1"},
		},
		"the operators' layer wins by key": {
			registered: n1, agent: map[string]string{"zone": "a", "rack": "r1"}, operator: map[string]string{"zone": "b"},
			want: map[string]string{"kubernetes.io/hostname": "n1", "muster.dev/node": "n1", "zone": "b", "rack": "r1"},
		},
		"devices as NVIDIA's discovery names them": {
			registered: gpus,
			want: map[string]string{
				"kubernetes.io/hostname": "n1", "muster.dev/node": "n1", "gpu-memory": "80",
				"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB", "nvidia.com/gpu.count": "8", "nvidia.com/gpu.memory": "81920",
			},
		},
		"GPUs that NVLink connects over hosts": {
			registered: admission.Registered{Node: "n1", Devices: 4, Clique: "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0.7"}, agent: map[string]string{"nvidia.com/gpu.clique": "mine"},
			want: map[string]string{
				"kubernetes.io/hostname": "n1", "muster.dev/node": "n1", "nvidia.com/gpu.count": "4", "nvidia.com/gpu.clique": "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0.7",
			},
		},
		"the memory in GiB is any layer's to set": {
			registered: gpus, agent: map[string]string{"gpu-memory": "40"},
			want: map[string]string{
				"kubernetes.io/hostname": "n1", "muster.dev/node": "n1", "gpu-memory": "40",
				"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB", "nvidia.com/gpu.count": "8", "nvidia.com/gpu.memory": "81920",
			},
		},
		"a limit without contact": {
			registered: admission.Registered{Node: "n1", AssumeDead: 5 * time.Minute},
			want:       map[string]string{"kubernetes.io/hostname": "n1", "muster.dev/node": "n1", "muster.dev/assume-dead-after": "5m0s"},
		},
		"a model that makes no label": {
			registered: admission.Registered{Node: "n1", Devices: 1, Product: "…"},
			want:       map[string]string{"kubernetes.io/hostname": "n1", "muster.dev/node": "n1", "nvidia.com/gpu.count": "1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, admission.Labels(c.registered, c.agent, c.operator)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAgentLabels(t *testing.T) {
	for name, c := range map[string]struct {
		labels, want map[string]string
		wantIgnored  []string
	}{
		"nothing":              {},
		"an ordinary one":      {labels: map[string]string{"zone": "a"}, want: map[string]string{"zone": "a"}},
		"another node's name":  {labels: map[string]string{"kubernetes.io/hostname": "n2", "zone": "a"}, want: map[string]string{"zone": "a"}, wantIgnored: []string{"kubernetes.io/hostname"}},
		"no key, and no value": {labels: map[string]string{"a b": "x", "zone": "a b"}, wantIgnored: []string{"a b", "zone"}},
		"an older agent's limit, which is the registered one": {
			labels: map[string]string{"muster.dev/assume-dead-after": "5m0s"},
		},
		"a limit that is not the registered one": {
			labels: map[string]string{"muster.dev/assume-dead-after": "1h0m0s"}, wantIgnored: []string{"muster.dev/assume-dead-after"},
		},
		"a key that is long": {
			labels: map[string]string{"muster.dev/" + strings.Repeat("x", 200): "1"}, wantIgnored: []string{"muster.dev/" + strings.Repeat("x", 117) + "…"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, ignored := admission.AgentLabels(admission.Registered{Node: "n1", AssumeDead: 5 * time.Minute}, c.labels)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("layer (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.wantIgnored, ignored); diff != "" {
				t.Errorf("ignored (-want +got):\n%s", diff)
			}
		})
	}
	many := map[string]string{}
	for i := range 1000 {
		many["k"+strconv.Itoa(i)] = "v"
	}
	if layer, ignored := admission.AgentLabels(admission.Registered{}, many); len(layer) != api.MaxLabels || len(ignored) != 16 {
		t.Errorf("of 1000 labels %d are kept and %d named", len(layer), len(ignored))
	}
}

// change is one step in the life of a node's labels.
type change struct {
	registers map[string]string // a registration with these labels of the agent's
	patch     map[string]*string
	clear     bool
}

// oracle looks a label up as decision D10 words it, over all that has happened.
func oracle(history []change, r admission.Registered, key string) (string, bool) {
	switch {
	case key == "kubernetes.io/hostname", key == "muster.dev/node":
		return string(r.Node), true
	case strings.HasPrefix(key, "muster."), strings.HasPrefix(key, "nvidia.com/"):
		return "", false // of a host without devices and without a limit
	}
	for i := len(history) - 1; i >= 0; i-- { // the operators' last word
		c := history[i]
		if v, named := c.patch[key]; named {
			if v != nil {
				return *v, true
			}
			break
		}
		if c.clear {
			break
		}
	}
	for i := len(history) - 1; i >= 0; i-- {
		if history[i].patch == nil && !history[i].clear {
			v, has := history[i].registers[key]
			return v, has
		}
	}
	return "", false
}

func TestLabelsAreWhatTheirHistoryMakesThem(t *testing.T) {
	keys := []string{"zone", "rack", "gpu-memory", "kubernetes.io/hostname", "muster.dev/node", "muster.dev/x", "nvidia.com/gpu.count"}
	open := keys[:3]
	r := admission.Registered{Node: "n1"}
	rapid.Check(t, func(t *rapid.T) {
		var history []change
		var agent, operator map[string]string
		value := rapid.SampledFrom([]string{"", "a", "b"})
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			c := change{}
			if rapid.Bool().Draw(t, "registers") {
				c.registers = rapid.MapOfN(rapid.SampledFrom(keys), value, 0, 4).Draw(t, "labels")
				agent, _ = admission.AgentLabels(r, c.registers)
			} else {
				c.patch = rapid.MapOfN(rapid.SampledFrom(open), rapid.Ptr(value, true), 0, 3).Draw(t, "patch")
				c.clear = rapid.IntRange(0, 4).Draw(t, "clear") == 0
				operator = api.MapPatch{Clear: c.clear, Set: c.patch}.Apply(operator)
			}
			history = append(history, c)
			want := map[string]string{}
			for _, k := range keys {
				if v, has := oracle(history, r, k); has {
					want[k] = v
				}
			}
			if diff := cmp.Diff(want, admission.Labels(r, agent, operator), cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("after %+v (-want +got):\n%s", history, diff)
			}
		}
	})
}
