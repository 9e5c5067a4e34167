package replay

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/quota/quotajson"
)

// scenario is one line of a recording.
type scenario struct {
	ID     string                       `json:"id"`
	Forest bool                         `json:"forest"`
	Mode   string                       `json:"mode"`
	Trees  []json.RawMessage            `json:"trees"`
	Ops    []operation                  `json:"ops"`
	Final  map[string]map[string]onNode `json:"final"`
}

// onNode is the final state of a node.
type onNode struct {
	Allocated map[string]int64 `json:"allocated"`
	Consumers []string         `json:"consumers"`
}

// operation is one call and what it has to do.
type operation struct {
	Op      string          `json:"op"`
	ID      string          `json:"id"`
	Trees   json.RawMessage `json:"trees"`
	Mode    string          `json:"mode"`
	Tree    string          `json:"tree"`
	Node    string          `json:"node"`
	NewName string          `json:"newName"`
	Spec    json.RawMessage `json:"spec"`
	Expect  outcome         `json:"expect"`
}

// outcome is what a call did. What is absent is empty.
type outcome struct {
	OK        bool                         `json:"ok"`
	ANode     map[string]string            `json:"aNode"`
	Preempted []string                     `json:"preempted"`
	Moved     map[string]map[string]string `json:"moved"`
	Lost      []string                     `json:"lost"`
	Root      map[string]string            `json:"root"`
	Dangling  map[string][]string          `json:"dangling"`
}

// player plays one scenario on a manager of its own.
type player struct {
	s     *scenario
	m     *quota.Manager
	trees []string // in the order of the scenario
	ids   []string // the consumers seen so far
	state []byte   // before the operation
}

const forestName = "forest"

// load sets the scenario up; an error is a scenario that cannot be played.
func load(s *scenario) (*player, error) {
	p := &player{s: s, m: quota.NewManager(quota.Options{})}
	for _, doc := range s.Trees {
		spec, err := quotajson.Tree(doc, quotajson.BaseUnits)
		if err != nil {
			return nil, err
		}
		if _, err := p.m.AddTree(spec); err != nil {
			return nil, err
		}
		p.trees = append(p.trees, spec.Name)
	}
	if !s.Forest && len(p.trees) != 1 {
		return nil, fmt.Errorf("%d trees without a forest, want 1", len(p.trees))
	}
	if s.Forest {
		if err := p.m.AddForest(forestName); err != nil {
			return nil, err
		}
		for _, tree := range p.trees {
			if err := p.m.AddTreeToForest(forestName, tree); err != nil {
				return nil, err
			}
		}
	}
	return p, p.setMode(s.Mode)
}

func (p *player) setMode(name string) error {
	for _, mode := range []quota.Mode{quota.Maintenance, quota.Normal} {
		if mode.String() == name {
			return p.m.SetMode(mode)
		}
	}
	return &quotajson.FieldError{Path: "mode", What: "want normal or maintenance, found " + name}
}

// register makes a consumer known when it is first named.
func (p *player) register(op *operation) error {
	if slices.Contains(p.ids, op.ID) {
		return nil
	}
	demands, err := quotajson.Demands(op.Trees, quotajson.BaseUnits)
	if err != nil {
		return err
	}
	if err := p.m.AddConsumer(quota.ConsumerSpec{ID: op.ID, Demands: demands}); err != nil {
		return err
	}
	p.ids = append(p.ids, op.ID)
	return nil
}
