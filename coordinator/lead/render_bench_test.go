package lead

import (
	"fmt"
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// runningGang is a job whose members run on a node each.
func runningGang(b *testing.B, members int) (*Leader, *work.Job) {
	b.Helper()
	l := newScene(b).Leader
	nodes := make([]resource.NodeID, members)
	for i := range nodes {
		nodes[i] = resource.NodeID(fmt.Sprintf("n%d", i))
	}
	tx := resource.NewTxID("u", 1, 1, resource.Nonce{1})
	machine, _ := txn.New(tx, nodes)
	for i, n := range nodes {
		machine.Step(txn.Voted{Node: n, Vote: txn.Vote{Revision: 1, Members: []grant.Member{{Index: i}}}})
	}
	j := &work.Job{Record: record.Job{Namespace: "default", Name: "gang"}, Doc: &api.Job{}}
	u := &work.Unit{Record: record.Unit{Name: "gang", Phase: string(api.Running), Members: members}, Job: j, Attempt: &work.Attempt{Machine: machine}}
	j.Units = []*work.Unit{u}
	return l, j
}

func BenchmarkJobObject(b *testing.B) {
	for _, members := range []int{8, 64, 512} {
		b.Run(fmt.Sprintf("members=%d", members), func(b *testing.B) {
			l, j := runningGang(b, members)
			if o := l.jobObject(j); o.Status.Active != members || o.Status.Allocations[members-1].Node != fmt.Sprintf("n%d", members-1) {
				b.Fatalf("%+v", o.Status)
			}
			b.ReportAllocs()
			for b.Loop() {
				l.jobObject(j)
			}
		})
	}
}
