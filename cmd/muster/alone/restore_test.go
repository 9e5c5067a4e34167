package alone_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/cmd/muster/alone"
	"github.com/musterd/muster/coordinator/capture"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/canary"
)

// history draws acts of clients and operators.
type history struct {
	lots  *rand.Rand
	made  int
	names []string // of allocations, by namespace/name; jobs begin with "job/"
	nodes int
}

func (h *history) pick(list ...string) string { return list[h.lots.IntN(len(list))] }

// act is one request, or a time that passes before the next.
type act struct {
	request lead.Request
	wait    time.Duration
}

func (h *history) next() act {
	switch at := h.lots.IntN(20); {
	case at < 9:
		return act{request: h.allocation()}
	case at < 13:
		return act{request: h.job()}
	case at < 16 && len(h.names) > 0:
		return act{request: h.end()}
	case at == 16:
		return act{request: h.cordon()}
	default:
		return act{wait: time.Duration(h.lots.IntN(90)) * time.Second}
	}
}

// spec is a specification with a request, rules and a priority.
func (h *history) spec() map[string]any {
	requests := map[string]string{"cpu": fmt.Sprint(1 + h.lots.IntN(16)), "memory": fmt.Sprint(1+h.lots.IntN(64), "Gi")}
	switch h.lots.IntN(4) {
	case 0:
		requests["nvidia.com/gpu"] = fmt.Sprint(50*(1+h.lots.IntN(19)), "m")
	default:
		requests["nvidia.com/gpu"] = h.pick("1", "1", "2", "4", "8")
	}
	spec := map[string]any{"resources": map[string]any{"requests": requests}}
	if h.lots.IntN(4) == 0 {
		rule := map[string]any{"topologyKey": h.pick("kubernetes.io/hostname", "rack"), "labelSelector": map[string]any{"matchLabels": map[string]string{"team": h.pick("red", "blue")}}}
		spec["scheduling"] = map[string]any{"affinity": map[string]any{
			h.pick("podAffinity", "podAntiAffinity"): map[string]any{"preferredDuringScheduling": []any{map[string]any{"weight": 1 + h.lots.IntN(100), "podAffinityTerm": rule}}},
		}}
	}
	if h.lots.IntN(5) == 0 {
		spec["alternatives"] = []any{map[string]any{"resources": map[string]any{"requests": map[string]string{"nvidia.com/gpu": h.pick("1", "2")}}}}
	}
	return spec
}

func (h *history) meta() (string, string, map[string]any) {
	h.made++
	namespace, name := h.pick("red", "blue"), fmt.Sprint("w", h.made)
	return namespace, name, map[string]any{
		"name": name, "labels": map[string]string{"team": h.pick("red", "blue")}, "annotations": map[string]string{"note": canary.Mark + "-annotation"},
	}
}

// order gives a specification its place in the order; a job's template has the policy.
func (h *history) order(spec, template map[string]any) {
	spec["priority"] = 100 * h.lots.IntN(4)
	template["preemptionPolicy"] = h.pick("PreemptLowerPriority", "Never")
	if h.lots.IntN(3) == 0 {
		spec["queue"] = h.pick("nightly", "default")
	}
}

func (h *history) allocation() lead.Request {
	namespace, name, meta := h.meta()
	spec := h.spec()
	h.order(spec, spec)
	text, _ := json.Marshal(map[string]any{"kind": "Allocation", "metadata": meta, "spec": spec})
	doc, status := api.DecodeAllocation(text)
	if status != nil {
		panic(status)
	}
	h.names = append(h.names, namespace+"/"+name)
	return lead.CreateAllocation{Submitted: lead.Submitted{Namespace: namespace, Document: text}, Document: doc}
}

func (h *history) job() lead.Request {
	namespace, name, meta := h.meta()
	template := h.spec()
	template["command"], template["args"] = []string{"/bin/" + canary.Mark}, []string{canary.Mark}
	template["env"] = []any{map[string]string{"name": "PASSWORD", "value": canary.Mark}}
	members := 1 + h.lots.IntN(4)
	spec := map[string]any{"parallelism": members, "template": map[string]any{"spec": template}}
	if h.lots.IntN(2) == 0 && members > 1 && template["alternatives"] == nil && template["scheduling"] == nil {
		template["gangScheduling"] = map[string]any{"topology": []any{map[string]any{"topologyKey": "rack", "whenUnsatisfiable": h.pick("DoNotSchedule", "ScheduleAnyway")}}}
	} else if h.lots.IntN(2) == 0 {
		template["gangScheduling"] = map[string]any{"minMembers": members}
	}
	h.order(spec, template)
	text, _ := json.Marshal(map[string]any{"kind": "Job", "metadata": meta, "spec": spec})
	doc, status := api.DecodeJob(text)
	if status != nil {
		panic(status)
	}
	h.names = append(h.names, "job/"+namespace+"/"+name)
	return lead.CreateJob{Submitted: lead.Submitted{Namespace: namespace, Document: text}, Document: doc}
}

