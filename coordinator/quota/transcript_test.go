package quota_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/resource"
)

// transcript runs the commands of testdata/transcripts on one manager. Amounts
// are written in the order of the tree's resources: "2" or "2,1".
type transcript struct {
	m         *quota.Manager
	resources map[string][]resource.Name
}

func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/transcripts", func(t *testing.T, path string) {
		x := &transcript{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			out, err := x.run(d)
			if err != nil {
				return "error: " + err.Error() + "\n"
			}
			if x.m != nil {
				if err := x.m.Check(); err != nil {
					t.Error(err)
				}
			}
			return out
		})
	})
}

func (x *transcript) run(d *datadriven.TestData) (string, error) {
	var name string
	if len(d.CmdArgs) > 0 {
		name = d.CmdArgs[0].Key
	}
	switch d.Cmd {
	case "manager":
		return "", x.manager(d)
	case "tree":
		return x.tree(name, d)
	case "consumers":
		return "", x.consumers(d)
	case "mode":
		return "", x.m.SetMode(map[string]quota.Mode{"normal": quota.Normal, "maintenance": quota.Maintenance, "neither": 7}[name])
	case "now":
		at, err := time.ParseDuration(name)
		x.m.SetNow(time.Unix(0, 0).Add(at))
		return "", err
	case "forest":
		return x.forest(name, d)
	case "state":
		return x.state()
	case "cache":
		return "", x.cache(name, d)
	case "update":
		return x.update(d)
	case "delete-tree":
		return "", x.m.DeleteTree(name)
	case "delete-forest":
		return "", x.m.DeleteForest(name)
	case "leave-forest":
		return "", x.m.DeleteTreeFromForest(name, arg(d, "tree", ""))
	case "remove":
		return "", x.m.RemoveConsumer(name)
	}
	var out strings.Builder
	for _, a := range d.CmdArgs {
		if len(a.Vals) > 0 {
			continue
		}
		text, err := x.allocation(a.Key, d)
		if err != nil {
			text = "error: " + err.Error() + "\n"
		}
		out.WriteString(a.Key + ": " + text)
	}
	return out.String(), nil
}

// allocation is the calls about one consumer, on a tree or on a forest.
func (x *transcript) allocation(id string, d *datadriven.TestData) (string, error) {
	tree, forest := arg(d, "tree", "T"), arg(d, "forest", "")
	on := func(one, all func(name, id string) (quota.Result, error)) (string, error) {
		call, name := one, tree
		if forest != "" {
			call, name = all, forest
		}
		r, err := call(name, id)
		if err != nil {
			return "", err
		}
		return x.result(id, r), nil
	}
	yes := func(one, all func(name, id string) bool) string {
		if forest != "" {
			return fmt.Sprintln(all(forest, id))
		}
		return fmt.Sprintln(one(tree, id))
	}
	switch d.Cmd {
	case "allocate":
		return on(x.m.Allocate, x.m.AllocateForest)
	case "try":
		return on(x.m.TryAllocate, x.m.TryAllocateForest)
	case "restore":
		return on(x.m.Restore, x.m.RestoreForest)
	case "deallocate":
		return yes(x.m.Deallocate, x.m.DeallocateForest) + x.moves(id), nil
	case "allocated":
		return yes(x.m.IsAllocated, x.m.IsAllocatedForest), nil
	case "undo":
		if forest != "" {
			err := x.m.UndoAllocateForest(forest, id)
			return "undone\n" + x.moves(id), err
		}
		err := x.m.UndoAllocate(tree, id)
		return "undone\n" + x.moves(id), err
	}
	return "", fmt.Errorf("unknown command %s", d.Cmd)
}

func (x *transcript) manager(d *datadriven.TestData) error {
	var o quota.Options
	for _, a := range d.CmdArgs {
		switch a.Key {
		case "evict-at-hard":
			o.EvictAtHard = true
		case "settle":
			o.Settle = true
		case "ignore-overdrawn":
			o.IgnoreOverdrawn = true
		case "fewest-victims":
			o.FewestVictims = true
		case "pinned-within-quota":
			o.PinnedWithinQuota = true
		case "min-run-time":
			run, err := time.ParseDuration(a.Vals[0])
			if err != nil {
				return err
			}
			o.MinRunTime = run
		}
	}
	x.m, x.resources = quota.NewManager(o), map[string][]resource.Name{}
	return x.m.SetMode(quota.Normal)
}

