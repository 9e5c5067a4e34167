package whatif_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/musterd/muster/constraint"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/coordinator/whatif"
	"github.com/musterd/muster/resource"
)

// TestEachHintWorks applies each hint by itself, to a world that is made anew, and
// tries the unit again. The questions leave their world as it was.
func TestEachHintWorks(t *testing.T) {
	met := map[whatif.HintCode]int{}
	checkAll(t, func(t *rapid.T) {
		s, u := drawScene(t, 5)
		w, _ := s.build(t)
		before := pictureOf(w)
		o, never := w.Try(&u), w.Never(&u)
		hints, _, cut := w.Help(&u)
		if diff := cmp.Diff(before, pictureOf(w)); diff != "" {
			t.Fatalf("the question has changed the world:\n%s", diff)
		}
		if o.Action != sched.Wait {
			if len(never) > 0 {
				t.Fatalf("it would %s, and never for %+v", o.Action, never)
			}
			return
		}
		for _, hint := range hints {
			met[hint.Code]++
			then, _ := s.build(t)
			changed := apply(t, then, u, hint)
			o := then.Try(&changed)
			if o.Action != hint.Then || hint.Then == sched.Preempt && !slices.Equal(o.Victims, hint.Victims) {
				t.Fatalf("after %+v it would %s for %+v, evidence %+v", hint, o.Action, o.Victims, o.Evidence)
			}
		}
		if !cut {
			theMost(t, s, u, hints)
		}
	})
	for _, code := range []whatif.HintCode{
		whatif.LooserNUMA, whatif.LooserLink, whatif.AnyModel, whatif.DropLabel, whatif.Tolerate, whatif.MayPreempt, whatif.LessCPU, whatif.LessMemory,
		whatif.FewerGPUs, whatif.FewerMembers, whatif.Uncordon, whatif.NodesBack, whatif.RaiseLimit, whatif.RaiseQuota, whatif.WaitFor,
	} {
		if met[code] == 0 {
			t.Logf("no world had the hint %s", code)
		}
	}
	if len(met) < 8 {
		t.Errorf("only the hints %v were met", met)
	}
}

// checkAll draws as many cases with -short as without, where rapid draws a fifth: too
// few to meet all that the test counts.
func checkAll(t *testing.T, property func(*rapid.T)) {
	t.Helper()
	rounds := 1
	if testing.Short() {
		rounds = 5
	}
	for range rounds {
		rapid.Check(t, property)
	}
}

// pictureOf prints the state of a world.
func pictureOf(w *whatif.World) []string {
	lines := []string{string(w.Trees.AppendState(nil)), fmt.Sprint(w.Trees.ConsumerIDs(), w.Limits.Used(namespace, "hard"))}
	for _, n := range w.State.Nodes() {
		line := fmt.Sprint(n.ID, n.Ready, n.Unschedulable, n.Standing)
		if n.Host != nil {
			line += fmt.Sprint(n.Host.FreeVector(n.Free), n.Free.GPU)
		}
		lines = append(lines, line)
	}
	return lines
}

// apply makes the change of a hint, and returns the unit as it is then.
func apply(t *rapid.T, w *whatif.World, u whatif.Unit, h whatif.Hint) whatif.Unit {
	at := slices.IndexFunc(u.Demand.Sets, func(s place.Set) bool { return s.Name == h.Set })
	members, r, spec := u.Demand.Members, u.Demand.Request, u.Demand.Constraints.Requirements()
	if at >= 0 {
		members, r, spec = u.Demand.Sets[at].Members, u.Demand.Sets[at].Request, u.Demand.Sets[at].Constraints.Requirements()
	}
	switch h.Code {
	case whatif.LooserNUMA:
		r.NUMA = h.NUMA
	case whatif.LooserLink:
		r.Link = h.Link
	case whatif.AnyModel:
		r.GPUModel = ""
	case whatif.OtherModel:
		r.GPUModel = h.Model
	case whatif.FewerGPUs:
		r.GPUs = int(h.To / int64(resource.WholeDevice))
	case whatif.FewerMembers:
		members = int(h.To)
	case whatif.LessMemory:
		r.Memory = resource.Bytes(h.To)
	case whatif.LessCPU:
		if r.Cores > 0 {
			r.Cores = int(h.To)
		} else {
			r.CPU = resource.Millicores(h.To)
		}
	case whatif.DropLabel:
		delete(spec.NodeSelector, h.Label.Key)
	case whatif.DropAffinity:
		spec.Required = nil
	case whatif.Tolerate:
		spec.Tolerations = append(spec.Tolerations, constraint.Toleration{Key: h.Taint.Key, Value: h.Taint.Value, Effect: h.Taint.Effect})
	case whatif.MayPreempt:
		u.Right = sched.Lower
	case whatif.HigherPriority:
		u.Right, u.Key.Priority = sched.Lower, int32(h.To)
	case whatif.Uncordon:
		for _, id := range h.Nodes {
			w.State.SetUnschedulable(w.State.Node(id), false)
		}
	case whatif.NodesBack:
		for _, id := range h.Nodes {
			w.State.SetReady(w.State.Node(id), true)
		}
	case whatif.RaiseLimit:
		limit, _ := w.Limits.Limit(namespace, h.Limit)
		limit.Hard = limit.Hard.Clone()
		limit.Hard[h.Resource] = h.To
		w.Limits.SetLimit(limit)
	case whatif.RaiseQuota:
		raise(t, w, h)
	case whatif.WaitFor:
		for _, v := range h.Ends {
			o := w.State.Occupant(v.Unit)
			for _, p := range o.Parts {
				check(t, w.State.Give(w.State.Node(p.Node), p.Assignment))
			}
			w.Trees.DeallocateForest(forest, v.Unit)
			w.Limits.Discharge(o.Tx)
			w.State.RemoveOccupant(v.Unit)
		}
	default:
		t.Fatalf("the hint %s is unknown", h.Code)
	}
	group := ""
	if len(u.Charges) > 1 {
		group = u.Charges[1].Group
	}
	changed := unitOf(u.Key.Path, u.Key.Priority, u.Key.Counter, members, r, group)
	changed.Right = u.Right
	constraints := u.Demand.Constraints
	if len(spec.NodeSelector)+len(spec.Required)+len(spec.Tolerations) > 0 || at < 0 && constraints != nil {
		constraints = constraint.Compile(spec)
	}
	changed.Demand.Constraints = constraints
	if u.Demand.Sets != nil {
		sets := slices.Clone(u.Demand.Sets)
		if at >= 0 {
			sets[at] = place.Set{Name: h.Set, Members: members, Request: r, Constraints: constraint.Compile(spec)}
		}
		changed = withSets(changed, sets)
	}
	return changed
}

