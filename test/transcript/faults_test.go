package transcript_test

import (
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	musterv1 "github.com/musterd/muster/proto/muster/v1"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/rig"
)

// pause stops a leader for a minute: longer than its lease.
func (s *scene) pause(k *rig.Coordinator) {
	s.recorder.note(k.ID + " stands still before it writes to the store")
	k.Pause(time.Minute)
	<-time.NewTimer(time.Minute).C
	s.recorder.note(k.ID + " goes on, a minute later")
}

// loseLease keeps a coordinator from its lease until it has noticed, and
// another one leads.
func (s *scene) loseLease(id string) string {
	for _, k := range s.cluster.Coordinators() {
		if k.ID != id {
			continue
		}
		start := time.Now()
		k.Gate.FailLeases(errors.New("out of reach"))
		s.cluster.Eventually(id+" has stopped leading", func() bool { return !k.Leading() })
		s.recorder.note(fmt.Sprintf("%s stops leading after %v", id, time.Since(start).Round(time.Second/2)))
		s.cluster.Eventually("another coordinator leads", func() bool { return s.cluster.Leader() != k })
		s.recorder.note(fmt.Sprintf("%s leads after %v", s.cluster.Leader().ID, time.Since(start).Round(time.Second/2)))
		k.Gate.FailLeases(nil)
	}
	s.rest()
	return s.recorder.take()
}

// crashAgent lets the next Commit to a node be lost, and its agent die then.
func (s *scene) crashAgent(node resource.NodeID) {
	r := s.recorder
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lose = func(m rig.Message) bool {
		if m.Node != node || m.ToAgent.GetCommit() == nil {
			return false
		}
		r.lose = nil
		s.down = true
		go s.cluster.Agent(node).Stop()
		return true
	}
}

// promise sends, ahead of the leader's next Reserve to a node, the Reserve of
// another transaction that a leader once sent and forgot.
func (s *scene) promise(node resource.NodeID, gpus int) {
	r := s.recorder
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lose = func(m rig.Message) bool {
		reserve := m.ToAgent.GetReserve()
		if m.Node != node || reserve == nil {
			return false
		}
		r.lose = nil
		late := proto.CloneOf(reserve)
		late.Tx = string(resource.NewTxID("forgotten", resource.Epoch(reserve.GetEpoch()), 1<<40, resource.Nonce{}))
		late.Unit = "forgotten"
		late.Members = late.GetMembers()[:1]
		late.Members[0].Member = 0
		late.Members[0].Request.Gpus = int32(gpus)
		message := &musterv1.LeaderMessage{Message: &musterv1.LeaderMessage_Reserve{Reserve: late}}
		if err := m.Inject(message); err != nil {
			s.t.Error(err)
		}
		r.names.tx(reserve.GetTx()) // the leader's own comes first
		r.add("late", string(node), r.names.order(message))
		return false
	}
}
