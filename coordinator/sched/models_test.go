package sched_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/musterd/muster/coordinator/cluster"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/queue"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/devices/fake"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/resource"
)

// fleet is a world of hosts of several models, whose units are of one namespace, bounded
// by a limit, and of one group of a tree.
type fleet struct {
	tb      rapid.TB
	world   *sched.World
	free    map[resource.Name][]int64 // of the oracle: thousandths of each device, by model
	running map[string]sched.Decision
	units   map[string]*sched.Unit
	n       int
}

var fleetProfiles = []string{"dgx-a100", "dgx-h100"}

func newFleet(tb rapid.TB, hard, tree resource.Vector) *fleet {
	state, f := cluster.NewState(), &fleet{tb: tb, free: map[resource.Name][]int64{}, running: map[string]sched.Decision{}, units: map[string]*sched.Unit{}}
	for i, name := range fleetProfiles {
		profile, err := fake.Lookup(name)
		f.must(err)
		id := resource.NodeID(fmt.Sprintf("n%d", i))
		inventory := profile.Inventory(string(id))
		host, err := fit.NewHostLike(nil, profile.Topology(), inventory, fit.Reserved{})
		f.must(err)
		state.Insert(&cluster.Node{ID: id, Ready: true, Host: host, Free: host.NewFree()})
		for _, d := range inventory.Devices {
			model := resource.GPUOf(d.Model)
			f.free[model] = append(f.free[model], 1000)
		}
	}
	trees, limits := quota.NewManager(quota.Options{}), quota.New()
	limits.SetLimit(quota.Limit{Group: "x", Name: "hard", Hard: hard})
	_, failed := trees.AddTree(quota.TreeSpec{Name: claimTree, Resources: tree.Names(), Nodes: map[string]quota.NodeSpec{"root": {Quota: tree}, "g": {Parent: "root", Quota: resource.Vector{}}}})
	for _, err := range []error{trees.SetMode(quota.Normal), failed, trees.AddForest(claimForest), trees.AddTreeToForest(claimForest, claimTree)} {
		f.must(err)
	}
	f.world = &sched.World{State: state, Limits: limits, Trees: trees, Forest: claimForest, MaxOps: 1000}
	return f
}

func (f *fleet) must(err error) {
	if err != nil {
		f.tb.Fatal(err)
	}
}

// unit has a new unit wait.
func (f *fleet) unit(members int, r resource.Request) *sched.Unit {
	return f.differing(place.Set{Members: members, Request: r})
}

// differing has a new unit wait whose sets of members differ.
func (f *fleet) differing(sets ...place.Set) *sched.Unit {
	f.n++
	path, request, members := fmt.Sprintf("u%d", f.n), resource.Vector{}, 0
	for _, s := range sets {
		request.Add(s.Request.Charge().Scaled(int64(s.Members)))
		members += s.Members
	}
	demand := place.Unit{Members: members, Request: sets[0].Request}
	if len(sets) > 1 {
		demand.Sets = sets
	}
	f.must(f.world.Trees.AddConsumer(quota.ConsumerSpec{ID: path, Demands: []quota.Demand{{Tree: claimTree, Group: "g", Request: request}}}))
	return &sched.Unit{
		Key: queue.Key{Counter: uint64(f.n), Path: path}, Alike: fmt.Sprint(sets), Demand: demand,
		Charge:  quota.Charge{Group: "x", Request: request, Members: int64(members)},
		Charges: []record.Charge{{Tree: quota.Tree, Group: "x", Request: request}, {Tree: claimTree, Group: "g", Request: request}},
	}
}

// start notes that a unit has started.
func (f *fleet) start(u *sched.Unit, d sched.Decision) {
	charged := sched.WithModels(u.Charges, d.Models)
	f.running[u.Key.Path], f.units[u.Key.Path] = d, u
	f.world.Limits.Charge(resource.TxID(u.Key.Path), quota.Charge{Group: "x", Request: charged[0].Request})
}

func (f *fleet) end(path string) {
	f.world.Limits.Discharge(resource.TxID(path))
	f.world.Trees.DeallocateForest(claimForest, path)
	f.must(f.world.Trees.RemoveConsumer(path))
	for _, m := range f.running[path].Plan {
		f.must(f.world.State.Give(m.Node, m.Assignment))
	}
	delete(f.running, path)
}