// raise raises the limit of a node of a tree.
func raise(t *rapid.T, w *whatif.World, h whatif.Hint) {
	if h.Quota.Code != quota.OverQuota {
		t.Fatalf("these trees have quotas alone, and %+v is to be raised", h.Quota)
	}
	cache, err := w.Trees.Cache(h.Quota.Tree)
	check(t, err)
	node, _ := cache.Node(h.Quota.Node)
	node.Quota[h.Resource] = h.To
	check(t, cache.SetNode(h.Quota.Node, node))
	_, err = w.Trees.UpdateTree(h.Quota.Tree)
	check(t, err)
}

// theMost verifies that no more devices, and no more members, than a hint says start.
func theMost(t *rapid.T, s *scene, u whatif.Unit, hints []whatif.Hint) {
	if u.Demand.Sets != nil {
		return
	}
	most := map[whatif.HintCode]int64{}
	for _, h := range hints {
		most[h.Code] = h.To
	}
	u.Right = min(u.Right, sched.OwnQuota)
	starts := func(h whatif.Hint) bool {
		w, _ := s.build(t)
		changed := apply(t, w, u, h)
		return w.Try(&changed).Action == sched.Start
	}
	for n := int64(u.Demand.Members - 1); n > most[whatif.FewerMembers]; n-- {
		if starts(whatif.Hint{Code: whatif.FewerMembers, To: n}) {
			t.Fatalf("%d members start, the hint says %d", n, most[whatif.FewerMembers])
		}
	}
	for n := int64(u.Demand.Request.GPUs-1) * gpu; n > most[whatif.FewerGPUs]; n -= gpu {
		if starts(whatif.Hint{Code: whatif.FewerGPUs, To: n}) {
			t.Fatalf("%d device-milli start, the hint says %d", n, most[whatif.FewerGPUs])
		}
	}
}

// TestTry says where a unit goes, who gives way, and why it waits.
func TestTry(t *testing.T) {
	eight := resource.Request{GPUs: 8}
	running := []whatif.Unit{unitOf("ml/job/low/0", 1, 1, 1, eight, ""), unitOf("ml/job/high/0", 5, 2, 1, eight, "")}
	s := scene{nodes: []nodeSpec{{id: "a", profile: "dgx-a100"}, {id: "b", profile: "dgx-a100"}, {id: "c", profile: "gpu2"}}, running: running}
	w, _ := s.build(t)
	for name, c := range map[string]struct {
		members int
		request resource.Request
		right   sched.Right
		want    string
	}{
		"there is room on c":           {1, resource.Request{GPUs: 2}, sched.OwnQuota, "start [c] []"},
		"the lowest gives way":         {1, eight, sched.Lower, "preempt [a] [{ml/job/low/0 1 8000 1}]"},
		"nobody may give way":          {1, eight, sched.OwnQuota, "wait [] [] 1"},
		"two of priority 5 have to go": {2, eight, sched.Lower, "wait [] [] 2"},
	} {
		t.Run(name, func(t *testing.T) {
			u := unitOf("ml/job/new/0", 3, 9, c.members, c.request, "")
			u.Right = c.right
			o := w.Try(&u)
			var nodes []resource.NodeID
			for _, m := range o.Members {
				nodes = append(nodes, m.Node)
			}
			got := fmt.Sprintf("%s %v %v", o.Action, nodes, o.Victims)
			if o.Evidence != nil {
				got += fmt.Sprintf(" %d", o.Evidence.Code)
			}
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
