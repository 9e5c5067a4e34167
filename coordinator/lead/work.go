package lead

import (
	"fmt"
	"maps"
	"slices"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/life"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/txn"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file starts the work of units and ends units with their work (ADR 59). A start
// is sent once all agents hold their members, so the record is COMMITTED and durable;
// agents repeat the state of the work until the record is terminal, so the leader keeps
// it in memory alone. Agents report the work that launchers attach in the same way.

// refusesWork refuses a job with a command where the cluster starts no processes.
func (l *Leader) refusesWork(doc *api.Job) *api.Status {
	if l.rules.StartsWork || !doc.Spec.Template.Spec.HasWork() {
		return nil
	}
	return api.Errorf(422, "spec.template.spec.%s: this cluster starts no processes: leave the command out, and start it on the nodes by their assignment files (docs/assignments.md); an operator has processes started by startsWork of the coordinators and work.users of the agents (docs/work.md), muster dev as root by --run-as USER", doc.Spec.Template.Spec.WorkField())
}

// startWork has some agents of an attempt start those of their members of which no agent
// has reported anything, once all agents hold their members.
func (l *Leader) startWork(a *work.Attempt, nodes ...resource.NodeID) {
	w := a.Unit.Work()
	if w == nil || a.Machine.State() != txn.Committed || len(a.Held) < len(a.Machine.Nodes()) || a.Unit.Life.EndAsked() {
		return
	}
	hosts := l.gangHosts(a)
	if len(hosts) == 0 || hosts[0] == "" {
		return // the place of rank 0 is not known yet
	}
	start := grant.Start{
		Tx: a.Machine.ID(), Epoch: l.post.Epoch(), Dir: w.WorkingDir, Rootfs: w.Rootfs, Bundle: w.Bundle, Mounts: mountsOf(w), Stdin: w.Stdin, TTY: w.TTY,
		First: a.Unit.Record.FirstMember, Hosts: hosts, Port: l.gangPort(a),
		Notice: a.EndNotice(l.post.Millis()),
	}
	if a.Unit.Record.Replaces {
		start.Rank = a.Unit.Rank()
	}
	doc := a.Unit.Job.Doc
	for set, spec := range doc.MemberSpecs() {
		start.Args, start.Env = slices.Concat(spec.Command, spec.Args), environmentOf(doc, set, &spec)
		start.CPULimit, start.MemoryLimit = spec.GreaterLimits()
		for _, node := range nodes {
			start.Members = nil
			vote, _ := a.Machine.Vote(node)
			for _, m := range vote.Members {
				if _, known := a.Work[m.Index]; !known && doc.SetOf(start.First+m.Index) == set {
					start.Members = append(start.Members, grant.StartMember{Index: m.Index})
				}
			}
			if len(start.Members) > 0 {
				l.send(node, start)
			}
		}
	}
}

// A Start has room for all mounts of a specification.
var _ [grant.MaxMounts - api.MaxMounts]struct{}

// mountsOf are the mounts of a specification.
func mountsOf(w *api.AllocationSpec) []grant.Mount {
	var list []grant.Mount
	for i := range w.Mounts {
		m := &w.Mounts[i]
		list = append(list, grant.Mount{Source: m.Source, Target: m.Place(), ReadOnly: m.ReadOnly})
	}
	return list
}

// environmentOf is the environment of the members of a set.
func environmentOf(doc *api.Job, set int, spec *api.AllocationSpec) []string {
	env := make([]string, 0, len(spec.Env)+1)
	for _, v := range spec.Env {
		env = append(env, v.Name+"="+v.Value)
	}
	if len(doc.Spec.Members) > 0 {
		env = append(env, "MUSTER_SET="+doc.Spec.Members[set].Name)
	}
	return env
}

// hostsOf are the addresses of the hosts of all members, by member.
func (l *Leader) hostsOf(a *work.Attempt) []string {
	hosts := make([]string, a.Unit.Record.Members)
	for _, id := range a.Machine.Nodes() {
		address := l.addressOf(id)
		vote, _ := a.Machine.Vote(id)
		for _, m := range vote.Members {
			hosts[m.Index] = address
		}
	}
	return hosts
}

// worked takes the state of a transaction's work on one node. What a node says of
// members that it does not have does not count.
func (l *Leader) worked(e grant.Worked) {
	a := l.work.Attempts[e.Tx]
	if a == nil || a.Machine.Undecided() || !slices.Contains(a.Machine.Nodes(), e.Node) {
		l.idle++
		return
	}
	vote, _ := a.Machine.Vote(e.Node)
	news := false
	for _, s := range e.States {
		has := slices.ContainsFunc(vote.Members, func(m grant.Member) bool { return m.Index == s.Member })
		before, known := a.Work[s.Member]
		if signaled := s.Signaled && !before.Signaled; !has || known && (before.Phase > s.Phase || before.Phase == s.Phase && !signaled) {
			continue
		}
		s.Reason, s.Message, s.EpilogFault = Clip(s.Reason), Clip(s.Message), Clip(s.EpilogFault)
		l.taintFor(e.Node, s)
		a.SetWork(s)
		news = true
	}
	if !news {
		l.idle++
		return
	}
	l.noteSignaled(a)
	l.judgeWork(a)
}

// judgeWork ends a unit whose work is over, for good or until its next try. A unit that
// ends for another reason goes on doing so, but a job's work done in spite of an eviction
// is done. Units without a command have the work that launchers have attached.
func (l *Leader) judgeWork(a *work.Attempt) {
	if a = a.Judged(); a == nil || a.Machine.Undecided() || a.Unit.Life.EndAsked() {
		return
	}
	u, outcome := a.Unit, l.outcomeOf(a)
	if outcome == nil || a.Notice != nil && (u.Job == nil || outcome.Phase != string(api.Succeeded)) {
		return
	}
	a.SetOutcome(outcome)
	l.post.Info("work_ended", "unit", u.Path, "phase", outcome.Phase, "retry", outcome.Retry, "message", outcome.Message)
	l.end(u, txn.ReleaseAsked{GraceSeconds: DefaultGrace, Reason: outcome.Message})
}

// outcomeOf is the outcome of an attempt's work, nil while there is none.
func (l *Leader) outcomeOf(a *work.Attempt) *record.Outcome {
	var exits []life.Exit
	states, members := l.gangWork(a)
	for _, member := range slices.Sorted(maps.Keys(states)) {
		if s := states[member]; s.Phase == grant.WorkEnded {
			exits = append(exits, life.Exit{Member: member, Success: s.IsSuccess(), Blameless: s.Reason == nodeRestarted || s.Reason == grant.PrologFailed})
		}
	}
	verdict, member := policyOf(a.Unit).Judge(members, exits)
	switch verdict {
	case life.Runs:
		return nil
	case life.Succeeded:
		return &record.Outcome{Phase: string(api.Succeeded), Message: "its work is done"}
	case life.Failed, life.Lost:
	}
	text := a.Unit.MemberName(member) + " " + describeExit(states[member])
	if verdict == life.Lost && a.Unit.Job != nil { // as after an eviction
		return &record.Outcome{Phase: string(api.Pending), Message: text}
	}
	if a.Unit.Job == nil {
		return &record.Outcome{Phase: string(api.Failed), Message: text}
	}
	return l.afterFailure(a.Unit, text)
}

// policyOf says what ends a unit with its work. An allocation has no policy of its own: its
// launchers report the end of each member.
func policyOf(u *work.Unit) life.Policy {
	if u.Job == nil {
		return life.Policy{OnFailure: life.FailJob}
	}
	return u.Job.Policy()
}

// nodeRestarted is the reason of a member whose host was started anew.
const nodeRestarted = "NodeRestarted"

// describeExit says in a few words how a member failed.
func describeExit(s grant.WorkState) string {
	var text string
	switch {
	case s.Reason == "NotStarted":
		text = "could not be started"
	case s.Reason == grant.PrologFailed:
		text = "was not started"
	case s.Reason == "SupervisorLost":
		text = "lost its supervisor"
	case s.Reason == nodeRestarted:
		text = "ended with its host, which was started anew"
	case s.Signal != 0:
		text = fmt.Sprintf("was ended by signal %d", s.Signal)
	default:
		text = fmt.Sprintf("exited with code %d", s.Code)
	}
	if s.Message != "" {
		text += ": " + s.Message
	}
	return text
}
