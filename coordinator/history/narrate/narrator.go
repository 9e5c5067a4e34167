package narrate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// Narrator follows the changes of a store. It keeps the keys that rows are made of as
// they are at one revision. One goroutine at a time uses it.
type Narrator struct {
	cluster string

	units map[string]*unit // by path
	paths map[resource.UnitUID]string
	jobs  map[string]*job // by key
	txs   map[resource.TxID]*tx
	// of are the transactions of each unit that the store has a record of.
	of    map[resource.UnitUID]map[resource.TxID]bool
	ready map[resource.TxID]ready
	freed map[resource.TxID][]record.FreedNode // of the same keys
	ended map[resource.TxID]*unit              // as at the end of grants, for rows behind the end
	// partial are grants with rows from before the request of their unit was known, or after.
	partial map[resource.TxID]bool
	places  map[string]place // the places in the order, by the unit's path
	nodes   map[resource.NodeID]*node
	quotas  map[string]*quota             // by key
	owners  map[string]resource.TenantID  // of namespaces with an object
	names   map[resource.Name]declaration // of resources with an object

	uses     map[memberKey]history.Use // since the last call of Uses
	revision resource.Revision
	at       time.Time // the newest instant of any record
	out      batch
	faults   []error
}

// mostFaults bounds the faults between two calls of Faults.
const mostFaults = 100

// New returns a narrator of an empty store. The cluster's name goes into the rows of
// nodes.
func New(cluster string) *Narrator {
	return &Narrator{
		cluster: cluster, units: map[string]*unit{}, paths: map[resource.UnitUID]string{}, jobs: map[string]*job{}, txs: map[resource.TxID]*tx{}, of: map[resource.UnitUID]map[resource.TxID]bool{},
		ready: map[resource.TxID]ready{}, places: map[string]place{}, nodes: map[resource.NodeID]*node{}, quotas: map[string]*quota{},
		owners: map[string]resource.TenantID{}, names: map[resource.Name]declaration{}, uses: map[memberKey]history.Use{}, out: newBatch(),
	}
}

// Load takes all keys of the store at a revision, into a narrator of an empty store. It
// makes no rows.
func (n *Narrator) Load(kvs []record.KV, at resource.Revision) {
	n.LoadAll(kvs, at)
	n.out = newBatch()
	n.out.After, n.out.Upto = at, at
}

// LoadAll is Load, and makes the rows of all that the store has.
func (n *Narrator) LoadAll(kvs []record.KV, at resource.Revision) {
	c := n.begin(at)
	c.whole = true
	for i := range kvs {
		n.take(c, record.Event{Type: record.EventPut, KV: kvs[i]})
	}
	n.tell(c)
	n.tellBuiltIn()
	n.out.After, n.out.Upto = at, at
}

// Follow takes the changes of one revision, which is greater than those before, and
// makes the rows that follow from them.
func (n *Narrator) Follow(b record.Batch) {
	c := n.begin(b.Revision)
	for i := range b.Events {
		n.take(c, b.Events[i])
	}
	n.tell(c)
	n.out.Upto = b.Revision
}

// Revision is that of the last changes taken.
func (n *Narrator) Revision() resource.Revision { return n.revision }

// Rows is the number of rows that Take would return.
func (n *Narrator) Rows() int { return n.out.rows() }

// Take returns the rows since the last Take, each row once, in its newest form. The
// batch reaches from the revision of the last Take to that of the last changes.
func (n *Narrator) Take() history.Batch {
	b := n.out.batch()
	b.At = n.at
	upto := n.out.Upto
	n.out = newBatch()
	n.out.After, n.out.Upto = upto, upto
	return b
}

// Faults returns the keys that could not be read since the last call, at most 100.
// Their rows are missing.
func (n *Narrator) Faults() []error {
	faults := n.faults
	n.faults = nil
	return faults
}

// change is what one revision changes.
type change struct {
	revision resource.Revision
	at       time.Time // the newest instant in its records; zero where none has one
	whole    bool      // a full read, not a change

	// These are the objects as they were before, by key; nil for none.
	units  map[string]*unit
	waits  map[string]place
	jobs   map[string]*job
	txs    map[resource.TxID]*tx
	behind map[resource.TxID]bool // with a new key of readiness, also behind the end
	nodes  map[resource.NodeID]*node
	quotas map[string]*quota
	owned  map[string]bool // namespaces whose owner has changed
	names  map[resource.Name]bool
}

