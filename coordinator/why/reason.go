package why

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/musterd/muster/resource"
)

// justElected is how long a leader's first steps are named as a reason.
const justElected = 30 * time.Second

// reason is the one reason that binds, and the reason in a sentence.
func (f *Facts) reason(v Viewer) (resource.Reason, string) {
	r, text := f.ofStage(v)
	if r.Code == "" {
		r, text = f.ofQuota(v)
	}
	if r.Code == "" {
		r, text = f.ofNodes(v)
		if r.Code != AboutToStart && r.Code != TooManyNodes && f.Domain == nil {
			text = inSet(f.setName()) + text
		}
	}
	r.Detail = text
	return r, f.subject() + text + "."
}

// subject says who wants what. It ends where the reason begins.
func (f *Facts) subject() string {
	name := f.Namespace + "/" + f.Name
	if f.Stage == Running || f.Stage == Leaving || f.Stage == Ended {
		return name + " "
	}
	want := request(&f.Request)
	switch {
	case f.Sets != nil:
		want = f.sets()
	case f.Members > 1:
		want = fmt.Sprintf("%d members at once, each with %s", f.Members, want)
	}
	if f.Waits {
		return fmt.Sprintf("%s runs with %d of %d members; the next one wants %s: ", name, f.Running, f.Total, want)
	}
	return fmt.Sprintf("%s wants %s: ", name, want)
}

// sets words the members of a unit whose members differ.
func (f *Facts) sets() string {
	sum, parts := 0, make([]string, len(f.Sets))
	for i := range f.Sets {
		s := &f.Sets[i]
		sum += s.Members
		each := ""
		if s.Members > 1 {
			each = "each "
		}
		parts[i] = fmt.Sprintf("%d of %s %swith %s", s.Members, s.Name, each, request(&s.Request))
	}
	return count(sum, "member") + " at once, " + strings.Join(parts, ", ")
}

// setName is the name of the set that the facts are about, "" for equal members.
func (f *Facts) setName() string {
	if f.Sets == nil {
		return ""
	}
	return f.Sets[f.Set].Name
}

// inSet begins a text about one set of members.
func inSet(name string) string {
	if name == "" {
		return ""
	}
	return "of " + name + ", "
}

// ofStage words the stages that have a reason of their own.
func (f *Facts) ofStage(v Viewer) (resource.Reason, string) {
	code := func(c, text string) (resource.Reason, string) { return resource.Reason{Code: c}, text }
	switch f.Stage {
	case Running:
		if len(f.Lost) > 0 {
			return code(IsHoldingLost, f.runs()+"; "+f.lost())
		}
		return code(IsRunning, f.runs())
	case Leaving:
		text := "is leaving"
		if f.Ending != "" {
			text += ": " + v.hide(f.Ending)
		}
		if !f.Until.IsZero() {
			text += ", with a grace until " + clock(f.Until)
		}
		return code(IsLeaving, text)
	case Ended:
		text := "has ended: " + string(f.Phase)
		if f.Ending != "" && f.Ending != string(f.Phase) {
			text += " (" + v.hide(f.Ending) + ")"
		}
		return code(IsEnded, text)
	case Storing:
		return code(IsStoring, "the store has not confirmed the submission yet")
	case Growing:
		return code(IsGrowing, "the first members of the gang have to run before it grows")
	case Gathering:
		return code(IsGathering, f.gathers())
	case Suspended:
		return code(IsSuspended, "it is suspended by spec.suspend")
	case Blocked:
		return code(f.Block.Code, f.blocked(v))
	case Delayed:
		r := &f.Retry
		return code(IsDelayed, fmt.Sprintf("%s; retry %d of %d is due at %s", r.Failure, r.Number, r.Limit, clock(r.At)))
	case Throttled:
		return code(IsThrottled, fmt.Sprintf("as many members of the job have their places as its parallelism allows, which is %d", f.Parallelism))
	case Depending:
		return code(IsDepending, "waits for "+join(f.Awaits, "and"))
	case Adopting:
		return code(IsAdopting, "the leader is taking over a preemption that its predecessor began for it")
	case Asking:
		return code(IsAsking, fmt.Sprintf("a place was found on %s, and %s to confirm it", names(f.On), agentsHave(f.Unconfirmed)))
	case Resting:
		return code(IsResting, f.rests())
	case Nominated:
		return code(IsNominated, f.awaits(v))
	case Waiting:
	}
	return resource.Reason{}, ""
}

// gathers words a group of which too few members have arrived.
func (f *Facts) gathers() string {
	g := &f.Group
	text := fmt.Sprintf("%d of %d members of group %s have arrived, and they start together", g.Arrived, g.MinMembers, g.ID)
	if !g.StartBy.IsZero() {
		text += "; those that wait at " + clock(g.StartBy) + " fail with GangTimeout"
	}
	return text
}