// naive sums what runs by the devices that it has, and each device's free part.
func (f *fleet) naive() (used resource.Vector, free map[resource.Name][]int64) {
	used, free = resource.Vector{}, map[resource.Name][]int64{}
	for model, all := range f.free {
		free[model] = slices.Clone(all)
	}
	for _, d := range f.running {
		for _, m := range d.Plan {
			for _, g := range m.Assignment.GPUs {
				model := resource.GPUOf(m.Node.Host.Inventory().Devices[g.Index].Model)
				used[model] += int64(g.Milli)
				used[resource.GPU] += int64(g.Milli)
				free[model][g.Index] -= int64(g.Milli)
			}
		}
	}
	return used, free
}

// hasRoom is the oracle: whether a unit of one member may start on a model.
func hasRoom(r resource.Request, model resource.Name, used resource.Vector, free []int64, bounds ...resource.Vector) bool {
	if want := r.Charge(); r.GPUModel != "" && want[model] == 0 {
		return false
	}
	milli := int64(r.GPUMilli())
	for _, bound := range bounds {
		for _, name := range []resource.Name{resource.GPU, model} {
			if most, bounded := bound[name]; bounded && used[name]+milli > most {
				return false
			}
		}
	}
	whole := 0
	for _, left := range free {
		if r.GPUShare > 0 && left >= milli && left < 1000 || left == 1000 {
			whole++
		}
	}
	return whole >= max(1, r.GPUs)
}

// mostMembers is the oracle for gangs of whole devices: the most members that a model has
// devices and quota for.
func mostMembers(u *place.Unit, model resource.Name, used resource.Vector, free []int64, bounds ...resource.Vector) int {
	if want := u.Request.Charge(); u.Request.GPUModel != "" && want[model] == 0 {
		return 0
	}
	whole := 0
	for _, left := range free {
		if left == 1000 {
			whole++
		}
	}
	most := int64(whole / u.Request.GPUs)
	for _, bound := range bounds {
		if hard, bounded := bound[model]; bounded {
			most = min(most, (hard-used[model])/int64(u.Request.GPUMilli()))
		}
	}
	return int(most)
}

func (f *fleet) check(hard, tree resource.Vector) {
	used, _ := f.naive()
	for name, amount := range f.world.Limits.Used("x", "hard") {
		if amount != used[name] {
			f.tb.Fatalf("the limit counts %d of %s, the members have %d", amount, name, used[name])
		}
	}
	nodes, err := f.world.Trees.Nodes(claimTree)
	f.must(err)
	for _, n := range nodes {
		if n.Name != "root" {
			continue
		}
		for name := range tree {
			if n.Allocated[name] != used[name] {
				f.tb.Fatalf("the tree counts %d of %s, the members have %d", n.Allocated[name], name, used[name])
			}
		}
	}
	for name, amount := range used {
		for _, bound := range []resource.Vector{hard, tree} {
			if most, bounded := bound[name]; bounded && amount > most {
				f.tb.Fatalf("%d of %s are charged, the limit is %d", amount, name, most)
			}
		}
	}
}

