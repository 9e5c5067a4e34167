package lead

import (
	"fmt"
	"slices"
	"strings"

	"github.com/musterd/muster/coordinator/decisions"
	"github.com/musterd/muster/coordinator/lead/work"
	"github.com/musterd/muster/coordinator/place"
	"github.com/musterd/muster/coordinator/queue/rule"
	"github.com/musterd/muster/coordinator/sched"
	"github.com/musterd/muster/resource"
)

// DecisionLog takes the account of what leaders decide (coordinator/decisions).
// Append belongs to one term at a time, does not block, and reports whether the
// whole state is wanted next.
type DecisionLog interface {
	Append(decisions.Record) (again bool)
}

// keepAccount begins the term's account, if there is a log.
func (l *Leader) keepAccount() {
	if l.rules.Decisions != nil {
		l.account = decisions.NewTracker(l.post.Epoch(), l.room, accountWords{l}, l.rules.Decisions.Append)
	}
}

// accountWords says for the account why units wait (decisions.Words).
type accountWords struct{ *Leader }

// Held says why a unit cannot be tried now.
func (w accountWords) Held(path string) decisions.Evidence {
	u := w.work.Units[path]
	switch {
	case u == nil || u.Life.IsBeingWritten() || u.Attempt != nil:
	case u.Adopting != "":
		return decisions.Evidence{Why: decisions.AwaitsVictims, Subject: string(u.Adopting)}
	case u.Life.Phase() == work.Resting:
		return decisions.Evidence{Why: decisions.InBackoff, Until: u.Wait.Rested.UnixMilli()}
	case standingOf(u) == rule.Waits && w.isHeldByQueue(u):
		return decisions.Evidence{Why: decisions.AwaitsQueue, Subject: u.Record.Queue}
	case u.Gathers():
		return decisions.Evidence{Why: decisions.AwaitsGang, Subject: u.Group.Units[0].Path}
	case u.Grows():
		return decisions.Evidence{Why: decisions.AwaitsGang, Subject: u.Job.Units[0].Path}
	}
	return decisions.Evidence{Why: decisions.BeingWritten}
}

// Asleep says why a class has failed.
func (w accountWords) Asleep(c *sched.Class, e *sched.Evidence) (subject string, detail func() string) {
	if e.Short != nil {
		return subjectOf(e.Short, c.Namespace), func() string { return work.JoinReasons(w.quotas.Reasons(e.Short), e.NoVictims) }
	}
	return "", func() string { return w.describeDemand(c.Demand(), e) }
}

// subjectOf names the quota that is short.
func subjectOf(s *sched.Shortage, namespace string) string {
	switch {
	case s.Absent != nil:
		return s.Absent.Tree
	case s.Victims != nil:
		return "lent to others"
	case s.Limits != nil:
		return namespace
	}
	return s.Refusal.Tree + "/" + s.Refusal.Node
}

// describeDemand says what a class that has no place wants, and what there is.
func (l *Leader) describeDemand(d *place.Unit, e *sched.Evidence) string {
	var ready, whole, most int
	var gpu resource.Milli
	var cpu resource.Millicores
	var memory resource.Bytes
	for _, n := range l.state.Nodes() {
		if !n.Ready || n.Unschedulable {
			continue
		}
		ready++
		whole, most = whole+n.WholeGPUs, max(most, n.WholeGPUs)
		gpu, cpu, memory = gpu+n.FreeGPU, cpu+n.FreeCPU, memory+n.FreeMemory
	}
	r := d.Request.Vector()
	var wants []string
	for _, name := range r.Names() {
		wants = append(wants, fmt.Sprintf("%s %s", name, resource.FormatAmount(name, r[name])))
	}
	text := fmt.Sprintf("%d × %s; %d nodes have free: cpu %s, memory %s, GPUs %s, of these %d whole, %d on one node",
		d.Members, strings.Join(wants, ", "), ready, resource.FormatAmount(resource.CPU, int64(cpu)), resource.FormatBytes(memory),
		resource.FormatAmount(resource.GPU, int64(gpu)), whole, most)
	if e.NoVictims != "" {
		text += "; " + e.NoVictims
	}
	return text
}

// accountFor notes that an attempt begins. It comes before the unit leaves the
// queue.
func (l *Leader) accountFor(a *work.Attempt, tx resource.TxID, devices []decisions.Devices, adopted bool) {
	if l.account == nil {
		return
	}
	p := decisions.Placement{Key: a.Unit.Key, Tx: tx, Kind: decisions.Plain, Devices: devices, Adopted: adopted}
	for _, v := range a.Victims {
		p.Victims = append(p.Victims, decisions.Victim{Unit: v.Unit.Path, Priority: v.Unit.Record.Priority})
	}
	switch {
	case a.Claims:
		p.Kind = decisions.Claim
	case a.IsPreempting():
		p.Kind = decisions.Preemption
	}
	l.account.Placed(p)
}

// plannedDevices are the whole GPUs of a plan, by node.
func (l *Leader) plannedDevices(plan []place.Choice) []decisions.Devices {
	if l.account == nil {
		return nil
	}
	at := map[resource.NodeID]int{}
	var list []decisions.Devices
	for _, m := range plan {
		for _, g := range m.Assignment.GPUs {
			if g.Milli != resource.WholeDevice {
				continue
			}
			i, found := at[m.Node.ID]
			if !found {
				i = len(list)
				at[m.Node.ID] = i
				list = append(list, decisions.Devices{Node: m.Node.ID})
			}
			list[i].GPUs = append(list[i].GPUs, g.Index)
		}
	}
	for i := range list {
		slices.Sort(list[i].GPUs)
	}
	return list
}
