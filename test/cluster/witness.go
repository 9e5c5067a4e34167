package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/quota"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// Witness follows the store from its first revision and checks after each one
// what PROTOCOL.md promises of it:
//
//	I1   no device is in two COMMITTED records
//	I2   no namespace is charged more than the highest limit it ever had
//	I6   no unit has two live transactions
//	I11  records take only the edges there are
//	I12  whoever commits is the candidate that leads in that very revision
//
// and that the index of each node names exactly the records with members there.
type Witness struct {
	ended chan struct{} // closed once it follows no more

	mu       sync.Mutex
	revision resource.Revision
	records  map[resource.TxID]record.Tx  // those that are not collected
	index    map[resource.TxID][]string   // nodes that list it, ascending
	leaders  map[string]resource.Revision // candidates, by key
	highest  map[string]map[string]resource.Vector
	counts   Counts
	problems []string
}

// Counts are what a witness has seen.
type Counts struct {
	Committed, Released, Evicted, Aborted, Elections int
}

// worst bounds how many problems are kept: the first ones tell.
const worst = 20

func newWitness() *Witness {
	return &Witness{
		ended: make(chan struct{}), records: map[resource.TxID]record.Tx{}, index: map[resource.TxID][]string{},
		leaders: map[string]resource.Revision{}, highest: map[string]map[string]resource.Vector{},
	}
}

func startWitness(c *Cluster) *Witness {
	ctx, cancel := context.WithCancel(context.Background())
	w := newWitness()
	batches := c.Store.Watch(ctx, record.Root, store.WatchOptions{From: 1})
	go func() {
		defer close(w.ended)
		for b := range batches {
			w.mu.Lock()
			w.follow(b)
			w.mu.Unlock()
		}
	}()
	c.t.Cleanup(func() {
		cancel()
		<-w.ended
		for _, p := range w.Problems() {
			c.t.Error(p)
		}
	})
	return w
}

// Problems are what it found to be wrong.
func (w *Witness) Problems() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.problems)
}

// Counts returns what it has seen so far.
func (w *Witness) Counts() Counts {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.counts
}

func (w *Witness) report(format string, args ...any) {
	if len(w.problems) < worst {
		w.problems = append(w.problems, fmt.Sprintf("revision %d: ", w.revision)+fmt.Sprintf(format, args...))
	}
}

func (w *Witness) follow(b record.Batch) {
	if b.Err != nil {
		w.report("the witness cannot go on: %v", b.Err)
		return
	}
	w.revision = max(w.revision, b.Revision)
	touched := map[resource.TxID]bool{}
	for _, e := range b.Events { // who leads comes first: it judges the rest
		if strings.HasPrefix(e.KV.Key, record.LeaderPrefix) {
			w.candidate(e)
		}
	}
	for _, e := range b.Events {
		switch key := e.KV.Key; {
		case strings.HasPrefix(key, record.TxPrefix):
			w.record(e, touched)
		case strings.HasPrefix(key, record.NodesPrefix):
			w.indexed(e, touched)
		case strings.HasPrefix(key, record.QuotaPrefix):
			w.limit(e)
		}
	}
	for tx := range touched {
		w.compareIndex(tx)
	}
	if len(touched) > 0 {
		w.judge()
	}
}

func (w *Witness) candidate(e record.Event) {
	before := w.leader()
	if e.Type == record.EventDelete {
		delete(w.leaders, e.KV.Key)
	} else {
		w.leaders[e.KV.Key] = e.KV.CreateRev
	}
	if now := w.leader(); now != before && now != 0 {
		w.counts.Elections++
	}
}

// leader is the epoch in force, 0 without one.
func (w *Witness) leader() resource.Epoch {
	first := resource.Revision(0)
	for _, created := range w.leaders {
		if first == 0 || created < first {
			first = created
		}
	}
	return resource.Epoch(first)
}

func (w *Witness) record(e record.Event, touched map[resource.TxID]bool) {
	tx, err := record.ParseTxKey(e.KV.Key)
	if err != nil {
		w.report("%v", err)
		return
	}
	touched[tx] = true
	before := w.records[tx]
	if e.Type == record.EventDelete {
		if !before.State.Terminal() {
			w.report("%s is deleted while %q", tx, before.State)
		}
		delete(w.records, tx)
		return
	}
	rec, err := record.Decode[record.Tx](e.KV.Key, e.KV.Value)
	if err != nil {
		w.report("%v", err)
		return
	}
	if !before.State.MayBecome(rec.State) {
		w.report("I11: %s goes from %q to %s", tx, before.State, rec.State)
	}
	if leads := w.leader(); rec.State == grant.RecordCommitted && rec.Epoch != leads {
		w.report("I12: %s is committed in epoch %d, while %d leads", tx, rec.Epoch, leads)
	}
	w.records[tx] = rec
	switch rec.State {
	case grant.RecordCommitted:
		w.counts.Committed++
	case grant.RecordEvicting:
		w.counts.Evicted++
	case grant.RecordReleased:
		w.counts.Released++
	case grant.RecordAborted:
		w.counts.Aborted++
	}
}