func agentsHave(left []resource.NodeID) string {
	switch len(left) {
	case 0:
		return "the store has"
	case 1:
		return "the agent of " + string(left[0]) + " has"
	}
	return "the agents of " + names(left) + " have"
}

// runs words a unit that runs.
func (f *Facts) runs() string {
	text := "runs"
	if f.Total > 1 {
		text = fmt.Sprintf("runs with %d of %d members", f.Running, f.Total)
	}
	if len(f.On) > 0 {
		text += " on " + names(f.On)
	}
	if f.Alternative > 0 {
		text += fmt.Sprintf(" with alternative %d, %s for each member", f.Alternative, request(&f.Request))
	}
	if len(f.Unconfirmed) > 0 {
		return text + "; " + agentsHave(f.Unconfirmed) + " not confirmed that yet"
	}
	if len(f.Lost) > 0 {
		return text
	}
	return text + "; nothing holds it back"
}

// mostLost bounds the lost devices that an answer names.
const mostLost = 4

// lost words the lost devices that a running unit holds.
func (f *Facts) lost() string {
	var named []string
	total := 0
	for _, l := range f.Lost {
		for _, uuid := range l.UUIDs {
			if total++; total <= mostLost {
				named = append(named, uuid+" of node "+string(l.Node))
			}
		}
	}
	text := strings.Join(named, ", ")
	if total > mostLost {
		text += fmt.Sprintf(" and %d more", total-mostLost)
	}
	return fmt.Sprintf("%s that it holds %s lost: %s; muster describe node %s gives the cause",
		count(total, "device"), verb(total, "is", "are"), text, f.Lost[0].Node)
}

// rests words a backoff.
func (f *Facts) rests() string {
	r := &f.Refused
	text := fmt.Sprintf("%s in a row failed", count(r.Times, "attempt"))
	if r.Node != "" {
		text += fmt.Sprintf(", the last one on %s (%s)", r.Node, r.Fault)
	}
	return fmt.Sprintf("%s; the next attempt is due at %s", text, r.Until.UTC().Format("2006-01-02T15:04:05.000Z"))
}

// awaits words a nomination.
func (f *Facts) awaits(v Viewer) string {
	leaving := 0
	for _, w := range f.Victims {
		if !w.Freed {
			leaving++
		}
	}
	who := v.Work(f.Victims)
	means := "it takes the place of "
	if f.Claims {
		means = "it claims its own quota back from "
	}
	switch {
	case f.Noticed.IsZero():
		return means + who + ", to which notice is being given"
	case leaving > 0:
		text := fmt.Sprintf("%s%s, noticed at %s; %d of %d still hold something", means, who, clock(f.Noticed), leaving, len(f.Victims))
		if !f.Until.IsZero() {
			text += ", and have to be gone by " + clock(f.Until)
		}
		return text
	}
	return means + who + ", and all of that is free now"
}

// ofQuota words the quota that is short.
func (f *Facts) ofQuota(v Viewer) (resource.Reason, string) {
	if len(f.Quota) == 0 {
		return resource.Reason{}, ""
	}
	r := f.Quota[0]
	r.Code = f.QuotaLevel
	if f.QuotaLevel == QuotaInUse {
		text := f.inUse(v)
		if f.NoVictims != "" {
			text += ", and none of them gives way now: " + v.hide(f.NoVictims)
		}
		return r, text
	}
	return r, v.hide(r.Detail)
}

// inUse words quota that others borrow.
func (f *Facts) inUse(v Viewer) string {
	return "quota of its own is lent to " + v.Work(f.Borrowers)
}

// ofNodes words the nodes' reasons.
func (f *Facts) ofNodes(v Viewer) (resource.Reason, string) {
	groups := grouped(f.Nodes)
	if len(groups) == 0 {
		return resource.Reason{Code: NoNodes}, "no node has registered yet"
	}
	var open, closed []*group
	for _, g := range groups {
		if g.excluded {
			closed = append(closed, g)
		} else {
			open = append(open, g)
		}
	}
	switch {
	case f.Domain != nil:
		text := f.Domain.Detail
		if f.NoVictims != "" {
			text += "; nobody gives way: " + v.hide(f.NoVictims)
		}
		return *f.Domain, text
	case f.Fit >= f.Members && f.TooWide != "":
		return resource.Reason{Code: TooManyNodes}, f.TooWide
	case f.Fit >= f.Members:
		return resource.Reason{Code: AboutToStart}, "there is room now, and the next pass places it"
	case f.Missing > 0 && f.Now.Sub(f.Elected) < justElected:
		return resource.Reason{Code: JustElected}, fmt.Sprintf("a leader was elected %s ago, and %d of %s not connected to it yet",
			span(f.Now.Sub(f.Elected)), f.Missing, count(len(f.Nodes), "agent")+" "+verb(f.Missing, "is", "are"))
	case len(open) == 0:
		return f.allClosed(closed)
	}
	r, text := f.ofOpen(open, closed)
	if f.NoVictims != "" {
		text += "; nobody gives way: " + v.hide(f.NoVictims)
	}
	return r, text
}

