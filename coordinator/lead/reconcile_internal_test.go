package lead

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/coordinator/store/mem"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/devices/fake"
	"github.com/musterd/muster/fit"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// The transactions of a play: lost has no record and is held on n1, shared has
// none and is held on n1 and n2, back has a record and is held nowhere.
var (
	lostTx   = resource.NewTxID("u-lost", 3, 1, resource.Nonce{1})
	sharedTx = resource.NewTxID("u-shared", 3, 2, resource.Nonce{2})
	backTx   = resource.NewTxID("u-back", 2, 3, resource.Nonce{3})
)

var txNames = map[string]resource.TxID{"lost": lostTx, "shared": sharedTx, "back": backTx}

// play is a leader whose agents, client and clock are played by a transcript.
// Its store is a real one, and answers when the transcript says so.
type play struct {
	t         testing.TB
	l         *Leader
	store     *mem.Store
	now       time.Time
	questions []post.Effect // that the store has not answered, the oldest first
	client    post.Token    // that asked last
	holds     map[resource.NodeID][]grant.Grant
	told      []string // words of the effects of the last input
	host      grant.Host
	fit       *fit.Host
}

// playEpoch is the play's term; playGrace is the grace that its clients ask for.
const (
	playEpoch = resource.Epoch(9)
	playGrace = 30 * time.Second
)

// newPlay has the nodes n1 and n2, registered, and back's record on n1.
func newPlay(t testing.TB) *play {
	t.Helper()
	return newPlayWhere(t, func(*record.Unit, *record.Tx) {})
}

// newPlayWhere is newPlay with a change to back's unit and record.
func newPlayWhere(t testing.TB, change func(*record.Unit, *record.Tx)) *play {
	t.Helper()
	p := &play{t: t, store: mem.Open(mem.Options{}), now: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC), holds: map[resource.NodeID][]grant.Grant{}}
	t.Cleanup(func() { p.store.Close() })
	profile, err := fake.Lookup("dgx-a100")
	if err != nil {
		t.Fatal(err)
	}
	p.host = grant.Host{Topology: profile.Topology(), Inventory: profile.Inventory("n1")}
	if p.fit, err = fit.NewHost(p.host.Topology, p.host.Inventory, fit.Reserved{}); err != nil {
		t.Fatal(err)
	}
	p.register("n1")
	p.register("n2")
	u := record.Unit{
		UID: "u-back", Kind: record.AllocUnit, Namespace: "default", Name: "back", Tenant: "default", Phase: string(api.Running), TxID: backTx, Members: 1,
		Document: []byte(`{"metadata":{"name":"back","namespace":"default"},"spec":{"resources":{"requests":{"cpu":"1"}}}}`),
	}
	rec := record.Tx{
		State: grant.RecordCommitted, Epoch: 2, Unit: u.Path(), UnitUID: u.UID, Tenant: u.Tenant,
		Members: []record.Placement{{Node: "n1", Incarnation: p.identity("n1"), Assignment: cpuOf("back")}},
	}
	change(&u, &rec)
	p.put(u.Path().Key(), record.MustEncode(u))
	p.put(record.TxKey(backTx), record.MustEncode(rec))
	p.l = NewLeader(Beginning{Rules: Rules{EvictionGrace: playGrace}, Epoch: playEpoch, Now: p.now, MaxOps: 100})
	all := func(prefix string) []record.KV {
		kvs, _, err := p.store.Range(t.Context(), prefix, store.RangeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return kvs
	}
	p.turn(func() {
		var err error
		p.l.recovered, err = p.l.restore(Loaded{Nodes: all(record.NodesPrefix), Units: all(record.UnitsPrefix), Txs: all(record.TxPrefix)})
		if err != nil {
			t.Fatal(err)
		}
		p.l.resume()
	})
	return p
}

// cpuOf is the assignment of each member of a transaction: one CPU.
func cpuOf(name string) resource.Assignment {
	cpus := map[string]int{"back": 3, "lost": 4, "shared": 5}
	return resource.Assignment{CPUs: []resource.CPUGrant{{ID: cpus[name], Milli: 1000}}}
}

// identity is a node's incarnation.
func (p *play) identity(node resource.NodeID) resource.Incarnation {
	return resource.Incarnation{JournalID: string(node), BootID: "boot"}
}

func (p *play) put(key string, value []byte) resource.Revision {
	p.t.Helper()
	r, err := p.store.Txn(p.t.Context(), record.Txn{Then: []record.Op{record.Put(key, value)}})
	if err != nil {
		p.t.Fatal(err)
	}
	return r.Revision
}

// register writes a node's registration, which its agent does not tell.
func (p *play) register(node resource.NodeID) resource.Revision {
	p.t.Helper()
	r, err := p.store.Txn(p.t.Context(), record.Txn{Then: []record.Op{
		record.Put(record.NodeSpecKey(node), record.MustEncode(record.NodeSpec{Hostname: string(node)})),
		record.Put(record.NodeIdentityKey(node), record.MustEncode(record.NodeIdentity{Incarnation: p.identity(node)})),
	}})
	if err != nil {
		p.t.Fatal(err)
	}
	return r.Revision
}