func (w *Witness) indexed(e record.Event, touched map[resource.TxID]bool) {
	key, err := record.ParseNodeKey(e.KV.Key)
	if err != nil {
		w.report("%v", err)
		return
	}
	if key.Part != record.NodeTxPart {
		return
	}
	touched[key.Tx] = true
	nodes := slices.DeleteFunc(w.index[key.Tx], func(n string) bool { return n == string(key.ID) })
	if e.Type == record.EventPut {
		nodes = append(nodes, string(key.ID))
		slices.Sort(nodes)
	}
	if w.index[key.Tx] = nodes; len(nodes) == 0 {
		delete(w.index, key.Tx)
	}
}

// compareIndex holds the index of a transaction against its record.
func (w *Witness) compareIndex(tx resource.TxID) {
	var nodes []string
	if r := w.records[tx]; r.State.Charged() { // a terminal one is not listed
		for _, m := range r.Members {
			nodes = append(nodes, string(m.Node))
		}
	}
	slices.Sort(nodes)
	if nodes = slices.Compact(nodes); !slices.Equal(nodes, w.index[tx]) {
		w.report("%s (%s) has members on %v, the index lists it at %v", tx, w.records[tx].State, nodes, w.index[tx])
	}
}

// limit takes over what an operator set. A limit that was lowered ends nothing
// and lets pass what was under way, so a namespace is held to its highest.
func (w *Witness) limit(e record.Event) {
	key, err := record.ParseQuotaKey(e.KV.Key)
	if err != nil {
		w.report("%v", err)
		return
	}
	if key.Kind != record.QuotaResources || e.Type == record.EventDelete {
		return
	}
	rec, err := record.Decode[record.Quota](e.KV.Key, e.KV.Value)
	if err != nil {
		w.report("%v", err)
		return
	}
	var document api.ResourceQuota
	if err := json.Unmarshal(rec.Document, &document); err != nil {
		w.report("%s: %v", e.KV.Key, err)
		return
	}
	if w.highest[key.Namespace] == nil {
		w.highest[key.Namespace] = map[string]resource.Vector{}
	}
	highest := w.highest[key.Namespace][key.Name]
	if highest == nil {
		highest = resource.Vector{}
		w.highest[key.Namespace][key.Name] = highest
	}
	for name, text := range document.Spec.Hard {
		amount, err := api.ParseAmount(name, text)
		if err != nil {
			w.report("%s: %v", e.KV.Key, err)
		}
		highest[name] = max(highest[name], amount)
	}
}

// judge checks all records together.
func (w *Witness) judge() {
	used := map[string]resource.Vector{}
	units := map[resource.UnitUID]resource.TxID{}
	for tx, r := range w.records {
		if !r.State.Charged() {
			continue
		}
		for _, charge := range r.Charges {
			if charge.Tree != quota.Tree {
				continue
			}
			if used[charge.Group] == nil {
				used[charge.Group] = resource.Vector{}
			}
			used[charge.Group].Add(charge.Request)
		}
		if other := units[r.UnitUID]; other != "" {
			w.report("I6: unit %s is live in %s and in %s", r.UnitUID, tx, other)
		}
		units[r.UnitUID] = tx
	}
	for _, problem := range doubled(w.records) {
		w.report("I1: %s", problem)
	}
	for _, namespace := range slices.Sorted(maps.Keys(w.highest)) {
		for name, limits := range w.highest[namespace] {
			for r, limit := range limits {
				if sum := used[namespace][r]; sum > limit {
					w.report("I2: namespace %s is charged %d of %s, quota %s has never been above %d", namespace, sum, r, name, limit)
				}
			}
		}
	}
}

// doubled finds devices that COMMITTED records give to two. Others may have
// been freed already by their agents.
func doubled(records map[resource.TxID]record.Tx) []string {
	type share struct {
		milli resource.Milli
		by    resource.TxID
	}
	taken := map[string]share{}
	var problems []string
	for _, tx := range slices.Sorted(maps.Keys(records)) {
		if records[tx].State != grant.RecordCommitted {
			continue
		}
		for _, m := range records[tx].Members {
			for _, g := range m.Assignment.GPUs {
				at := string(m.Node) + " " + g.UUID
				if taken[at].milli+g.Milli > resource.WholeDevice {
					problems = append(problems, fmt.Sprintf("%s belongs to %s and to %s", at, tx, taken[at].by))
				}
				taken[at] = share{taken[at].milli + g.Milli, tx}
			}
		}
	}
	return problems
}
