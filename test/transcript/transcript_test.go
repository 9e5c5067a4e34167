// Package transcript_test shows the protocol of PROTOCOL.md at work: a real
// leader and real agents over a store and connections in memory, each message
// and each write of the store in a file that can be read from top to bottom.
// Rewrite the files with `go test ./test/transcript -rewrite` and read what
// changed.
package transcript_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/rig"
)

func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		synctest.Test(t, func(t *testing.T) {
			s := &scene{t: t}
			datadriven.RunTest(t, path, s.run)
		})
	})
}

// scene is the cluster of one transcript.
type scene struct {
	t        *testing.T
	cluster  *rig.Cluster
	recorder *recorder
	fault    func(record.Txn) rig.Fault // of the coming writes, nil for none
	stall    grant.RecordState          // the leader is paused before it writes a record in it
	down     bool                       // a process has died; set while one event happens
}

// run carries out one command and returns what happened until everything was
// at rest:
//
//	cluster agents=N       coordinator c1 and agents n1…, all ready
//	submit JOB members=M gpus=G [priority=P] [preempts]
//	delete JOB
//	evict JOB grace=SECONDS
//	crash-leader-before STATE    the leader dies when it is about to write a record in STATE
//	pause-leader-before STATE    the leader stands still for a minute when it is about to do so
//	lose-lease ID          the coordinator cannot renew its lease any more
//	crash-agent-before-commit NODE    the agent dies when Commit is on its way to it
//	promise NODE gpus=G    another transaction, of which the leader does not know, gets there first
//	start ID               starts a coordinator, or a node's agent again
func (s *scene) run(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	switch d.Cmd {
	case "cluster":
		s.begin(number(t, d, "agents"))
		return "ready\n"
	case "submit":
		return s.submit(submission(t, d))
	case "delete":
		return s.delete(word(t, d))
	case "evict":
		return s.evict(word(t, d), int64(number(t, d, "grace")))
	case "crash-leader-before":
		state := recordState(t, d)
		s.fault, _ = rig.Once(rig.CrashBefore, func(t record.Txn) bool { return rig.Writes(t, state) })
		return ""
	case "pause-leader-before":
		s.stall = recordState(t, d)
		return ""
	case "lose-lease":
		return s.loseLease(word(t, d))
	case "crash-agent-before-commit":
		s.crashAgent(resource.NodeID(word(t, d)))
		return ""
	case "promise":
		s.promise(resource.NodeID(word(t, d)), number(t, d, "gpus"))
		return ""
	case "start":
		return s.start(word(t, d))
	}
	d.Fatalf(t, "command %q is unknown", d.Cmd)
	return ""
}

// recordState reads a state of a record from the command.
func recordState(t *testing.T, d *datadriven.TestData) (state grant.RecordState) {
	t.Helper()
	if err := state.UnmarshalText([]byte(word(t, d))); err != nil {
		d.Fatalf(t, "%v", err)
	}
	return state
}

// word is the command's first argument.
func word(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	if len(d.CmdArgs) == 0 {
		d.Fatalf(t, "%s needs an argument", d.Cmd)
	}
	return d.CmdArgs[0].Key
}

func number(t *testing.T, d *datadriven.TestData, key string) int {
	t.Helper()
	var n int
	d.ScanArgs(t, key, &n)
	return n
}

// submission is what the command asks for; a client repeats it under the same
// id.
func submission(t *testing.T, d *datadriven.TestData) rig.Submission {
	t.Helper()
	members := number(t, d, "members")
	job := rig.Submission{Name: word(t, d), Members: members, Gang: members, GPUs: number(t, d, "gpus"), Wait: time.Minute}
	job.RequestID = "submit-" + job.Name
	if d.HasArg("priority") {
		job.Priority = int32(number(t, d, "priority"))
	}
	if d.HasArg("preempts") {
		job.Policy = "PreemptLowerPriority"
	}
	return job
}

func (s *scene) begin(agents int) {
	s.t.Helper()
	s.cluster = rig.New(s.t, rig.Options{})
	k := s.cluster.Bring(agents)
	s.cluster.Converge()
	s.recorder = &recorder{turns: newTurns(), said: map[said]string{}}
	s.cluster.Tap(s.recorder.message)
	s.watch(k)
	s.t.Cleanup(func() { // before the cluster's own
		s.cluster.Tap(nil)
		for _, k := range s.cluster.Coordinators() {
			k.Gate.OnTxn(nil)
		}
		s.recorder.turns.settle()
		s.recorder.turns.stop()
	})
}

// watch records a coordinator's writes.
func (s *scene) watch(k *rig.Coordinator) {
	k.Gate.OnTxn(func(t record.Txn) rig.Fault {
		fault := rig.None
		if s.fault != nil {
			fault = s.fault(t)
		}
		if fault == rig.CrashBefore {
			s.down = true
		}
		if s.stall != grant.RecordAbsent && rig.Writes(t, s.stall) {
			s.stall = grant.RecordAbsent
			s.pause(k)
		}
		return s.recorder.txn(k, t, fault)
	})
}

// submit asks the leader for a gang.
func (s *scene) submit(job rig.Submission) string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), rig.Patience)
	defer cancel()
	k, name := s.cluster.Leader(), job.Name
	j, repeated, err := k.Job(ctx, job)
	if err != nil {
		if s.down {
			<-k.Ended()
		}
		s.rest()
		return s.recorder.take() + fmt.Sprintf("client gets no answer from %s, and does not know whether %s was accepted\n", k.ID, name)
	}
	s.rest()
	again := ""
	if repeated {
		again = ", which it was asked for before"
	}
	return s.recorder.take() + fmt.Sprintf("client is told that %s is %s%s\n", name, j.Status.Phase, again)
}

func (s *scene) delete(name string) string {
	s.t.Helper()
	j, err := s.cluster.Leader().DeleteJob(s.t.Context(), rig.Namespace, name, api.DeleteOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	s.rest()
	return s.recorder.take() + fmt.Sprintf("client is told that %s is %s\n", name, j.Status.Phase)
}

func (s *scene) evict(name string, grace int64) string {
	s.t.Helper()
	if _, _, err := s.cluster.Leader().Evict(s.t.Context(), lead.EvictOptions{Namespace: rig.Namespace, Name: name + "-0", GraceSeconds: &grace}); err != nil {
		s.t.Fatal(err)
	}
	s.rest()
	return s.recorder.take()
}

// rest waits until everything agrees, or nothing moves while a process is down.
func (s *scene) rest() {
	s.t.Helper()
	s.recorder.turns.settle()
	if !s.down {
		s.cluster.Converge()
		s.recorder.turns.settle()
	}
}

func (s *scene) start(id string) string {
	s.t.Helper()
	if strings.HasPrefix(id, "n") {
		s.cluster.Agent(resource.NodeID(id)).Start()
		s.down = false
	} else {
		s.watch(s.cluster.StartCoordinator(id))
		s.cluster.Leader()
		s.down = false
	}
	s.rest()
	return s.recorder.take()
}
