package replay

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/quota/quotajson"
)

// do makes the call of an operation. An error is an operation that cannot be
// understood; a call that fails has an outcome that is not OK.
func (p *player) do(op *operation) (outcome, error) {
	var got outcome
	switch op.Op {
	case "allocate", "try":
		if p.register(op) != nil {
			return got, nil //nolint:nilerr // a malformed consumer is refused, which is an outcome
		}
		r, err := p.allocate(op)
		got.OK = err == nil && r.OK
		got.Preempted = slices.Sorted(slices.Values(r.Preempted))
		if got.OK {
			got.ANode = map[string]string{}
			for _, place := range r.Placed {
				got.ANode[place.Tree] = place.Node
			}
		}
	case "undo":
		if p.s.Forest {
			got.OK = p.m.UndoAllocateForest(forestName, op.ID) == nil
		} else {
			got.OK = p.m.UndoAllocate(p.trees[0], op.ID) == nil
		}
	case "deallocate":
		if p.s.Forest {
			got.OK = p.m.DeallocateForest(forestName, op.ID)
		} else {
			got.OK = p.m.Deallocate(p.trees[0], op.ID)
		}
	case "mode":
		if err := p.setMode(op.Mode); err != nil {
			return got, err
		}
		got.OK = true
	case "update":
		p.update(&got)
	default:
		return got, p.edit(op, &got)
	}
	return got, nil
}

func (p *player) allocate(op *operation) (quota.Result, error) {
	switch try := op.Op == "try"; {
	case p.s.Forest && try:
		return p.m.TryAllocateForest(forestName, op.ID)
	case p.s.Forest:
		return p.m.AllocateForest(forestName, op.ID)
	case try:
		return p.m.TryAllocate(p.trees[0], op.ID)
	default:
		return p.m.Allocate(p.trees[0], op.ID)
	}
}

func (p *player) update(got *outcome) {
	var results []quota.UpdateResult
	if p.s.Forest {
		r, err := p.m.UpdateForest(forestName)
		results, got.OK = r, err == nil
	} else {
		r, err := p.m.UpdateTree(p.trees[0])
		results, got.OK = []quota.UpdateResult{r}, err == nil
	}
	got.Root, got.Dangling = map[string]string{}, map[string][]string{}
	for _, r := range results {
		got.Root[r.Tree] = r.Root
		if len(r.Dangling) > 0 {
			got.Dangling[r.Tree] = r.Dangling
		}
		got.Lost = append(got.Lost, r.Lost...)
	}
	slices.Sort(got.Lost)
	got.Lost = slices.Compact(got.Lost)
}

// edit changes a tree's cache.
func (p *player) edit(op *operation, got *outcome) error {
	cache, err := p.m.Cache(op.Tree)
	if err != nil {
		return err
	}
	switch op.Op {
	case "setNode":
		spec, err := quotajson.Node(op.Spec, quotajson.BaseUnits)
		if err != nil {
			return err
		}
		got.OK = cache.SetNode(op.Node, spec) == nil
	case "deleteNode":
		got.OK = cache.DeleteNode(op.Node) == nil
	case "renameNode":
		got.OK = cache.RenameNode(op.Node, op.NewName) == nil
	default:
		return fmt.Errorf("unknown operation %q", op.Op)
	}
	return nil
}

// position is a consumer on a tree.
type position struct{ id, tree string }

// positions reads from the trees themselves where every consumer is.
func (p *player) positions() map[position]string {
	at := map[position]string{}
	for _, tree := range p.trees {
		for _, n := range p.nodes(tree) {
			for _, id := range n.Consumers {
				at[position{id, tree}] = n.Name
			}
		}
	}
	return at
}

func (p *player) nodes(tree string) []quota.NodeView {
	nodes, err := p.m.Nodes(tree)
	if err != nil {
		return nil // the trees of a scenario are never deleted
	}
	return nodes
}

// observe adds what became of the other consumers, by comparing the trees.
func (p *player) observe(op *operation, before map[position]string, got *outcome) {
	got.Moved = map[string]map[string]string{}
	for at, node := range p.positions() {
		if at.id == op.ID || before[at] == node {
			continue
		}
		if got.Moved[at.id] == nil {
			got.Moved[at.id] = map[string]string{}
		}
		got.Moved[at.id][at.tree] = node
	}
	if op.Op == "deallocate" && got.OK {
		for at := range p.positions() {
			got.OK = got.OK && at.id != op.ID
		}
	}
}

// broken says what is wrong with the state after an operation, if anything: a
// violated invariant, or a change by a call that was refused.
func (p *player) broken(op *operation, got *outcome) string {
	if err := p.m.Check(); err != nil {
		return err.Error()
	}
	if refused := !got.OK && (op.Op == "allocate" || op.Op == "try"); refused && !bytes.Equal(p.state, p.m.AppendState(nil)) {
		return "changed by a refusal"
	}
	return ""
}

// compare calls differ with every field in which two outcomes differ; nil and
// empty are the same.
func compare(want, got *outcome, differ func(field string, want, got any)) {
	w, g := reflect.ValueOf(want).Elem(), reflect.ValueOf(got).Elem()
	for i := range w.NumField() {
		a, b := w.Field(i), g.Field(i)
		if a.Kind() != reflect.Bool && a.Len() == 0 && b.Len() == 0 {
			continue
		}
		if !reflect.DeepEqual(a.Interface(), b.Interface()) {
			differ(w.Type().Field(i).Tag.Get("json"), a.Interface(), b.Interface())
		}
	}
}

// compareFinal compares the final state of all nodes.
func (p *player) compareFinal(differ func(node string, want, got any)) {
	final := map[string]map[string]onNode{}
	for _, tree := range p.trees {
		final[tree] = map[string]onNode{}
		for _, n := range p.nodes(tree) {
			state := onNode{Allocated: map[string]int64{}, Consumers: slices.Sorted(slices.Values(n.Consumers))}
			for name, amount := range n.Allocated {
				state.Allocated[string(name)] = amount
			}
			final[tree][n.Name] = state
		}
	}
	for _, tree := range union(p.s.Final, final) {
		for _, name := range union(p.s.Final[tree], final[tree]) {
			want, expected := p.s.Final[tree][name]
			got, exists := final[tree][name]
			if expected != exists || !maps.Equal(want.Allocated, got.Allocated) || !slices.Equal(want.Consumers, got.Consumers) {
				differ(tree+" "+name, want, got)
			}
		}
	}
}

// union returns the keys of both maps, ascending.
func union[V any](a, b map[string]V) []string {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(keys)
	return slices.Compact(keys)
}