// held is a grant of a play with one member.
func held(name string, member int) grant.Grant {
	tx := txNames[name]
	uid, _, _, _ := tx.Attempt()
	path := "default/alloc/" + name + "/0"
	if name == "shared" {
		path = "default/job/shared/0"
	}
	return grant.Grant{Tx: tx, Unit: uid, Epoch: 3, State: grant.Held, Name: path, Tenant: "default", Members: []grant.Member{{Index: member, Assignment: cpuOf(name)}}}
}

// turn runs f as an input and keeps its effects.
func (p *play) turn(f func()) {
	p.keep(p.l.handle(p.now, nil, f))
}

func (p *play) apply(in Input) { p.keep(p.l.Apply(p.now, in, nil)) }

// keep notes the effects of an input, in words; those that a reconciliation has
// no part in are left out.
func (p *play) keep(effects []post.Effect) {
	for _, e := range effects {
		switch e.Kind {
		case post.ReadKey:
			p.told = append(p.told, "reads "+short(e.Key))
			p.questions = append(p.questions, e)
		case post.WriteKeys:
			if strings.HasSuffix(e.Write.Ops[0].Key, "/observed") {
				continue // for readers
			}
			p.told = append(p.told, "writes "+words(e.Write.Ops))
			p.questions = append(p.questions, e)
		case post.SendCommand:
			p.told = append(p.told, fmt.Sprintf("tells %s: %s", e.Node, commandOf(e.Command)))
		case post.AnswerClient:
			p.told = append(p.told, answerOf(e))
		case post.EndTerm:
			p.told = append(p.told, "ends the term: "+e.Err.Error())
		case post.LogEvent:
			if e.Event.Name == "node_reconciled" {
				p.told = append(p.told, "logs "+e.Event.Name)
			}
		}
	}
}

// short is a key without what all have in common; a transaction has its name.
func short(key string) string {
	for name, tx := range txNames {
		key = strings.ReplaceAll(key, string(tx), name)
	}
	return strings.TrimPrefix(key, record.Root)
}

// words are the records that a Txn writes, or else its keys.
func words(ops []record.Op) string {
	var all []string
	for _, op := range ops {
		word := short(op.Key)
		if strings.HasPrefix(op.Key, record.TxPrefix) && !op.Delete {
			rec, err := record.Decode[record.Tx](op.Key, op.Value)
			must(err)
			word += " " + rec.State.String()
		}
		all = append(all, word)
	}
	return strings.Join(all, ", ")
}

// commandOf is a command to an agent, in words.
func commandOf(c grant.Command) string {
	switch c := c.(type) {
	case grant.Resync:
		return "tell everything"
	case grant.Reconcile:
		return fmt.Sprintf("adopted %s, released %s", names(c.Adopted), names(c.Released))
	case grant.Release:
		why := c.Reason
		if why == "" {
			why = "as its owner asked"
		}
		return fmt.Sprintf("release %s, %s", names([]resource.TxID{c.Tx}), why)
	case grant.Commit:
		return "commit " + names([]resource.TxID{c.Tx})
	}
	return fmt.Sprintf("%T", c)
}

// names are those of transactions, in their order.
func names(txs []resource.TxID) string {
	if len(txs) == 0 {
		return "nothing"
	}
	var all []string
	for _, tx := range txs {
		all = append(all, short(string(tx)))
	}
	return strings.Join(all, " and ")
}

