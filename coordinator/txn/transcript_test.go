package txn_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/resource"
)

// TestTranscripts replays what happens to one transaction and shows what its
// machine asks for, and the state it is then in. Rewrite with -rewrite.
//
// "begin n1 n2" starts a transaction over nodes; "recover n1 n2 at=7" is what a
// new leader makes of a record found COMMITTED at revision 7, or RELEASING with
// "releasing". All other commands are inputs. An input that changes nothing
// shows no effect.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/transcripts", func(t *testing.T, path string) {
		var m *txn.Machine
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var effects []txn.Effect
			switch d.Cmd {
			case "begin":
				m, effects = txn.New("tx", nodesOf(d))
			case "recover":
				votes := map[resource.NodeID]txn.Vote{}
				for _, n := range nodesOf(d) {
					votes[n] = txn.Vote{}
				}
				var releasing *txn.ReleaseAsked
				if d.HasArg("releasing") {
					releasing = &txn.ReleaseAsked{GraceSeconds: 30, Reason: "deleted"}
				}
				m, effects = txn.Recover("tx", at(t, d), votes, releasing)
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
			return fmt.Sprintf("%s(%s%s)\n", b.String(), strings.TrimPrefix(m.String(), "tx "), doubt)
		})
	})
}

func nodesOf(d *datadriven.TestData) []resource.NodeID {
	var nodes []resource.NodeID
	for _, a := range d.CmdArgs {
		if len(a.Vals) == 0 && a.Key != "releasing" {
			nodes = append(nodes, resource.NodeID(a.Key))
		}
	}
	return nodes
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
	record := map[string]txn.RecordState{
		"absent": txn.RecordAbsent, "COMMITTED": txn.RecordCommitted, "RELEASING": txn.RecordReleasing,
		"RELEASED": txn.RecordReleased, "ABORTED": txn.RecordAborted,
	}
	node := resource.NodeID(word)
	switch d.Cmd {
	case "yes":
		return txn.Voted{Node: node, Vote: txn.Vote{Incarnation: resource.Incarnation{JournalID: "j", BootID: "b"}, Revision: at(t, d)}}
	case "no":
		return txn.Refused{Node: node}
	case "budget-spent":
		return txn.BudgetSpent{}
	case "release":
		return txn.ReleaseAsked{GraceSeconds: 30, Reason: "deleted"}
	case "freed":
		return txn.Freed{Node: node}
	case "reconnected":
		return txn.Reconnected{Node: node}
	case "record":
		state, ok := record[word]
		if !ok {
			d.Fatalf(t, "record %q is unknown", word)
		}
		return txn.RecordRead{State: state, Revision: at(t, d)}
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
	fields := strings.Trim(fmt.Sprintf("%+v", e), "{}")
	return strings.TrimSpace(name + " " + fields)
}
