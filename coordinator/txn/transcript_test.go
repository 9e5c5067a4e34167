package txn_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// TestTranscripts replays what happens to one transaction and shows what its
// machine asks for, and the state it is then in. Rewrite with -rewrite.
//
// "begin n1 n2" starts a transaction over nodes, with "victims=(v1,v2)" a
// preemption, which "adopt" goes on with; "recover n1 n2 at=7" is what a new
// leader makes of a record found COMMITTED at revision 7, or RELEASING with
// "releasing", or EVICTING with "evicting" and perhaps "by=p". All other
// commands are inputs. An input that changes nothing shows no effect.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/transcripts", func(t *testing.T, path string) {
		var m *txn.Machine
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var effects []txn.Effect
			switch d.Cmd {
			case "begin":
				m, effects = txn.New("tx", nodesOf(d), victimsOf(d)...)
			case "recover":
				votes := map[resource.NodeID]txn.Vote{}
				for _, n := range nodesOf(d) {
					votes[n] = txn.Vote{}
				}
				found := txn.Found{State: grant.RecordCommitted, Revision: at(t, d)}
				switch {
				case d.HasArg("releasing"):
					found.State, found.GraceSeconds, found.Reason = grant.RecordReleasing, 30, "deleted"
				case d.HasArg("evicting"):
					found.State, found.GraceSeconds, found.Reason = grant.RecordEvicting, 30, "gives way"
					found.By = by(t, d)
				}
				found.Kept = d.HasArg("kept")
				m, effects = txn.Recover("tx", found, votes)
			case "adopt":
				m, effects = txn.Adopt("tx", nodesOf(d), victimsOf(d)...)
			default:
				effects = m.Step(input(t, d))
			}
			var b strings.Builder
			for _, e := range effects {
				fmt.Fprintln(&b, show(e))
			}
			doubt := ""
			if m.CommitInDoubt() {
				doubt = " commit-in-doubt"
			}
			if m.EvictionsInDoubt() {
				doubt += " evictions-in-doubt"
			}
			return fmt.Sprintf("%s(%s%s)\n", b.String(), strings.TrimPrefix(m.String(), "tx "), doubt)
		})
	})
}

func nodesOf(d *datadriven.TestData) []resource.NodeID {
	var nodes []resource.NodeID
	for _, a := range d.CmdArgs {
		if len(a.Vals) == 0 && a.Key != "releasing" && a.Key != "evicting" && a.Key != "kept" {
			nodes = append(nodes, resource.NodeID(a.Key))
		}
	}
	return nodes
}

func victimsOf(d *datadriven.TestData) []resource.TxID {
	var txs []resource.TxID
	for _, a := range d.CmdArgs {
		if a.Key == "victims" {
			for _, tx := range a.Vals {
				txs = append(txs, resource.TxID(tx))
			}
		}
	}
	return txs
}

func by(t *testing.T, d *datadriven.TestData) resource.TxID {
	var tx string
	d.MaybeScanArgs(t, "by", &tx)
	return resource.TxID(tx)
}

func at(t *testing.T, d *datadriven.TestData) resource.Revision {
	var revision int64
	d.MaybeScanArgs(t, "at", &revision)
	return resource.Revision(revision)
}

func input(t *testing.T, d *datadriven.TestData) txn.Input {
	t.Helper()
	word := ""
	if len(d.CmdArgs) > 0 {
		word = d.CmdArgs[0].Key
	}
	outcome := map[string]txn.Outcome{"landed": txn.Landed, "conflict": txn.Conflict, "unknown": txn.Unknown}
	record := map[string]grant.RecordState{
		"absent": grant.RecordAbsent, "COMMITTED": grant.RecordCommitted, "EVICTING": grant.RecordEvicting, "RELEASING": grant.RecordReleasing,
		"RELEASED": grant.RecordReleased, "ABORTED": grant.RecordAborted,
	}
	node := resource.NodeID(word)
	switch d.Cmd {
	case "yes":
		return txn.Voted{Node: node, Vote: txn.Vote{Incarnation: resource.Incarnation{JournalID: "j", BootID: "b"}, Revision: at(t, d)}}
	case "waiting":
		return txn.Waited{Node: node, Vote: txn.Vote{Incarnation: resource.Incarnation{JournalID: "j", BootID: "b"}, Revision: at(t, d)}}
	case "no":
		return txn.Refused{Node: node}
	case "victim-freed":
		return txn.VictimFreed{Tx: resource.TxID(word)}
	case "evict":
		return txn.EvictAsked{GraceSeconds: 60, Reason: "drained"}
	case "claimed":
		return txn.VictimClaimed{By: by(t, d)}
	case "evicted":
		return txn.Evicted{GraceSeconds: 30, Reason: "gives way", Revision: at(t, d)}
	case "displaced":
		return txn.Displaced{Revision: at(t, d)}
	case "preemptor-aborted":
		return txn.PreemptorAborted{By: by(t, d), InDoubt: d.HasArg("in-doubt")}
	case "budget-spent":
		return txn.BudgetSpent{}
	case "release":
		return txn.ReleaseAsked{GraceSeconds: 30, Reason: "deleted", Kept: d.HasArg("kept")}
	case "freed":
		return txn.Freed{Node: node}
	case "reconnected":
		return txn.Reconnected{Node: node}
	case "record":
		state, ok := record[word]
		if !ok {
			d.Fatalf(t, "record %q is unknown", word)
		}
		read := txn.RecordRead{State: state, Revision: at(t, d)}
		if state == grant.RecordEvicting {
			read.By, read.GraceSeconds, read.Reason = by(t, d), 30, "gives way"
		}
		return read
	}
	o, ok := outcome[word]
	if !ok {
		d.Fatalf(t, "outcome %q is unknown", word)
	}
	switch d.Cmd {
	case "commit":
		return txn.CommitAnswered{Outcome: o, Revision: at(t, d)}
	case "fence":
		return txn.FenceAnswered{Outcome: o}
	case "evictions":
		return txn.EvictionsAnswered{Outcome: o, Revision: at(t, d)}
	case "evicting":
		return txn.EvictingAnswered{Outcome: o, Revision: at(t, d)}
	case "releasing":
		return txn.ReleasingAnswered{Outcome: o, Revision: at(t, d)}
	case "released":
		return txn.ReleasedAnswered{Outcome: o, Revision: at(t, d)}
	}
	d.Fatalf(t, "command %q is unknown", d.Cmd)
	return nil
}

// show prints an effect as "Name fields".
func show(e txn.Effect) string {
	name := strings.TrimPrefix(fmt.Sprintf("%T", e), "txn.")
	fields := strings.TrimSuffix(strings.TrimSuffix(strings.Trim(fmt.Sprintf("%+v", e), "{}"), " Kept:false"), " Evicted:false")
	return strings.TrimSpace(name + " " + fields)
}