// TestWorkIsChargedToTheModelsThatItGets holds decisions to a naive sum over the devices
// of what runs: the charges are that sum, no limit of a model is exceeded, and a unit of
// one member waits only where no model has both devices and quota for it.
func TestWorkIsChargedToTheModelsThatItGets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bound := func(label string) resource.Vector {
			v := resource.Vector{resource.GPU: 16000}
			for _, name := range []resource.Name{"nvidia.com/gpu.a100", "nvidia.com/gpu.h100"} {
				if most := rapid.IntRange(-1, 9).Draw(t, label+string(name)); most >= 0 {
					v[name] = int64(most) * 1000
				}
			}
			return v
		}
		hard, tree := bound("hard"), bound("tree")
		f := newFleet(t, hard, tree)
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			if len(f.running) > 0 && rapid.IntRange(0, 2).Draw(t, "end") == 0 {
				f.end(rapid.SampledFrom(slices.Sorted(maps.Keys(f.running))).Draw(t, "which"))
				f.check(hard, tree)
				continue
			}
			request := func() resource.Request {
				return rapid.SampledFrom([]resource.Request{{GPUs: 1}, {GPUs: 3}, {GPUs: 4}, {GPUShare: 500}, {GPUShare: 300}, {GPUs: 1, GPUModel: "NVIDIA H100 80GB HBM3"}}).Draw(t, "request")
			}
			if rapid.IntRange(0, 3).Draw(t, "together") == 0 {
				f.decideTogether([]*sched.Unit{f.unit(1, request()), f.unit(2, request())})
				f.check(hard, tree)
				continue
			}
			u := f.unit(rapid.IntRange(1, 2).Draw(t, "members"), request())
			if rapid.IntRange(0, 2).Draw(t, "members differ") == 0 {
				f.must(f.world.Trees.RemoveConsumer(u.Key.Path))
				u = f.differing(place.Set{Members: 1, Request: request()}, place.Set{Members: rapid.IntRange(1, 2).Draw(t, "more"), Request: request()}, place.Set{Members: 1, Request: resource.Request{CPU: 1000}})
			}
			used, free := f.naive()
			d := f.world.Decide(u)
			could := slices.ContainsFunc(slices.Collect(maps.Keys(free)), func(model resource.Name) bool {
				return hasRoom(u.Demand.Request, model, used, free[model], hard, tree)
			})
			if started := d.Action == sched.Start; u.Demand.Members > 1 && u.Demand.Sets == nil && u.Demand.Request.GPUs > 0 {
				room := 0 // for members on any of the models
				for model := range free {
					room += mostMembers(&u.Demand, model, used, free[model], hard, tree)
				}
				if could := room >= u.Demand.Members && used[resource.GPU]+int64(u.Demand.Members*u.Demand.Request.GPUs)*1000 <= 16000; started != could {
					t.Fatalf("%d members of %+v: %s, evidence %+v; by hand they could start: %t (used %v, free %v, limits %v and %v)", u.Demand.Members, u.Demand.Request, d.Action, d.Evidence, could, used, free, hard, tree)
				}
			} else if u.Demand.Members == 1 && started != could {
				t.Fatalf("%+v: %s, evidence %+v; by hand it could start: %t (used %v, free %v, limits %v and %v)", u.Demand.Request, d.Action, d.Evidence, could, used, free, hard, tree)
			}
			if d.Action == sched.Start {
				f.start(u, d)
			} else {
				f.must(f.world.Trees.RemoveConsumer(u.Key.Path))
			}
			f.check(hard, tree)
		}
	})
}

// TestMembersThatDifferAreChargedToTheirModels: a member that names a model and one that
// gets a device of the same model are charged to it together.
func TestMembersThatDifferAreChargedToTheirModels(t *testing.T) {
	const h100 = "nvidia.com/gpu.h100"
	named := place.Set{Members: 1, Request: resource.Request{GPUs: 4, GPUModel: "NVIDIA H100 80GB HBM3"}}
	for name, c := range map[string]struct {
		hard int64 // of h100
		want string
	}{
		"both on the model":                            {8000, "start map[nvidia.com/gpu.h100:4000]"},
		"the quota of the model is used up by the one": {4000, "start map[nvidia.com/gpu.a100:4000]"},
		"the quota of the model is too small":          {3000, "wait map[]"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, resource.Vector{h100: c.hard}, resource.Vector{resource.GPU: 16000})
			u := f.differing(named, place.Set{Members: 1, Request: resource.Request{GPUs: 4}}, place.Set{Members: 1, Request: resource.Request{CPU: 1000}})
			d := f.world.Decide(u)
			if got := fmt.Sprint(d.Action, " ", d.Models); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			if d.Action == sched.Start {
				f.start(u, d)
				f.check(resource.Vector{h100: c.hard}, resource.Vector{resource.GPU: 16000})
			}
		})
	}
}