// input hands the leader the input that a line of a transcript names. Most lines
// begin with a node.
func (p *play) input(line string) {
	first, rest, _ := strings.Cut(line, " ")
	node := resource.NodeID(first)
	rest, list, _ := strings.Cut(rest, ": ")
	switch {
	case line == "the store answers":
		p.answer()
	case rest == "s pass":
		p.pass(first)
	case line == "the leader does its rounds":
		p.apply(SecondPassed{})
		p.keep(p.l.Pass(p.now, nil))
	case first == "look" || first == api.ReconcileAdopt || first == api.ReconcileRelease:
		grace := int64(playGrace.Seconds())
		o := api.ReconcileOptions{GracePeriodSeconds: &grace}
		if first != "look" {
			o.Mode = first
		}
		p.client++
		p.apply(ClientRequest{p.client, ReconcileNode{resource.NodeID(rest), o}})
	case line == "the client gives up":
		p.apply(ClientGone{p.client})
	case line == "back's owner ends it":
		p.turn(func() { p.l.end(p.l.work.Units["default/alloc/back/0"], txn.ReleaseAsked{GraceSeconds: 1}) })
	case line == "lost is forgotten":
		p.turn(func() { delete(p.l.work.Units, "default/alloc/lost/0") })
	case first == "nobody":
		key := record.Root + strings.TrimPrefix(rest, "can read ")
		p.put(strings.Replace(key, "lost", string(lostTx), 1), []byte("{"))
	case rest == "connects in quarantine":
		p.has(node, list)
		p.apply(AgentEvent{StreamOpened{Hello: grant.Hello{Node: node, Incarnation: p.identity(node), Host: p.host, Occupancy: p.occupancy(node), Quarantine: "the store went back"}, Fit: p.fit}})
	case rest == "connects":
		p.has(node, list)
		p.apply(AgentEvent{StreamOpened{Hello: grant.Hello{Node: node, Incarnation: p.identity(node), Revision: p.l.nodes[node].specRev, Host: p.host, Occupancy: p.occupancy(node)}, Fit: p.fit}})
	case rest == "tells all":
		p.apply(AgentEvent{grant.Occupied{Node: node, Occupancy: p.occupancy(node)}})
	case rest == "leaves":
		p.apply(AgentEvent{grant.Disconnected{Node: node}})
	case rest == "is out of quarantine and registers":
		p.apply(AgentEvent{grant.HealthChanged{Node: node}})
	case rest == "registers":
		revision := p.register(node)
		p.apply(NodeRegistered{Node: node, Spec: record.NodeSpec{Hostname: string(node)}, Revision: revision})
		p.apply(AgentEvent{grant.Registered{Node: node, Incarnation: p.identity(node), Revision: revision}})
	case rest == "registers elsewhere":
		p.register(node)
	case rest == "is deleted":
		if n := p.l.nodes[node]; n != nil {
			p.turn(func() { p.l.deleted(n, 1000) })
		}
	default:
		p.t.Fatalf("no input is %q", line)
	}
}

// pass lets that many seconds pass.
func (p *play) pass(seconds string) {
	wait, err := time.ParseDuration(seconds + "s")
	if err != nil {
		p.t.Fatal(err)
	}
	p.now = p.now.Add(wait)
	p.apply(AlarmDue{})
}

// has sets what an agent holds: "lost 0, shared 1" is a transaction and a member,
// and so on.
func (p *play) has(node resource.NodeID, list string) {
	p.holds[node] = nil
	for item := range strings.SplitSeq(list, ", ") {
		var name string
		var member int
		if n, _ := fmt.Sscanf(item, "%s %d", &name, &member); n == 2 {
			p.holds[node] = append(p.holds[node], held(name, member))
		}
	}
}

func (p *play) occupancy(node resource.NodeID) grant.Occupancy {
	return grant.Occupancy{Grants: slices.Clone(p.holds[node])}
}

// answerOf is the answer to a client, in words.
func answerOf(e post.Effect) string {
	if e.Status != nil {
		return fmt.Sprintf("answers %d: %s", e.Status.Code, short(e.Status.Message))
	}
	got := e.Result.(*api.Reconciliation)
	return fmt.Sprintf("answers: %d grants, %d records", len(got.Grants), len(got.Records))
}

// answer has the store answer the oldest question.
func (p *play) answer() {
	if len(p.questions) == 0 {
		p.t.Fatal("nobody has asked the store anything")
	}
	e := p.questions[0]
	p.questions = p.questions[1:]
	if e.Kind == post.ReadKey {
		kv, found, revision, err := p.store.Get(p.t.Context(), e.Key)
		if err != nil {
			p.t.Fatal(err)
		}
		p.apply(ReadAnswer{e.Token, kv, found, revision})
		return
	}
	result, err := p.store.Txn(p.t.Context(), record.Txn{If: e.Write.Compares, Then: e.Write.Ops})
	if err != nil {
		p.t.Fatal(err)
	}
	outcome := txn.Conflict
	if result.Succeeded {
		outcome = txn.Landed
	}
	p.apply(WriteAnswer{e.Token, outcome, result.Revision, nil})
}

// run plays a script: lines with > are inputs, those below an input its effects.
// It returns the script with the effects that there were.
func (p *play) run(script string) string {
	var b strings.Builder
	for line := range strings.Lines(script) {
		line = strings.TrimSpace(line)
		in, is := strings.CutPrefix(line, "> ")
		if !is {
			continue
		}
		p.told = nil
		p.input(in)
		fmt.Fprintf(&b, "> %s\n", in)
		for _, text := range p.told {
			fmt.Fprintf(&b, "%s\n", text)
		}
	}
	return b.String()
}

// trimmed is a script without indentation.
func trimmed(script string) string {
	var b strings.Builder
	for line := range strings.Lines(script) {
		if line = strings.TrimSpace(line); line != "" {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

func TestReconciliationAsAValue(t *testing.T) {
	paths, _ := filepath.Glob("testdata/reconciliations/*")
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			script, err := os.ReadFile(path)
			must(err)
			if diff := cmp.Diff(trimmed(string(script)), newPlay(t).run(string(script))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