func arg(d *datadriven.TestData, key, otherwise string) string {
	for _, a := range d.CmdArgs {
		if a.Key == key && len(a.Vals) > 0 {
			return strings.Join(a.Vals, ",")
		}
	}
	return otherwise
}

func has(d *datadriven.TestData, key string) bool {
	return slices.ContainsFunc(d.CmdArgs, func(a datadriven.CmdArg) bool { return a.Key == key })
}

// tree adds a tree; a line of input is a node: NAME PARENT QUOTA [FIELD…],
// with - for no parent.
func (x *transcript) tree(name string, d *datadriven.TestData) (string, error) {
	s := quota.TreeSpec{Name: name, Nodes: map[string]quota.NodeSpec{}}
	for _, r := range strings.Split(arg(d, "resources", "x"), ",") {
		s.Resources = append(s.Resources, resource.Name(r))
	}
	slices.Sort(s.Resources)
	x.resources[name] = s.Resources
	for line := range strings.Lines(d.Input) {
		node, n, err := x.node(name, strings.Fields(line))
		if err != nil {
			return "", err
		}
		s.Nodes[node] = n
	}
	shape, err := x.m.AddTree(s)
	if err != nil {
		return "", err
	}
	return "root " + shape.Root + "\n" + left(shape), nil
}

func left(s quota.Shape) string {
	out := ""
	for _, l := range []struct {
		what  string
		nodes []string
	}{{"dangling", s.Dangling}, {"other roots", s.OtherRoots}, {"orphans", s.Orphans}, {"cyclic", s.Cyclic}} {
		if len(l.nodes) > 0 {
			out += l.what + " " + strings.Join(l.nodes, " ") + "\n"
		}
	}
	return out
}

func (x *transcript) node(tree string, fields []string) (string, quota.NodeSpec, error) {
	if len(fields) < 3 {
		return "", quota.NodeSpec{}, fmt.Errorf("node %v: want NAME PARENT QUOTA", fields)
	}
	n := quota.NodeSpec{Quota: x.vector(tree, fields[2])}
	if fields[1] != "-" {
		n.Parent = fields[1]
	}
	for _, f := range fields[3:] {
		key, value, _ := strings.Cut(f, "=")
		switch key {
		case "hard":
			n.Hard = true
		case "borrowing":
			n.Borrowing = x.vector(tree, value)
		case "lending":
			n.Lending = x.vector(tree, value)
		case "cap":
			n.Cap = x.vector(tree, value)
		case "per-owner":
			n.PerOwner = x.vector(tree, value)
		}
	}
	return fields[0], n, nil
}

// vector reads amounts, or NAME:AMOUNT pairs.
func (x *transcript) vector(tree, text string) resource.Vector {
	v := resource.Vector{}
	for i, part := range strings.Split(text, ",") {
		name, amount, named := strings.Cut(part, ":")
		if !named {
			amount, name = part, "x" // of a tree that does not exist
			if i < len(x.resources[tree]) {
				name = string(x.resources[tree][i])
			}
		}
		if amount == "unlimited" {
			v[resource.Name(name)] = quota.Unlimited
			continue
		}
		v[resource.Name(name)], _ = strconv.ParseInt(amount, 10, 64)
	}
	return v
}

// consumers registers consumers; a line of input is one: ID, any number of
// TREE/GROUP=REQUEST, and prio=N, type=N, owner=NAME, pinned.
func (x *transcript) consumers(d *datadriven.TestData) error {
	for line := range strings.Lines(d.Input) {
		f := strings.Fields(line)
		s := quota.ConsumerSpec{ID: f[0]}
		var common quota.Demand
		for _, field := range f[1:] {
			key, value, _ := strings.Cut(field, "=")
			tree, group, isDemand := strings.Cut(key, "/")
			switch {
			case isDemand:
				s.Demands = append(s.Demands, quota.Demand{Tree: tree, Group: group, Request: x.vector(tree, value)})
			case key == "prio":
				common.Priority, _ = strconv.Atoi(value)
			case key == "type":
				common.Type, _ = strconv.Atoi(value)
			case key == "owner":
				s.Owner = value
			case key == "pinned":
				common.Unpreemptable = true
			}
		}
		for i := range s.Demands {
			e := &s.Demands[i]
			e.Priority, e.Type, e.Unpreemptable = common.Priority, common.Type, common.Unpreemptable
		}
		if err := x.m.AddConsumer(s); err != nil {
			return err
		}
	}
	return nil
}

