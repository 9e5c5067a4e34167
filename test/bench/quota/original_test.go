package quota_test

import (
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"testing"

	original "github.com/project-codeflare/multi-cluster-app-dispatcher/pkg/quotaplugins/quota-forest/quota-manager/quota"
	"github.com/project-codeflare/multi-cluster-app-dispatcher/pkg/quotaplugins/quota-forest/quota-manager/quota/utils"
	"k8s.io/klog/v2"

	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/resource"
)

// The library logs what it is asked and what it refuses.
func TestMain(m *testing.M) {
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	for name, value := range map[string]string{"logtostderr": "false", "alsologtostderr": "false", "stderrthreshold": "FATAL"} {
		if err := flags.Set(name, value); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	klog.SetOutput(io.Discard)
	os.Exit(m.Run())
}

// node is the state of a node of either manager.
type node struct {
	Allocated map[string]int64
	Consumers []string // oldest first
}

// manager is what histories and benchmarks ask of both. A call that the
// manager answers with an error is refused.
type manager interface {
	addTree(quota.TreeSpec) error
	addConsumer(quota.ConsumerSpec) error
	allocate(tree, id string) (preempted []string, ok bool)
	try(tree, id string) (preempted []string, ok bool)
	undo(tree, id string) bool
	release(tree, id string) bool
	nodes(tree string) map[string]node
}

type ours struct{ m *quota.Manager }

func newOurs() manager {
	o := ours{quota.NewManager(quota.Options{})}
	if err := o.m.SetMode(quota.Normal); err != nil {
		panic(err)
	}
	return o
}

func (o ours) addTree(s quota.TreeSpec) error {
	_, err := o.m.AddTree(s)
	return err
}

func (o ours) addConsumer(s quota.ConsumerSpec) error { return o.m.AddConsumer(s) }

func (o ours) allocate(tree, id string) ([]string, bool) {
	r, err := o.m.Allocate(tree, id)
	return r.Preempted, err == nil && r.OK
}

func (o ours) try(tree, id string) ([]string, bool) {
	r, err := o.m.TryAllocate(tree, id)
	return r.Preempted, err == nil && r.OK
}

func (o ours) undo(tree, id string) bool    { return o.m.UndoAllocate(tree, id) == nil }
func (o ours) release(tree, id string) bool { return o.m.Deallocate(tree, id) }

func (o ours) nodes(tree string) map[string]node {
	views, err := o.m.Nodes(tree)
	if err != nil {
		panic(err)
	}
	all := map[string]node{}
	for _, v := range views {
		n := node{map[string]int64{}, v.Consumers}
		for name, amount := range v.Allocated {
			n.Allocated[string(name)] = amount
		}
		all[v.Name] = n
	}
	return all
}

type theirs struct{ m *original.Manager }

func newTheirs() manager {
	m := original.NewManager()
	m.SetMode(original.Normal)
	return theirs{m}
}

func (t theirs) addTree(s quota.TreeSpec) error {
	var doc utils.JQuotaTree
	doc.Kind, doc.MetaData.Name, doc.Spec.Nodes = utils.DefaultTreeKind, s.Name, map[string]utils.JNodeSpec{}
	for _, name := range s.Resources {
		doc.Spec.ResourceNames = append(doc.Spec.ResourceNames, string(name))
	}
	for name, n := range s.Nodes {
		spec := utils.JNodeSpec{Parent: n.Parent, Hard: strconv.FormatBool(n.Hard), Quota: map[string]string{}}
		for r, amount := range n.Quota {
			spec.Quota[string(r)] = strconv.FormatInt(amount, 10)
		}
		doc.Spec.Nodes[name] = spec
	}
	_, err := t.m.AddTreeFromStruct(doc)
	return err
}

func (t theirs) addConsumer(s quota.ConsumerSpec) error {
	var trees []utils.JConsumerTreeSpec
	for _, d := range s.Demands {
		request := make(map[string]int, len(d.Request))
		for r, amount := range d.Request {
			request[string(r)] = int(amount)
		}
		trees = append(trees, utils.JConsumerTreeSpec{
			TreeName: d.Tree, GroupID: d.Group, Request: request, Priority: d.Priority, CType: d.Type, UnPreemptable: d.Unpreemptable,
		})
	}
	return t.register(s.ID, trees)
}

func (t theirs) register(id string, trees []utils.JConsumerTreeSpec) error {
	info, err := original.NewConsumerInfo(utils.JConsumer{
		Kind: utils.DefaultConsumerKind, Spec: utils.JConsumerSpec{ID: id, Trees: trees},
	})
	if err != nil {
		return err
	}
	_, err = t.m.AddConsumer(info)
	return err
}

func (t theirs) allocate(tree, id string) ([]string, bool) {
	r, err := t.m.Allocate(tree, id)
	if err != nil {
		return nil, false
	}
	return r.GetPreemptedIds(), true
}

func (t theirs) try(tree, id string) ([]string, bool) {
	r, err := t.m.TryAllocate(tree, id)
	if err != nil {
		return nil, false
	}
	return r.GetPreemptedIds(), true
}

func (t theirs) undo(tree, id string) bool    { return t.m.UndoAllocate(tree, id) == nil }
func (t theirs) release(tree, id string) bool { return t.m.DeAllocate(tree, id) }

func (t theirs) nodes(tree string) map[string]node {
	controller := t.m.GetTreeController(tree)
	names := slices.Sorted(slices.Values(controller.GetResourceNames())) // the order of amounts
	all := map[string]node{}
	for name, n := range controller.GetTree().GetNodes() {
		state := node{Allocated: map[string]int64{}}
		for i, amount := range n.GetAllocated().GetValue() {
			state.Allocated[names[i]] = int64(amount)
		}
		for _, c := range n.GetConsumers() {
			state.Consumers = append(state.Consumers, c.GetID())
		}
		all[name] = state
	}
	return all
}

// all is the same amount of each resource.
func all(resources []resource.Name, amount int) resource.Vector {
	v := make(resource.Vector, len(resources))
	for _, name := range resources {
		v[name] = int64(amount)
	}
	return v
}
