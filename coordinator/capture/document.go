package capture

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/mix"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/resource"
)

// The format of a document. New writes Version, and Decode reads the versions from 1 to it.
//
//	1: the first
//	2: Refused
const (
	Format  = "muster.io/snapshot"
	Version = 2
)

// The bounds of a document that comes from outside; its text has api.MaxSnapshot bytes at most.
const (
	maxNodes    = 100_000
	maxKeys     = 10_000_000
	maxAttempts = 1 << 30 // of a unit that failed
)

// Document is a snapshot. New and Decode return well-formed documents alone.
//
// Invariant: Nodes ascend by ID, Refused by Unit and Keys by Key, no key is newer than
// Revision, and each Machine of a node is an index of Machines.
type Document struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	// Cluster is the name of the cluster; "" where it has none.
	Cluster string    `json:"cluster,omitempty"`
	TakenAt time.Time `json:"takenAt"` // by the leader's clock
	// Revision is the store's revision that Keys are of.
	Revision resource.Revision `json:"revision"`
	Epoch    resource.Epoch    `json:"epoch"` // of the leader
	// Undecided counts the units whose start was under way and not in the store yet.
	// They wait in the document.
	Undecided int        `json:"undecided"`
	Rules     lead.Rules `json:"rules"`
	Mix       mix.State  `json:"mix"`
	Turn      sched.Turn `json:"turn"` // of the search for work that nothing has woken
	// Refused are the waiting units with attempts that failed. A document of version 1 has none.
	Refused []lead.RefusedUnit `json:"refused,omitempty"`
	// Machines are the different kinds of hosts; hosts of one kind differ by their
	// devices alone.
	Machines []Machine `json:"machines"`
	Nodes    []Node    `json:"nodes"`
	Keys     []Key     `json:"keys"`
}

// Key is a key of the store with its value, which is JSON.
type Key struct {
	Key      string            `json:"key"`
	Created  resource.Revision `json:"created"`  // revision of the write that has created the key
	Modified resource.Revision `json:"modified"` // of the last write
	Value    json.RawMessage   `json:"value"`
}

// prefixes are the prefixes of the keys that a document has.
func prefixes() []string {
	return append([]string{
		record.NodesPrefix, record.BansPrefix, record.QuotaPrefix, record.JobsPrefix, record.UnitsPrefix, record.OrderPrefix,
		record.TxPrefix, record.ReadyPrefix, record.ConfiguredKey,
	}, objectPrefixes()...)
}

// Prefixes are the prefixes of the store's keys that New wants, each key at most once.
func Prefixes() []string { return prefixes() }

// New makes a document of a leader's state and the keys below Prefixes at a revision that
// is not older than the state.
func New(cluster string, s *lead.Captured, revision resource.Revision, keys []record.KV) (*Document, error) {
	if revision < s.Revision {
		return nil, fmt.Errorf("the keys are of revision %d, the leader knows revision %d", revision, s.Revision)
	}
	d := &Document{
		Format: Format, Version: Version, Cluster: cluster, TakenAt: s.At.UTC(), Revision: revision, Epoch: s.Epoch, Undecided: s.Undecided, Rules: s.Rules, Mix: s.Mix, Turn: s.Turn, Refused: s.Refused,
	}
	d.addNodes(s.Nodes)
	for _, kv := range keys {
		value, kept, err := redact(kv)
		if err != nil {
			return nil, err
		}
		if kept {
			d.Keys = append(d.Keys, Key{kv.Key, kv.CreateRev, kv.ModRev, value})
		}
	}
	slices.SortFunc(d.Keys, func(a, b Key) int { return strings.Compare(a.Key, b.Key) })
	return d, d.check()
}

// Encode is the document as JSON text of at most api.MaxSnapshot.
func (d *Document) Encode() ([]byte, error) { return d.encode(api.MaxSnapshot) }

func (d *Document) encode(most int) ([]byte, error) {
	text, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	if len(text) > most {
		return nil, fmt.Errorf("the document of %d nodes and %d keys has %d bytes, want at most %d", len(d.Nodes), len(d.Keys), len(text), most)
	}
	return text, nil
}

// Decode reads a document and refuses one that no New can have made: of an unknown version,
// beyond the bounds, or out of order.
func Decode(text []byte) (*Document, error) {
	if len(text) > api.MaxSnapshot {
		return nil, fmt.Errorf("the snapshot has %d bytes, want at most %d", len(text), api.MaxSnapshot)
	}
	var head struct {
		Format  string
		Version int
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, fmt.Errorf("the snapshot is no JSON document: %w", err)
	}
	if head.Format != Format || head.Version < 1 || head.Version > Version {
		return nil, fmt.Errorf("format %.64q version %d: this program reads %q of the versions 1 to %d, as muster snapshot writes it", head.Format, head.Version, Format, Version)
	}
	d := &Document{}
	if err := json.Unmarshal(text, d); err != nil {
		return nil, fmt.Errorf("the snapshot: %w", err)
	}
	return d, d.check()
}