func (x *transcript) result(id string, r quota.Result) string {
	if !r.OK {
		return "refused: " + r.Refusal.String() + "\n"
	}
	var out strings.Builder
	out.WriteString("ok")
	for _, p := range r.Placed {
		fmt.Fprintf(&out, " %s/%s", p.Tree, p.Node)
	}
	if r.Forced {
		out.WriteString(" forced")
	}
	if len(r.Preempted) > 0 {
		fmt.Fprintf(&out, ", evicted %s", strings.Join(r.Preempted, " "))
	}
	return out.String() + "\n" + x.moves(id)
}

// moves tells what became of others than id.
func (x *transcript) moves(id string) string {
	var out strings.Builder
	for _, m := range x.m.Moves() {
		if m.Consumer != id {
			fmt.Fprintf(&out, "%s on %s: %s -> %s\n", m.Consumer, m.Tree, dash(m.From), dash(m.To))
		}
	}
	return out.String()
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// forest adds a forest of trees.
func (x *transcript) forest(name string, d *datadriven.TestData) (string, error) {
	if err := x.m.AddForest(name); err != nil {
		return "", err
	}
	for _, tree := range strings.Split(arg(d, "trees", ""), ",") {
		if tree != "" {
			if err := x.m.AddTreeToForest(name, tree); err != nil {
				return "", err
			}
		}
	}
	return strings.Join(x.m.ForestTreeNames(name), " ") + "\n", nil
}

// state prints every node: allocated of quota, and its consumers in order.
func (x *transcript) state() (string, error) {
	var out strings.Builder
	for _, tree := range x.m.TreeNames() {
		nodes, err := x.m.Nodes(tree)
		if err != nil {
			return "", err
		}
		for _, n := range nodes {
			fmt.Fprintf(&out, "%s%s/%s", strings.Repeat("  ", n.Depth), tree, n.Name)
			for _, name := range n.Quota.Names() {
				fmt.Fprintf(&out, " %d/%d", n.Allocated[name], n.Quota[name])
			}
			fmt.Fprintf(&out, " %s\n", strings.Join(n.Consumers, " "))
		}
	}
	return strings.ReplaceAll(out.String(), " \n", "\n"), nil
}

// cache changes a tree's cache; a line of input is "set NAME PARENT QUOTA
// [FIELD…]", "delete NAME", "rename OLD NEW" or "resources NAME…".
func (x *transcript) cache(tree string, d *datadriven.TestData) error {
	c, err := x.m.Cache(tree)
	if err != nil {
		return err
	}
	var errs []error
	for line := range strings.Lines(d.Input) {
		f := append(strings.Fields(line), "") // an empty name where one is left out
		switch f[0] {
		case "set":
			name, n, err := x.node(tree, f[1:len(f)-1])
			errs = append(errs, err, c.SetNode(name, n))
		case "delete":
			errs = append(errs, c.DeleteNode(f[1]))
		case "rename":
			errs = append(errs, c.RenameNode(f[1], f[2]))
		case "resources":
			names := make([]resource.Name, len(f)-2)
			for i, name := range f[1 : len(f)-1] {
				names[i] = resource.Name(name)
			}
			errs = append(errs, c.SetResources(names))
			x.resources[tree] = c.Resources()
		}
	}
	return errors.Join(errs...)
}

// update updates a tree, a forest or everything.
func (x *transcript) update(d *datadriven.TestData) (string, error) {
	var results []quota.UpdateResult
	switch forest := arg(d, "forest", ""); {
	case forest != "":
		r, err := x.m.UpdateForest(forest)
		if err != nil {
			return "", err
		}
		results = r
	case has(d, "all"):
		results = x.m.UpdateAll()
	default:
		r, err := x.m.UpdateTree(arg(d, "tree", "T"))
		if err != nil {
			return "", err
		}
		results = append(results, r)
	}
	var out strings.Builder
	for _, r := range results {
		fmt.Fprintf(&out, "%s: root %s\n%s", r.Tree, dash(r.Root), left(r.Shape))
		for _, m := range r.Moved {
			fmt.Fprintf(&out, "%s on %s: %s -> %s\n", m.Consumer, m.Tree, m.From, m.To)
		}
		if len(r.Lost) > 0 {
			fmt.Fprintf(&out, "lost %s\n", strings.Join(r.Lost, " "))
		}
		if len(r.Detached) > 0 {
			fmt.Fprintf(&out, "detached %s\n", strings.Join(r.Detached, " "))
		}
	}
	return out.String(), nil
}