func (n *Narrator) begin(at resource.Revision) *change {
	n.revision = at
	return &change{
		revision: at, units: map[string]*unit{}, waits: map[string]place{}, jobs: map[string]*job{}, txs: map[resource.TxID]*tx{},
		nodes: map[resource.NodeID]*node{}, quotas: map[string]*quota{}, owned: map[string]bool{}, names: map[resource.Name]bool{},
	}
}

// note takes an instant of a record over.
func (c *change) note(at time.Time) {
	if at.After(c.at) {
		c.at = at
	}
}

// take takes one key's change into the state.
func (n *Narrator) take(c *change, e record.Event) {
	key := e.KV.Key
	var err error
	switch {
	case strings.HasPrefix(key, record.UnitsPrefix):
		err = n.takeUnit(c, e)
	case strings.HasPrefix(key, record.TxPrefix):
		err = n.takeTx(c, e)
	case strings.HasPrefix(key, record.ReadyPrefix):
		err = n.takeReady(c, e)
	case strings.HasPrefix(key, record.OrderPrefix):
		err = n.takeOrder(c, e)
	case strings.HasPrefix(key, record.NodesPrefix):
		err = n.takeNode(c, e)
	case strings.HasPrefix(key, record.BansPrefix):
		err = n.takeBan(c, e)
	case strings.HasPrefix(key, record.JobsPrefix):
		err = n.takeJob(c, e)
	case strings.HasPrefix(key, record.QuotaPrefix):
		err = n.takeQuota(c, e)
	case strings.HasPrefix(key, record.NamespacesPrefix):
		err = n.takeNamespace(c, e)
	case strings.HasPrefix(key, record.ResourcesPrefix):
		err = n.takeResource(c, e)
	case strings.HasPrefix(key, record.AuditPrefix):
		err = n.takeAudit(c, e)
	}
	if err != nil {
		n.fault(err)
	}
}

// fault notes a key that cannot be read. The others go on: a history with a hole is
// worth more than none.
func (n *Narrator) fault(err error) {
	if len(n.faults) < mostFaults {
		n.faults = append(n.faults, err)
	}
}

// tell makes the rows of what a revision has changed.
func (n *Narrator) tell(c *change) {
	if c.at.After(n.at) {
		n.at = c.at
	}
	for _, id := range slices.Sorted(maps.Keys(c.nodes)) {
		n.tellNode(c, id)
		n.hearUses(id, c.nodes[id], n.nodes[id])
	}
	for _, key := range slices.Sorted(maps.Keys(c.jobs)) {
		n.tellJob(c, key)
	}
	for _, path := range slices.Sorted(maps.Keys(c.units)) {
		n.tellUnit(c, path)
	}
	for _, path := range slices.Sorted(maps.Keys(c.waits)) {
		n.tellWait(c, path)
	}
	for _, id := range slices.Sorted(maps.Keys(c.txs)) {
		n.tellTx(c, id)
	}
	n.tellQuotas(c)
	for _, name := range slices.Sorted(maps.Keys(c.names)) {
		n.tellResource(name)
	}
}

// decode reads a record.
func decode[R record.Type](kv record.KV) (*R, error) {
	r, err := record.Decode[R](kv.Key, kv.Value)
	if err != nil {
		return nil, err
	}
	return &r, nil
}

// parsed reads a time of a record; the zero value for "" and for a text that is none.
func parsed(text string) time.Time {
	if text == "" {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}
	}
	return at.UTC()
}

// instant is the time of an instant in milliseconds; the zero value for 0.
func instant(millis int64) time.Time {
	if millis == 0 {
		return time.Time{}
	}
	return time.UnixMilli(millis).UTC()
}

// latest is the latest of some times.
func latest(times ...time.Time) (at time.Time) {
	for _, t := range times {
		if t.After(at) {
			at = t
		}
	}
	return at
}

// first is the first time that is known.
func first(times ...time.Time) time.Time {
	for _, t := range times {
		if !t.IsZero() {
			return t
		}
	}
	return time.Time{}
}

// inKey wraps an error about a part of a record.
func inKey(kv record.KV, field string, err error) error {
	return fmt.Errorf("%s: %s: %w", kv.Key, field, err)
}
