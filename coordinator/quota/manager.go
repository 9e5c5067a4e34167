package quota

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Mode says how allocations are treated.
type Mode uint8

// The modes. A Manager starts in Maintenance.
const (
	// Maintenance counts every consumer on its group, whatever the quota; the
	// group may be any node.
	Maintenance Mode = iota
	// Normal admits, borrows, claims back and evicts.
	Normal
)

// String returns "maintenance" or "normal".
func (m Mode) String() string {
	switch m {
	case Maintenance:
		return "maintenance"
	case Normal:
		return "normal"
	}
	return fmt.Sprintf("Mode(%d)", uint8(m))
}

// Manager holds trees, forests and consumers. One goroutine owns it. Strings
// and slices it is given are its own afterwards, maps it copies.
type Manager struct {
	opts Options
	mode Mode
	now  int64

	trees   map[string]*tree
	recent  *tree   // the last one that was asked for: most callers have one
	slots   []*tree // nil where a tree was deleted
	forests map[string]*forest

	ids           map[string]int32
	consumers     []consumer
	freeConsumers []int32

	log       journal
	try       try
	undone    bool // the records from the journal's end to undoneTo were taken back by the last call
	undoneTo  int
	placed    []Placement
	preempted []string
}

// NewManager returns a Manager in Maintenance mode, without trees.
func NewManager(o Options) *Manager {
	return &Manager{opts: o, trees: map[string]*tree{}, forests: map[string]*forest{}, ids: map[string]int32{}}
}

// Mode returns the mode.
func (m *Manager) Mode() Mode { return m.mode }

// SetMode changes how later allocations are treated; nothing moves by it, and
// nodes over quota stay so until consumers leave. An unknown mode is an error.
func (m *Manager) SetMode(mode Mode) error {
	if mode != Normal && mode != Maintenance {
		return fmt.Errorf("%w: mode: %d is none", ErrInvalid, uint8(mode))
	}
	m.mode = mode
	return nil
}

// SetNow tells the time from which MinRunTime is reckoned. A time before the
// last one is taken for the last one.
func (m *Manager) SetNow(now time.Time) {
	m.now = max(m.now, now.UnixNano())
	for _, t := range m.trees {
		t.now = m.now
	}
}

// ProtectedUntil returns the earliest time at which the last call, if it was an
// allocation, could have another result by the passing of time alone: then
// MinRunTime is over for the first of the consumers that it kept from being
// evicted. It is zero where no consumer was.
func (m *Manager) ProtectedUntil() time.Time {
	if m.log.protected == 0 {
		return time.Time{}
	}
	return time.Unix(0, m.log.protected)
}

// AddTree adds a tree and reports what became of its nodes. A specification
// that is wrong, or of a name in use, is an error; an empty tree is not, and
// refuses every consumer.
func (m *Manager) AddTree(s TreeSpec) (Shape, error) {
	if err := s.validate(); err != nil {
		return Shape{}, err
	}
	if m.trees[s.Name] != nil {
		return Shape{}, fmt.Errorf("tree %s: %w", s.Name, ErrExists)
	}
	m.beginRebuild()
	t := &tree{name: s.Name, opts: &m.opts, log: &m.log, now: m.now, cache: newCache(s)}
	t.slot = int32(slices.Index(m.slots, nil))
	if t.slot == none {
		t.slot = int32(len(m.slots))
		m.slots = append(m.slots, nil)
	}
	m.slots[t.slot], m.trees[s.Name] = t, t
	t.rebuild()
	return t.shape.clone(), nil
}

// DeleteTree removes a tree, from its forest too. One that is unknown, or on
// which consumers are allocated, is an error.
func (m *Manager) DeleteTree(name string) error {
	t, err := m.treeOf(name)
	if err != nil {
		return err
	}
	if t.allocated > 0 {
		return fmt.Errorf("tree %s: %w: %d consumers are allocated", name, ErrInUse, t.allocated)
	}
	m.beginRebuild()
	if t.forest != nil {
		t.forest.remove(t)
	}
	for i := range m.consumers {
		c := &m.consumers[i]
		if j := slices.IndexFunc(c.demands, func(d demand) bool { return d.slot == t.slot }); j >= 0 {
			c.demands = slices.Clone(c.demands)
			c.demands[j].slot, c.demands[j].seat = none, none
		}
	}
	m.slots[t.slot], m.recent = nil, nil
	delete(m.trees, name)
	return nil
}

// TreeNames returns the trees, ascending.
func (m *Manager) TreeNames() []string { return slices.Sorted(maps.Keys(m.trees)) }

// HasTree reports whether there is a tree of the name.
func (m *Manager) HasTree(name string) bool { return m.trees[name] != nil }

// Cache returns the specification on which a tree's next update will be built.
func (m *Manager) Cache(tree string) (*Cache, error) {
	t, err := m.treeOf(tree)
	if err != nil {
		return nil, err
	}
	return &t.cache, nil
}

// Shape reports what became of a tree's nodes when it was last built.
func (m *Manager) Shape(tree string) (Shape, error) {
	t, err := m.treeOf(tree)
	if err != nil {
		return Shape{}, err
	}
	return t.shape.clone(), nil
}

func (m *Manager) treeOf(name string) (*tree, error) {
	if t := m.recent; t != nil && t.name == name {
		return t, nil
	}
	if t := m.trees[name]; t != nil {
		m.recent = t
		return t, nil
	}
	return nil, fmt.Errorf("tree %s: %w", name, ErrUnknown)
}

func (m *Manager) consumerOf(id string) (int32, error) {
	if at, known := m.ids[id]; known {
		return at, nil
	}
	return none, fmt.Errorf("consumer %s: %w", id, ErrUnknown)
}

// begin starts a call that may change what is live: the last call can neither
// be undone nor told any more.
func (m *Manager) begin() {
	j := &m.log
	if len(j.marks) == 0 {
		j.records, j.victims = j.records[:0], j.victims[:0]
	}
	j.call, j.callVictims, j.protected = len(j.records), len(j.victims), 0
	m.try = try{}
	m.undone = false
}

func (s Shape) clone() Shape {
	s.Dangling, s.OtherRoots = slices.Clone(s.Dangling), slices.Clone(s.OtherRoots)
	s.Orphans, s.Cyclic = slices.Clone(s.Orphans), slices.Clone(s.Cyclic)
	return s
}