// allClosed words that no node may take the unit.
func (f *Facts) allClosed(closed []*group) (resource.Reason, string) {
	if len(closed) == 1 {
		g := closed[0]
		r := resource.Reason{}
		if len(g.reasons) > 0 {
			r = g.reasons[0]
		}
		text := fmt.Sprintf("none of the %s may take it: %s", count(g.count, "node"), g.message(f))
		if g.count == 1 {
			text = fmt.Sprintf("the only node, %s, may not take it: %s", g.names[0], g.message(f))
		}
		return r, text
	}
	return resource.Reason{Code: NoNodeAllowed}, fmt.Sprintf("none of the %s may take it: %s", count(total(closed), "node"), f.list(closed))
}

// list words the largest groups.
func (f *Facts) list(groups []*group) string {
	var parts []string
	for _, g := range groups[:min(listed, len(groups))] {
		parts = append(parts, fmt.Sprintf("%d: %s", g.count, g.message(f)))
	}
	if more := groups[min(listed, len(groups)):]; len(more) > 0 {
		parts = append(parts, fmt.Sprintf("%d: other reasons", total(more)))
	}
	return strings.Join(parts, "; ")
}

func total(groups []*group) (n int) {
	for _, g := range groups {
		n += g.count
	}
	return n
}

// ofOpen words that the nodes that may take the unit have no room for all of it.
func (f *Facts) ofOpen(open, closed []*group) (resource.Reason, string) {
	fits := ""
	if f.Members > 1 {
		fits = fmt.Sprintf("%d of %d members fit: ", f.Fit, f.Members)
	}
	usable := fmt.Sprintf("the %s that may take it", count(total(open), "node"))
	if total(open) == 1 {
		usable = "the one node that may take it"
	}
	except := ""
	if n := total(closed); n > 0 {
		except = fmt.Sprintf("; %s may not (%s)", count(n, "other node"), f.list(closed))
	}
	if r, text, is := f.ofDevices(open); is {
		return r, fits + text + except
	}
	if len(f.Shortages) > 0 {
		return f.Shortages[0], fits + f.totals(usable) + except
	}
	g := f.binding(open)
	r := resource.Reason{Code: resource.ReasonFragmented}
	if len(g.reasons) > 0 {
		r = g.reasons[0]
	}
	where := fmt.Sprintf("on %d nodes", g.count)
	if g.count == 1 {
		where = "on " + string(g.names[0])
	}
	return r, fmt.Sprintf("%sthe nodes together have enough free, but no single node has room for one more member; %s: %s%s", fits, where, g.message(f), except)
}

// ofDevices finds that every node has too few devices of the model, or that its
// free devices are unhealthy: the sums of what is free do not tell.
func (f *Facts) ofDevices(open []*group) (resource.Reason, string, bool) {
	if r := everywhere(open, resource.ReasonModel); r != nil {
		return *r, fmt.Sprintf("no node that may take it has %s %s for one more member; the most on one node is %s",
			amount(r.Resource, r.Want), ofModel(&f.Request), resource.FormatAmount(r.Resource, r.Have)), true
	}
	if r := everywhere(open, resource.ReasonUnhealthy); r != nil {
		return *r, fmt.Sprintf("the free GPUs of the nodes that may take it are unhealthy: no node has %s free and healthy; the most on one node is %s",
			amount(r.Resource, r.Want), resource.FormatAmount(r.Resource, r.Have)), true
	}
	return resource.Reason{}, "", false
}

// everywhere is the reason of a code with the greatest have, nil unless each group
// has such a reason.
func everywhere(groups []*group, code string) (most *resource.Reason) {
	for _, g := range groups {
		i := slices.IndexFunc(g.reasons, func(r resource.Reason) bool { return r.Code == code })
		if i < 0 {
			return nil
		}
		if most == nil || g.reasons[i].Have > most.Have {
			most = &g.reasons[i]
		}
	}
	return most
}

// totals words the sums that are short.
func (f *Facts) totals(usable string) string {
	var parts []string
	for _, r := range f.Shortages {
		parts = append(parts, fmt.Sprintf("%s short (%s wanted, %s free)", amount(r.Resource, r.Short()),
			resource.FormatAmount(r.Resource, r.Want), resource.FormatAmount(r.Resource, r.Have)))
	}
	return join(parts, "and") + " on " + usable
}

// binding is the group to name: the one with the most nodes that are nearest to
// taking a member, which are those with the fewest reasons.
func (f *Facts) binding(open []*group) *group {
	best := open[0]
	for _, g := range open[1:] {
		if len(g.reasons) > 0 && (len(best.reasons) == 0 || len(g.reasons) < len(best.reasons)) {
			best = g
		}
	}
	return best
}

// gpus prints a number of GPUs.
func gpus(m resource.Milli) string { return resource.FormatAmount(resource.GPU, int64(m)) }