func (d *Document) check() error {
	switch {
	case d.Revision < 1 || d.Epoch < 0 || d.Undecided < 0 || d.TakenAt.IsZero():
		return fmt.Errorf("revision %d, epoch %d, undecided %d, takenAt %s: want a revision from 1, no negative number, and a time", d.Revision, d.Epoch, d.Undecided, d.TakenAt.Format(time.RFC3339))
	case len(d.Nodes) > maxNodes || len(d.Machines) > len(d.Nodes):
		return fmt.Errorf("%d nodes of %d machines: want at most %d nodes, and no more machines than nodes", len(d.Nodes), len(d.Machines), maxNodes)
	case len(d.Turn.Heads) > len(d.Keys) || d.Turn.AtOnce < 0 || d.Turn.AtOnce > 1000 || d.Turn.CallsLeft < 0 || d.Turn.CallsLeft > 1000:
		return fmt.Errorf("turn: %d heads, %d calls left, %d at once: want at most %d, 1000 and 1000, and no negative number", len(d.Turn.Heads), d.Turn.CallsLeft, d.Turn.AtOnce, len(d.Keys))
	case len(d.Keys) > maxKeys:
		return fmt.Errorf("%d keys: want at most %d", len(d.Keys), maxKeys)
	}
	for i := range d.Machines {
		if err := d.Machines[i].check(); err != nil {
			return fmt.Errorf("machines[%d]: %w", i, err)
		}
	}
	for i := range d.Nodes {
		if i > 0 && d.Nodes[i-1].ID >= d.Nodes[i].ID {
			return fmt.Errorf("nodes[%d]: %s follows %s (nodes ascend)", i, d.Nodes[i].ID, d.Nodes[i-1].ID)
		}
		if err := d.Nodes[i].check(len(d.Machines)); err != nil {
			return fmt.Errorf("nodes[%d] (%s): %w", i, d.Nodes[i].ID, err)
		}
	}
	return errors.Join(d.checkRefused(), d.checkKeys())
}

func (d *Document) checkRefused() error {
	if d.Version < 2 && len(d.Refused) > 0 {
		return fmt.Errorf("refused: %d units in a document of version %d: want none before version 2", len(d.Refused), d.Version)
	}
	for i, r := range d.Refused {
		switch {
		case i > 0 && d.Refused[i-1].Unit >= r.Unit:
			return fmt.Errorf("refused[%d]: %s follows %s (units ascend)", i, r.Unit, d.Refused[i-1].Unit)
		case r.Times < 0 || r.Times > maxAttempts:
			return fmt.Errorf("refused[%d] (%s): times: %d is outside 0..%d", i, r.Unit, r.Times, maxAttempts)
		}
		for _, node := range slices.Sorted(maps.Keys(r.Avoid)) {
			if times := r.Avoid[node]; times < 1 || times > maxAttempts {
				return fmt.Errorf("refused[%d] (%s): avoid: %d attempts on %s: want 1..%d", i, r.Unit, times, node, maxAttempts)
			}
		}
	}
	return nil
}

func (d *Document) checkKeys() error {
	known := prefixes()
	for i, k := range d.Keys {
		switch {
		case i > 0 && d.Keys[i-1].Key >= k.Key:
			return fmt.Errorf("keys[%d]: %s follows %s (keys ascend)", i, k.Key, d.Keys[i-1].Key)
		case k.Created < 1 || k.Modified < k.Created || k.Modified > d.Revision:
			return fmt.Errorf("keys[%d] (%s): created at %d and modified at %d: want 1 to %d, in this order", i, k.Key, k.Created, k.Modified, d.Revision)
		case !slices.ContainsFunc(known, func(p string) bool { return strings.HasPrefix(k.Key, p) }):
			return fmt.Errorf("keys[%d] (%s): a snapshot has no such key", i, k.Key)
		}
		if strings.HasPrefix(k.Key, record.UnitsPrefix) {
			u, err := record.Decode[record.Unit](k.Key, k.Value)
			if err == nil && (u.Members < 1 || u.Members > api.MaxParallelism) {
				err = fmt.Errorf("members: %d is outside 1..%d", u.Members, api.MaxParallelism)
			}
			if err != nil {
				return fmt.Errorf("keys[%d] (%s): %w", i, k.Key, err)
			}
		}
	}
	return nil
}

// Below are the keys with a prefix, ascending, as a store has them.
func (d *Document) Below(prefix string) []record.KV {
	from, _ := slices.BinarySearchFunc(d.Keys, prefix, func(k Key, p string) int { return strings.Compare(k.Key, p) })
	var found []record.KV
	for _, k := range d.Keys[from:] {
		if !strings.HasPrefix(k.Key, prefix) {
			break
		}
		found = append(found, record.KV{Key: k.Key, Value: k.Value, CreateRev: k.Created, ModRev: k.Modified})
	}
	return found
}

// Loaded is the document as a leader loads it.
func (d *Document) Loaded() lead.Loaded {
	in := lead.Loaded{
		Nodes: d.Below(record.NodesPrefix), Bans: d.Below(record.BansPrefix), Quotas: d.Below(record.QuotaPrefix), Jobs: d.Below(record.JobsPrefix),
		Units: d.Below(record.UnitsPrefix), Orders: d.Below(record.OrderPrefix), Txs: d.Below(record.TxPrefix), Ready: d.Below(record.ReadyPrefix),
		Configured: d.Below(record.ConfiguredKey), Mix: &d.Mix, Turn: d.Turn, Refused: d.Refused,
	}
	for _, prefix := range objectPrefixes() {
		in.Objects = append(in.Objects, d.Below(prefix)...)
	}
	return in
}