func (f *fleet) decideTogether(units []*sched.Unit) {
	d := f.world.DecideGang(units)
	for i, u := range units {
		if d.Action != sched.Start {
			f.must(f.world.Trees.RemoveConsumer(u.Key.Path))
			continue
		}
		one := sched.Decision{Plan: d.Plans[i]}
		if d.Models != nil {
			one.Models = d.Models[i]
		}
		f.start(u, one)
	}
}

// TestAGangGetsItsPartOfAShortModel: as many members as quota of a model has room for go
// there, and the others to another model.
func TestAGangGetsItsPartOfAShortModel(t *testing.T) {
	for name, c := range map[string]struct {
		a100, h100 int64
		members    int
		want       string
	}{
		"quota for three of four on one model": {8000, 3000, 4, "start map[nvidia.com/gpu.a100:1000 nvidia.com/gpu.h100:3000]"},
		"quota for both in part":               {2000, 3000, 5, "start map[nvidia.com/gpu.a100:2000 nvidia.com/gpu.h100:3000]"},
		"quota for one member too few":         {2000, 2000, 5, "wait map[]"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, resource.Vector{"nvidia.com/gpu.a100": c.a100, "nvidia.com/gpu.h100": c.h100}, resource.Vector{resource.GPU: 16000})
			d := f.world.Decide(f.unit(c.members, resource.Request{GPUs: 1}))
			if got := fmt.Sprint(d.Action, " ", d.Models); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// TestAModelWithoutQuotaIsNoPlace follows one unit through the models.
func TestAModelWithoutQuotaIsNoPlace(t *testing.T) {
	f := newFleet(t, resource.Vector{"nvidia.com/gpu.a100": 2000, "nvidia.com/gpu.h100": 1000}, resource.Vector{resource.GPU: 16000})
	var got []string
	for range 3 {
		u := f.unit(1, resource.Request{GPUs: 1})
		d := f.world.Decide(u)
		f.start(u, d)
		got = append(got, fmt.Sprint(d.Action, " ", d.Models))
	}
	want := []string{"start map[nvidia.com/gpu.h100:1000]", "start map[nvidia.com/gpu.a100:1000]", "start map[nvidia.com/gpu.a100:1000]"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	u := f.unit(1, resource.Request{GPUs: 1})
	d := f.world.Decide(u)
	if d.Action != sched.Wait || d.Evidence.Code != sched.NoPlace || !d.Evidence.ByModel || len(d.Evidence.Short.Limits) != 1 {
		t.Fatalf("%+v %+v", d, d.Evidence)
	}
	if text := d.Evidence.Short.Limits[0].Reason().Detail; text != "exceeded quota: nvidia.com/gpu.a100 limit 2, requested 1, used 2" {
		t.Error(text)
	}
}

// TestQuotaOfAModelWakes: a class that has found a place, and no quota of its model, sleeps
// until either comes.
func TestQuotaOfAModelWakes(t *testing.T) {
	for name, event := range map[string]func(r *sched.Room){
		"a charge to the namespace ends": func(r *sched.Room) { r.Freed("x", nil) },
		"a charge to the tree ends":      func(r *sched.Room) { r.Freed("other", []string{claimTree}) },
		"the tree has moved units":       func(r *sched.Room) { r.Moved([]string{claimTree}) },
	} {
		for byModel, wakes := range map[bool]bool{true: true, false: false} {
			r := sched.NewRoom()
			demand := place.Unit{Members: 1, Request: resource.Request{GPUs: 1}}
			r.Offer(queue.Key{Path: "u"}, sched.Traits{Demand: "d", Namespace: "x"}, &demand)
			r.Pass(1, sleeper{&sched.Evidence{Code: sched.NoPlace, ByModel: byModel, Trees: []string{claimTree}}})
			if r.Asleep("u") == nil {
				t.Fatal("the class does not sleep")
			}
			if event(r); (r.Asleep("u") == nil) != wakes {
				t.Errorf("%s: by model %t: asleep %t", name, byModel, r.Asleep("u") != nil)
			}
		}
	}
}

// sleeper refuses each unit with its evidence.
type sleeper struct{ *sched.Evidence }

func (s sleeper) Try(queue.Key, bool) *sched.Evidence { return s.Evidence }
func (s sleeper) Wait(string, *sched.Evidence)        {}