func (h *history) end() lead.Request {
	i := h.lots.IntN(len(h.names))
	path := h.names[i]
	h.names = slices.Delete(h.names, i, i+1)
	grace := int64(h.lots.IntN(2) * 20)
	o := api.DeleteOptions{GracePeriodSeconds: &grace}
	if rest, job := strings.CutPrefix(path, "job/"); job {
		namespace, name, _ := strings.Cut(rest, "/")
		return lead.EndJob{Namespace: namespace, Name: name, Options: o, Remove: true}
	}
	namespace, name, _ := strings.Cut(path, "/")
	return lead.DeleteAllocation{Namespace: namespace, Name: name, Options: o}
}

func (h *history) cordon() lead.Request {
	closed := h.lots.IntN(2) == 0
	return lead.PatchNode{Node: resource.NodeID(fmt.Sprintf("n%04d", 1+h.lots.IntN(h.nodes))), Patch: api.NodePatch{Unschedulable: &closed}}
}

// play carries an act out, and tells refusals as lines beside the decisions.
func play(c *alone.Cluster, a act, tell func(string)) {
	if a.request == nil {
		c.AdvanceTo(c.Now().Add(a.wait))
		return
	}
	if _, status := c.Ask(a.request); status != nil {
		tell(fmt.Sprintf("refused: %d %s", status.Code, status.Message))
	}
}

func queueNamed(name, policy string) lead.Put[api.Queue] {
	return lead.Put[api.Queue]{Object: &api.Queue{Kind: api.KindQueue, Metadata: api.ObjectMeta{Name: name}, Spec: api.QueueSpec{PlacementPolicy: policy}}}
}

func labelled(node int, rack string) lead.PatchNode {
	return lead.PatchNode{Node: resource.NodeID(fmt.Sprintf("n%04d", node)), Patch: api.NodePatch{Labels: api.MapPatch{Set: map[string]*string{"rack": &rack}}}}
}

// TestARestoredLeaderDecidesAsTheCapturedOne: after a random history a snapshot is taken,
// written and read; the leader that goes on from it decides about all that follows as the
// captured leader does, byte for byte: devices, CPUs, memory, charges, victims, refusals.
func TestARestoredLeaderDecidesAsTheCapturedOne(t *testing.T) {
	seeds := 120
	if testing.Short() {
		seeds = 8
	}
	drawn := []uint64{152} // a unit avoids a node that refused it before the snapshot
	for seed := range uint64(seeds) {
		drawn = append(drawn, seed)
	}
	decided, evicted := 0, 0
	for _, seed := range drawn {
		lines, total := comparedHistory(t, seed)
		decided += total
		evicted += lines
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if decided < 5*seeds || evicted == 0 {
		t.Errorf("%d decisions after the snapshots, %d of them evictions: too few to say anything", decided, evicted)
	}
	t.Logf("%d decisions after %d snapshots, %d of them evictions", decided, seeds, evicted)
}

func comparedHistory(t *testing.T, seed uint64) (evictions, decisions int) {
	h := &history{lots: rand.New(rand.NewPCG(seed, 76)), nodes: 6}
	var live, restored []string
	rules := lead.Rules{NamespaceAllocations: 10_000, StartsWork: true, Namespaces: map[string]lead.Namespace{"red": {Tenant: "red", Admission: "queue"}, "blue": {Tenant: "blue", Admission: "queue"}}}
	tell := func(line string) { live = append(live, line) }
	c := alone.New(alone.Options{Nodes: h.nodes, Rules: rules, Decided: tell}, time.Unix(1_700_000_000, 0))
	for n := range h.nodes {
		if _, status := c.Ask(labelled(n+1, []string{"r1", "r2"}[n%2])); status != nil {
			t.Fatal(status)
		}
	}
	if _, status := c.Ask(queueNamed("nightly", h.pick("packed", "spread", "balanced", "fragmentation"))); status != nil {
		t.Fatal(status)
	}
	for range 20 + h.lots.IntN(150) {
		play(c, h.next(), tell)
	}
	for range 8 { // attempts under way are no part of a snapshot: victims end first
		c.AdvanceTo(c.Now().Add(15 * time.Second))
	}
	d, err := c.Capture()
	if err == nil && d.Undecided > 0 {
		err = fmt.Errorf("%d attempts are under way", d.Undecided)
	}
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	canary.Judge(t, "the snapshot", string(text))
	read, err := capture.Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	tellRestored := func(line string) { restored = append(restored, line) }
	r, err := alone.Restore(read, alone.Options{Decided: tellRestored})
	if err != nil {
		t.Fatal(err)
	}
	live = live[:0]
	for range 60 {
		a := h.next()
		play(c, a, tell)
		play(r, a, tellRestored)
	}
	if diff := cmp.Diff(strings.Join(live, "\n"), strings.Join(restored, "\n")); diff != "" {
		t.Errorf("the restored leader decides otherwise (-live +restored):\n%s", diff)
	}
	if len(c.Errors())+len(r.Errors()) > 0 {
		t.Error(c.Errors(), r.Errors())
	}
	for _, line := range live {
		if strings.Contains(line, "EVICTING") {
			evictions++
		}
	}
	return evictions, len(live)
}
